//! The host compile for another machine: includes are resolved here, and the compiler proper and the assembler go along.
//!
//! `-fdirectives-only` leaves macros and columns as they are; after a full expansion gcc's code without optimization
//! has other `nop`s. What the driver would start is asked of it with `-###`, so that its specs, `-march=native` and the
//! folders of its installation are its own. Only gcc answers in these words; with another compiler the step stays here.

use std::fs;
use std::path::{Path, PathBuf};

use warpcc_cache::Digest;
use warpcc_cache::command::Input;
use warpcc_plan::{Arg, Part, Step, Tool};

use super::parcel::{Packed, Parcel};
use super::{KEEP, MARK};
use crate::artifact::replace;
use crate::process;
use crate::task::{Located, Worker};
use crate::turn::Turn;

/// Where a host compile's own files are there.
fn place(name: &str) -> String {
    format!("{MARK}/host/{name}")
}

/// What they are called.
const SOURCE: &str = "in.ii";
const ASSEMBLY: &str = "out.s";

/// Text that means something else there: a compilation's day or minute, and a precompiled header.
const OF_HERE: [&[u8]; 4] = [
    b"__DATE__",
    b"__TIME__",
    b"__TIMESTAMP__",
    b"#pragma GCC pch_preprocess",
];

/// Of gcc's options `-f…`: those that read or write other files, or write what they were told into the code.
const NOT_AWAY: [&str; 21] = [
    "auto-profile",
    "branch-probabilities",
    "callgraph-info",
    "compare-debug",
    "coverage",
    "debug",
    "dump",
    "lto",
    "module",
    "opt-info",
    "pch",
    "plugin",
    "profile",
    "record-gcc-switches",
    "save-optimization-record",
    "split-dwarf",
    "stack-usage",
    "test-coverage",
    "verbose-asm",
    "whopr",
    "working-directory",
];

impl Worker<'_> {
    /// Nothing where the compiler is not gcc, or is told what it cannot do elsewhere.
    pub fn pack_host_compile(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        folder: &Path,
    ) -> Option<Packed> {
        let mut parcel = Parcel::new(self)?;
        let source = folder.join(SOURCE);
        let has = |step: &Step, word: &str| step.args.iter().any(|a| a.as_text() == Some(word));
        if !has(step, "c++") {
            return None;
        }
        let ask = |changed: &Step| {
            let (ended, seen) = self
                .run(index, changed, program, None, &mut Turn::default())
                .ok()?;
            (ended.code == 0 && ended.signal.is_none()).then_some((ended, seen))
        };
        // It asks for the file only whether it is there; and what cannot go is known before the long part.
        fs::write(&source, "").ok()?;
        let (ended, seen) = ask(&asking(step, &source)?)?;
        parcel.seen.merge(&seen);
        let commands = Commands::read(std::str::from_utf8(&ended.stderr).ok()?)?;
        let output = self.place(*step.writes.first()?)?;
        let arguments = self.host_commands(&mut parcel, step.tool, &commands, &output)?;
        let (ended, seen) = ask(&preprocessing(step, &source)?)?;
        if !ended.stdout.is_empty() || !ended.stderr.is_empty() {
            return None;
        }
        parcel.seen.merge(&seen);
        let text = fs::read(&source).ok()?;
        if OF_HERE
            .iter()
            .any(|word| memchr::memmem::find(&text, word).is_some())
        {
            return None;
        }
        let text = replace(&text, self.graph.private.as_bytes(), KEEP.as_bytes());
        fs::write(&source, &text).ok()?;
        parcel.put(Input {
            path: place(SOURCE),
            digest: Digest::of_bytes(&text),
            file: source,
            executable: false,
        })?;
        parcel.close(step, arguments)
    }

    /// Packs the programs; gives the words of what is to run there.
    fn host_commands(
        &self,
        parcel: &mut Parcel<'_, '_>,
        tool: Tool,
        commands: &Commands,
        output: &str,
    ) -> Option<Vec<String>> {
        let (name, rest) = commands.compiler.split_first()?;
        let mut compile = parcel.add_program(Path::new(name))?;
        match (tool, &commands.assembler) {
            (Tool::HostAssembly, None) => {
                compile.extend(compiler_words(rest, &place(SOURCE), output)?);
                Some(compile)
            }
            (Tool::HostCompile, Some(assembler)) => {
                compile.extend(compiler_words(rest, &place(SOURCE), &place(ASSEMBLY))?);
                let (name, rest) = assembler.split_first()?;
                let path = self.setting.variable("PATH");
                let found = process::find_program(name, path, self.setting.directory)?;
                let mut assemble = parcel.add_program(&found)?;
                assemble.extend(assembler_words(rest, &place(ASSEMBLY), output)?);
                // The shell only starts them: the result does not depend on it.
                let seen = parcel.seen.clone();
                let mut words = parcel.add_program(Path::new("/bin/sh"))?;
                parcel.seen = seen;
                words.push("-c".to_owned());
                words.push(format!("{} && {}", quoted(&compile), quoted(&assemble)));
                Some(words)
            }
            _ => None,
        }
    }
}

