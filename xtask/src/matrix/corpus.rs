//! Collects the cases that a row is tried with, as soak's histories: the files of `cases/`, the modes whose dry runs are
//! recorded, and changes of one thing between two calls.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::hosts::Compiler;
use crate::repo;
use crate::soak::history::{History, Step};

/// The amount of cases to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A handful of cases.
    Quick,
    /// The cases in which a host compiler takes part.
    Host,
    /// All modes and changes, and the cases of the tests.
    Whole,
}

/// One history.
#[derive(Debug)]
pub struct Case {
    /// The history's origin: `case lto`, `mode ptx`, `change headers`.
    pub name: String,
    pub history: History,
}

/// The cases of the quick row.
const QUICK: [&str; 5] = [
    "mode compile-two",
    "mode depend",
    "mode ptx",
    "mode rdc-program",
    "mode lineinfo",
];

/// The modes in which a host compiler may matter.
const OF_HOSTS: [&str; 16] = [
    "compile-two",
    "compile-host",
    "program",
    "program-several",
    "rdc-program",
    "library",
    "shared",
    "cuda",
    "debug-host",
    "lineinfo",
    "depend",
    "depend-forms",
    "depend-several",
    "keep",
    "host-options",
    "torch-line",
];

/// All cases of a scope, for one host compiler.
pub fn cases(scope: Scope, host: &Compiler) -> Result<Vec<Case>> {
    let mut cases = modes()?;
    cases.extend(histories("xtask/matrix", "")?);
    cases.extend(histories("xtask/soak/cases", "real-")?);
    match scope {
        Scope::Quick => cases.retain(|case| QUICK.contains(&case.name.as_str())),
        Scope::Host => cases.retain(|case| {
            let mode = case.name.strip_prefix("mode ");
            mode.is_none_or(|mode| OF_HOSTS.contains(&mode))
        }),
        Scope::Whole => cases.extend(of_the_tests()?),
    }
    for case in &mut cases {
        with_host(&mut case.history, host);
    }
    Ok(cases)
}

/// Adds the host compiler to calls that name none.
fn with_host(history: &mut History, host: &Compiler) {
    let names_one = |word: &String| {
        let name = word.split('=').next().unwrap_or(word);
        ["-ccbin", "--compiler-bindir"].contains(&name)
    };
    let is_named_by_variable = |step: &Step| step.rest().first().is_some_and(|w| w == "NVCC_CCBIN");
    let by_variable = history.0.iter().any(is_named_by_variable);
    for step in &mut history.0 {
        for word in &mut step.0 {
            *word = word.replace("{host}", &host.program);
        }
        let is_nvcc = step.is_call() || (step.verb() == "run" && step.0[1].ends_with("nvcc"));
        if is_nvcc && !by_variable && !step.0.iter().any(names_one) {
            let at = if step.is_call() { 1 } else { 2 };
            step.0.splice(at..at, host.words.iter().cloned());
        }
    }
    if let Some(folder) = &host.in_front {
        let path = format!("{folder}:/usr/bin:/bin");
        history.0.insert(0, Step::new(&["set", "PATH", &path]));
    }
}

/// Case files of soak in a folder.
fn histories(folder: &str, prefix: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(repo::root().join(folder)).with_context(|| folder.to_owned())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name
            .strip_suffix(".soak")
            .and_then(|n| n.strip_prefix(prefix));
        if let Some(stem) = stem {
            cases.push(Case {
                name: format!("change {stem}"),
                history: History::load(&path)?,
            });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// The modes whose dry runs are recorded, each called twice, and once more after a change.
fn modes() -> Result<Vec<Case>> {
    let path = repo::root().join("crates/plan/tests/transcripts/modes.txt");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut cases = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, arguments) = line.split_once(' ').with_context(|| line.to_owned())?;
        let arguments = shlex::split(arguments).with_context(|| line.to_owned())?;
        let mut steps = project(&arguments);
        let mut call = vec!["call".to_owned()];
        call.extend(arguments);
        let call = Step(call);
        steps.extend([call.clone(), call.clone()]);
        steps.push(Step::new(&["replace", "h.h", "#define V 2"]));
        steps.push(call);
        cases.push(Case {
            name: format!("mode {name}"),
            history: History(steps),
        });
    }
    Ok(cases)
}

/// The files that the modes name.
fn project(arguments: &[String]) -> Vec<Step> {
    let kernel = |name: &str| {
        format!(
            "__device__ int of_{name}; __global__ void k_{name}(int *p) {{ *p = V + of_{name}; }}"
        )
    };
    let include = "#include \"h.h\"";
    let source = [include, &kernel("a"), "int main() { return V - 1; }"];
    let write = |path: &str, lines: &[&str]| {
        let words = [&["write", path], lines].concat();
        Step::new(&words)
    };
    let mut steps = vec![
        Step::new(&["folder", "out"]),
        write("h.h", &["#define V 1"]),
        write("a.cu", &source),
        write("b.cu", &[include, &kernel("b")]),
        write("host.cpp", &[include, "int host() { return V; }"]),
        write("x.cu", &[include, &kernel("x")]),
        write("y.cu", &[include, &kernel("y"), "int main() { return V; }"]),
    ];
    for name in ["sp dir/é ü.cu", "$x.cu", "it's.cu"] {
        if arguments.iter().any(|word| word == name) {
            steps.push(write(name, &source));
        }
    }
    // An object file's two architectures serve every mode that links.
    let both = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90";
    for (made, mode) in [
        ("x.o", format!("-dc x.cu {both}")),
        ("y.o", format!("-dc y.cu {both}")),
        ("mid.ptx", "-ptx a.cu -arch=compute_90".to_owned()),
        ("mid.cubin", "-cubin a.cu -arch=sm_90".to_owned()),
    ] {
        if arguments.iter().any(|word| word == made) {
            let mut words = vec!["run", "{tk}/bin/nvcc"];
            words.extend(mode.split(' '));
            words.extend(["-o", made]);
            steps.push(Step::new(&words));
        }
    }
    steps
}

