//! Builds a workload three times, and reports seconds, the answers of the cache, and whether each
//! output is the same. It does not know where the workload comes from.
#![allow(clippy::print_stdout, reason = "the task is its own report")]

use super::catalogue::{Workload, folder};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

/// The results of one pass over the commands.
struct Pass {
    seconds: Vec<f64>,
    levels: Vec<String>,
    said: Vec<Output>,
    outputs: BTreeMap<String, String>,
}

/// Build with nvcc, with warpcc cold, with warpcc warm; print; fail on a difference.
pub fn compare(workload: &Workload, nvcc: &Path, warpcc: &Path) -> Result<()> {
    let cache = folder().join("cache").join(&workload.name);
    let keep = folder().join("keep").join(&workload.name);
    empty(&cache)?;
    let plain = || {
        empty(&keep)?;
        let mut command = Command::new(nvcc);
        command.arg("--keep").arg("--keep-dir").arg(&keep);
        Ok(command)
    };
    let reference = pass(workload, &cache, None, plain)?;
    let launcher = || {
        let mut command = Command::new(warpcc);
        command.arg(nvcc);
        Ok(command)
    };
    let cold = pass(workload, &cache, Some(warpcc), launcher)?;
    let warm = pass(workload, &cache, Some(warpcc), launcher)?;

    println!("{}", workload.name);
    let mut wrong = 0;
    for index in 0..workload.commands.len() {
        let same_words = [&cold, &warm]
            .iter()
            .all(|p| without_times(&p.said[index]) == without_times(&reference.said[index]));
        wrong += usize::from(!same_words);
        if is_program(&workload.commands[index]) {
            continue;
        }
        println!(
            "  {:<40} nvcc {:7.2} s  cold {:7.2} s {:<8} warm {:7.3} s {:<8}{}",
            shown(&workload.commands[index]),
            reference.seconds[index],
            cold.seconds[index],
            cold.levels[index],
            warm.seconds[index],
            warm.levels[index],
            if same_words {
                ""
            } else {
                "  OTHER DIAGNOSTICS"
            },
        );
    }
    empty(&keep)?;
    for (name, digest) in &reference.outputs {
        let verdict = match (cold.outputs.get(name), warm.outputs.get(name)) {
            (Some(a), Some(b)) if a == digest && b == digest => "identical",
            (Some(a), _) if a != digest => "DIFFERS cold",
            (Some(_), Some(_)) => "DIFFERS warm",
            _ => "MISSING",
        };
        wrong += usize::from(!verdict.starts_with(char::is_lowercase));
        println!("  {name:<40} {verdict}");
    }
    for name in cold.outputs.keys().chain(warm.outputs.keys()) {
        if !reference.outputs.contains_key(name) {
            wrong += 1;
            println!("  {name:<40} NOT MADE BY NVCC");
        }
    }
    if wrong > 0 {
        bail!("{}: {wrong} differences", workload.name);
    }
    Ok(())
}

fn pass(
    workload: &Workload,
    cache: &Path,
    counted: Option<&Path>,
    compiler: impl Fn() -> Result<Command>,
) -> Result<Pass> {
    empty(&workload.out)?;
    let mut pass = Pass {
        seconds: Vec::new(),
        levels: Vec::new(),
        said: Vec::new(),
        outputs: BTreeMap::new(),
    };
    for words in &workload.commands {
        let mut command = match words.first().and_then(|word| word.strip_prefix('!')) {
            Some(program) => {
                let mut command = Command::new(program);
                command.args(&words[1..]);
                command
            }
            None => {
                let mut command = compiler()?;
                command.args(words);
                command
            }
        };
        command
            .current_dir(&workload.dir)
            .envs(&workload.env)
            .env("WARPCC_DIR", cache);
        let before = counted.map(|warpcc| counters(warpcc, cache)).transpose()?;
        let start = Instant::now();
        let output = command.output().context("starting a compiler")?;
        pass.seconds.push(start.elapsed().as_secs_f64());
        ensure!(
            output.status.success(),
            "{} failed: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        let after = counted.map(|warpcc| counters(warpcc, cache)).transpose()?;
        pass.levels.push(match (before, after) {
            (Some(before), Some(after)) => level(&before, &after).to_owned(),
            _ => String::new(),
        });
        pass.said.push(output);
    }
    digest_tree(&workload.out, &workload.out, &mut pass.outputs)?;
    Ok(pass)
}

fn counters(warpcc: &Path, cache: &Path) -> Result<Value> {
    let output = Command::new(warpcc)
        .args(["stats", "--json"])
        .env("WARPCC_DIR", cache)
        .output()
        .context("starting warpcc stats")?;
    serde_json::from_slice(&output.stdout).context("`warpcc stats --json` printed no JSON")
}

/// One word for the part of the cache that answered a command.
fn level(before: &Value, after: &Value) -> &'static str {
    let grew = |pointer: &str| {
        let count = |value: &Value| value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        count(after) > count(before)
    };
    let tools = |field: &str| {
        ["cudafe++", "cicc", "ptxas", "host", "nvlink", "fatbinary"]
            .iter()
            .any(|tool| grew(&format!("/steps/{tool}/{field}")))
    };
    if grew("/invocations/direct_hits") {
        "direct"
    } else if grew("/invocations/fallbacks") {
        "fallback"
    } else if tools("misses") {
        if tools("hits") { "part" } else { "miss" }
    } else if tools("hits") {
        "steps"
    } else {
        "-"
    }
}

/// The output without the compile times of `ptxas -v`, which no two runs share.
fn without_times(output: &Output) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&text)
        .lines()
        .filter(|line| !line.contains("ompile time = "))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether the command is a program of the build's own, such as `ar`, and not nvcc.
fn is_program(words: &[String]) -> bool {
    words.first().is_some_and(|word| word.starts_with('!'))
}

/// The file a command is about: its last word that names a source or an archive, or else an
/// object.
fn shown(words: &[String]) -> String {
    let last = |ends: &[&str]| {
        let mut words = words.iter().rev();
        words.find(|word| ends.iter().any(|end| word.ends_with(end)))
    };
    last(&[".cu", ".cpp", ".a"])
        .or_else(|| last(&[".o"]))
        .map_or_else(String::new, |word| {
            let name = Path::new(word).file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        })
}

fn digest_tree(root: &Path, dir: &Path, found: &mut BTreeMap<String, String>) -> Result<()> {
    for item in fs::read_dir(dir)? {
        let path = item?.path();
        if path.is_dir() {
            digest_tree(root, &path, found)?;
        } else {
            let digest = Sha256::digest(fs::read(&path)?);
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
            found.insert(
                name.into_owned(),
                digest.iter().map(|b| format!("{b:02x}")).collect(),
            );
        }
    }
    Ok(())
}

fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())
}