/// The step with its words changed: what it does, what it reads, where it writes.
fn changed(step: &Step, to: &Path, change: impl Fn(&str) -> Option<&'static str>) -> Option<Step> {
    let output = *step.writes.first()?;
    let mut changed = step.clone();
    for arg in &mut changed.args {
        if let Some(text) = arg.as_text().and_then(&change) {
            *arg = Arg::text(text);
        } else if *arg == Arg::file(output) {
            *arg = Arg::text(to.to_str()?);
        }
    }
    Some(changed)
}

fn preprocessing(step: &Step, to: &Path) -> Option<Step> {
    let change = |text: &str| matches!(text, "-c" | "-S").then_some("-E");
    let mut changed = changed(step, to, change)?;
    // The second has it look for precompiled headers, as a compilation does.
    let options = ["-fdirectives-only", "-fpch-preprocess"];
    changed.args.splice(0..0, options.map(Arg::text));
    Some(changed)
}

/// What would be started for the preprocessed text. Nothing is.
fn asking(step: &Step, source: &Path) -> Option<Step> {
    let change = |text: &str| (text == "c++").then_some("c++-cpp-output");
    let to = source.with_extension("o");
    let mut changed = changed(step, &to, change)?;
    for arg in &mut changed.args {
        if matches!(arg.0[..], [Part::File(_)]) {
            *arg = Arg::text(source.to_str()?);
        }
    }
    changed
        .args
        .splice(0..0, ["-###", "-fdirectives-only"].map(Arg::text));
    Some(changed)
}

/// The programs that a driver would start, with their words.
#[derive(Debug, PartialEq, Eq)]
struct Commands {
    compiler: Vec<String>,
    assembler: Option<Vec<String>>,
}

impl Commands {
    /// What `gcc -###` says: each command on a line that begins with a space.
    fn read(said: &str) -> Option<Self> {
        let mut commands = said.lines().filter(|line| line.starts_with(' ')).map(words);
        let compiler = commands.next()??;
        let assembler = match commands.next() {
            Some(words) => Some(words?),
            None => None,
        };
        let is = |words: &[String], end: &str| {
            let name = words.first().map(PathBuf::from);
            name.is_some_and(|name| name.file_name().is_some_and(|n| n == end))
        };
        let known = is(&compiler, "cc1plus") && assembler.as_ref().is_none_or(|a| is(a, "as"));
        (known && commands.next().is_none()).then_some(Self {
            compiler,
            assembler,
        })
    }
}

/// The words of a line: between double quotes where they hold more than letters, with backslashes before what a shell
/// would take otherwise.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim().chars().peekable();
    while rest.peek().is_some() {
        let mut word = String::new();
        let mut quoted = false;
        loop {
            match rest.next() {
                Some('"') => quoted = !quoted,
                Some('\\') => word.push(rest.next()?),
                Some(' ') if !quoted => break,
                Some(letter) => word.push(letter),
                None if quoted => return None,
                None => break,
            }
        }
        words.push(word);
    }
    Some(words)
}