/// The cases of the tests, all their commands twice.
fn of_the_tests() -> Result<Vec<Case>> {
    let root = repo::root().join("cases");
    let mut cases = Vec::new();
    for entry in fs::read_dir(&root).context("cases")? {
        let path = entry?.path();
        let is_case = path.is_dir() || path.extension().is_some_and(|ending| ending == "cu");
        if is_case {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            cases.push(Case {
                name: format!("case {stem}"),
                history: of_the_test(&path)?,
            });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// The history of a test's case; `cases/README.md` explains the directives. The case's own expectations are ignored: only
/// nvcc is compared with.
fn of_the_test(path: &Path) -> Result<History> {
    let mut files = Vec::new();
    if path.is_dir() {
        gather(path, path, &mut files)?;
    } else {
        files.push(("case.cu".to_owned(), fs::read(path)?));
    }
    let text = files.iter().find(|(name, _)| name == "case.cu");
    let (_, text) = text.with_context(|| format!("{}: no case.cu", path.display()))?;
    let text = String::from_utf8_lossy(text).into_owned();
    let mut steps: Vec<Step> = Vec::new();
    for (name, bytes) in &files {
        let mut words = vec!["write".to_owned(), name.clone()];
        words.extend(String::from_utf8_lossy(bytes).lines().map(str::to_owned));
        steps.push(Step(words));
    }
    let mut calls = Vec::new();
    for line in text.lines() {
        if let Some(body) = line.strip_prefix("//|") {
            let body = body.strip_prefix(' ').unwrap_or(body);
            steps
                .last_mut()
                .context(line.to_owned())?
                .0
                .push(body.to_owned());
        }
        let Some((key, value)) = line.strip_prefix("//#").and_then(|l| l.split_once(':')) else {
            continue;
        };
        let value = value.trim();
        match key {
            "Args" => calls.push(call(value)?),
            "Env" => {
                let (name, value) = value.split_once('=').with_context(|| line.to_owned())?;
                steps.push(Step::new(&["set", name, value]));
            }
            "File" => steps.push(Step::new(&["write", value])),
            "Link" => {
                let (name, target) = value.split_once(' ').with_context(|| line.to_owned())?;
                steps.push(Step::new(&["link", name, target]));
            }
            _ => {}
        }
    }
    steps.extend(calls.iter().cloned());
    steps.extend(calls);
    Ok(History(steps))
}

fn call(arguments: &str) -> Result<Step> {
    // For one toolkit: the others refuse it, and so does warpcc.
    let of_any = arguments
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .map_or(arguments, |(_, rest)| rest);
    let words = shlex::split(of_any).with_context(|| arguments.to_owned())?;
    let mut step = vec!["call".to_owned()];
    let fill = |word: String| {
        word.replace("{work}", "{root}/w")
            .replace("{toolkit}", "{tk}")
            .replace("{beside}", "{root}/home")
    };
    step.extend(words.into_iter().map(fill));
    Ok(Step(step))
}

fn gather(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            gather(root, &path, files)?;
        } else {
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            files.push((name, fs::read(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_calls_with_the_host_compiler() -> Result<()> {
        let host = Compiler {
            words: vec!["-ccbin".to_owned(), "g++-77".to_owned()],
            program: "g++-77".to_owned(),
            ..Compiler::default()
        };
        let all = cases(Scope::Whole, &host)?;
        for kind in ["case ", "mode ", "change "] {
            assert!(all.iter().any(|case| case.name.starts_with(kind)), "{kind}");
        }
        for case in &all {
            let calls = case.history.0.iter().filter(|step| step.is_call());
            assert!(calls.count() > 0, "{}", case.name);
            assert!(
                !case.history.to_string().contains("{host}"),
                "{}",
                case.name
            );
        }
        let named = |case: &&Case| case.history.to_string().contains("g++-77");
        assert!(all.iter().filter(named).count() > all.len() * 9 / 10);
        let quick = cases(Scope::Quick, &host)?;
        assert_eq!(quick.len(), QUICK.len());
        Ok(())
    }

    #[test]
    fn a_case_of_the_tests_runs_its_commands_twice() -> Result<()> {
        let history = of_the_test(&repo::root().join("cases/keep.cu"))?;
        let calls = history.0.iter().filter(|step| step.is_call());
        assert_eq!(calls.count(), 4);
        Ok(())
    }
}