/// cc1plus's words there; nothing where one is not known to be the same there.
fn compiler_words(words: &[String], source: &str, output: &str) -> Option<Vec<String>> {
    let mut there = Vec::new();
    let mut warns_of_indentation = false;
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            // Names of files beside the output, which nobody asked for.
            "-dumpbase" | "-dumpbase-ext" | "-dumpdir" | "-auxbase" | "-auxbase-strip" => {
                words.next()?;
                continue;
            }
            "-o" => {
                words.next()?;
                there.extend(["-o".to_owned(), output.to_owned()]);
                continue;
            }
            "--param" => {
                there.push(word.to_owned());
                there.push(words.next()?.to_owned());
                continue;
            }
            "-quiet" | "-w" | "-ansi" | "-g0" => {}
            // It looks at how the source named by a line marker is indented, and says nothing where there is none.
            "-Wall" | "-Wmisleading-indentation" => warns_of_indentation = true,
            "-Wno-misleading-indentation" => warns_of_indentation = false,
            _ if word.ends_with(SOURCE) && !word.starts_with('-') => {
                there.push(source.to_owned());
                continue;
            }
            _ if word.contains(['/', '@']) => return None,
            _ => {
                let of = |start: &str| word.strip_prefix(start);
                let feature = of("-fno-").or_else(|| of("-f"));
                let may = match feature {
                    Some(feature) => !NOT_AWAY.iter().any(|no| feature.starts_with(no)),
                    None => ["-m", "-O", "-std=", "-W", "-pedantic", "--param="]
                        .iter()
                        .any(|start| word.starts_with(start)),
                };
                if !may {
                    return None;
                }
            }
        }
        there.push(word.to_owned());
    }
    (!warns_of_indentation).then_some(there)
}

/// The assembler's words there.
fn assembler_words(words: &[String], source: &str, output: &str) -> Option<Vec<String>> {
    let mut there = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            // What it would look for there is not there: then it fails, and is asked here.
            "-I" => drop(words.next()?),
            "-o" => {
                words.next()?;
                there.extend(["-o".to_owned(), output.to_owned()]);
            }
            "--64" | "--noexecstack" | "--fatal-warnings" => there.push(word.to_owned()),
            _ if word.starts_with('-') => return None,
            _ => there.push(source.to_owned()),
        }
    }
    Some(there)
}

/// As a shell takes them for what they are.
fn quoted(words: &[String]) -> String {
    let quoted = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Using built-in specs.\nCOLLECT_GCC_OPTIONS='-c' '-o' 'x.o'\n \
        /usr/lib/gcc/x86_64-linux-gnu/12/cc1plus -fpreprocessed /tmp/k/in.ii -quiet -dumpdir /tmp/k/ -dumpbase in.ii \
        -dumpbase-ext .ii -m64 \"-mtune=generic\" \"-march=x86-64\" -O2 -Wno-psabi -fdirectives-only -o /tmp/cc1.s\n\
        COMPILER_PATH=/usr/lib/gcc/\n as -I \"/a b/include\" --64 -o /tmp/k/in.o /tmp/cc1.s\n";

    #[test]
    fn the_driver_tells_what_it_would_start() {
        let commands = Commands::read(SAID).expect("commands");
        let compiler = compiler_words(&commands.compiler[1..], "S", "O").expect("known words");
        assert_eq!(
            compiler.join(" "),
            "-fpreprocessed S -quiet -m64 -mtune=generic -march=x86-64 -O2 -Wno-psabi -fdirectives-only -o O"
        );
        let assembler = commands.assembler.expect("an assembler");
        assert_eq!(assembler[2], "/a b/include");
        let assembler = assembler_words(&assembler[1..], "S", "O").expect("known words");
        assert_eq!(assembler.join(" "), "--64 -o O S");
        assert_eq!(Commands::read(" /usr/lib/llvm/bin/clang -cc1 x\n"), None);
        assert_eq!(Commands::read(&format!("{SAID} /x/collect2 -o a\n")), None);
    }

    #[test]
    fn what_reads_or_writes_other_files_stays() {
        let may = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            compiler_words(&words, "S", "O").is_some()
        };
        assert!(may(&[
            "-fPIC",
            "-O3",
            "-std=gnu++17",
            "-fno-exceptions",
            "-Wextra"
        ]));
        assert!(may(&["-Wall", "-Wno-misleading-indentation"]));
        for word in [
            "-Wall",
            "-fprofile-use=/x",
            "-fprofile-arcs",
            "-fno-lto",
            "-fplugin=x",
            "-specs=/x",
            "-g",
            "-unknown",
            "@file",
        ] {
            assert!(!may(&["-O2", word]), "{word}");
        }
        let words = ["--64".to_owned(), "-al=list".to_owned()];
        assert_eq!(assembler_words(&words, "S", "O"), None);
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted(&["a b".into(), "it's".into()]), r"'a b' 'it'\''s'");
    }
}
