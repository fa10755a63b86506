//! Packs clang's host compile for another machine. clang resolves the includes here with `-frewrite-includes`, which keeps
//! macros, columns and line markers as they are. clang itself is sent, with the arguments that its driver would give it.
//!
//! Every argument must be known to mean the same there. If one is not, the step stays here.

use std::fs;
use std::path::Path;

use warpcc_cache::Digest;
use warpcc_cache::command::CommandInput;
use warpcc_plan::{Arg, Step, Tool};

use super::builder::{ActionBuilder, Packed};
use super::compiler::{self, MACHINE_SPECIFIC, STAYS_LOCAL, changed, words};
use super::names::{self, KEEP};
use crate::context::RunContext;
use crate::located::Located;
use crate::prefix_map::PREFIX_MAPS;
use crate::private_folder::replace;

/// Text besides [`MACHINE_SPECIFIC`] that matters: it depends on the depth of includes, and the packed text has none.
const INCLUDE_DEPTH: &[u8] = b"__INCLUDE_LEVEL__";

/// Options with a separate value that say where to look for headers, and where this machine's folders are.
const FOLDER_OPTIONS: [&str; 8] = [
    "-I",
    "-iquote",
    "-isystem",
    "-idirafter",
    "-cxx-isystem",
    "-internal-isystem",
    "-internal-externc-isystem",
    "-resource-dir",
];

/// Options with a folder behind `=`; it matters only in debug information.
const DEBUG_FOLDER_OPTIONS: [&str; 2] = ["-fdebug-compilation-dir=", "-fcoverage-compilation-dir="];

/// Options with a separate value that is no file.
const WITH_VALUE: [&str; 12] = [
    "-D",
    "-U",
    "-ferror-limit",
    "-main-file-name",
    "-mrelocation-model",
    "-pic-level",
    "-stack-protector",
    "-target-abi",
    "-target-cpu",
    "-target-feature",
    "-triple",
    "-tune-cpu",
];

/// Options without a value.
const PLAIN: [&str; 15] = [
    "-cc1",
    "-clear-ast-before-backend",
    "-debugger-tuning=gdb",
    "-disable-free",
    "-disable-llvm-verifier",
    "-discard-value-names",
    "-emit-obj",
    "-faddrsig",
    "-menable-no-infs",
    "-menable-no-nans",
    "-pic-is-pie",
    "-quiet",
    "-vectorize-loops",
    "-vectorize-slp",
    "-w",
];

/// Features whose value is no file.
const FEATURES: [&str; 8] = [
    "cf-protection=",
    "float-precision=",
    "fp-contract=",
    "fp-exception-behavior=",
    "gnuc-version=",
    "template-depth=",
    "unwind-tables=",
    "visibility=",
];

/// Beginnings of features without a value that read or write files, or write more than code.
const NOT_CLANGS: [&str; 6] = ["api-notes", "embed", "sanitize", "save", "time-", "xray"];

/// Packs the step; `None` if clang has an option that does not work on another machine.
pub fn pack_clang(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    folder: &Path,
) -> Option<Packed> {
    if step.tool != Tool::HostCompile {
        return None;
    }
    let mut builder = ActionBuilder::new(run, step.tool)?;
    let text_file = folder.join("in.cpp");
    let mut asking = step.clone();
    asking.args.insert(0, Arg::text("-###"));
    let (ended, seen) = compiler::ask(run, index, &asking, program)?;
    builder.seen.merge(&seen);
    let command = command(std::str::from_utf8(&ended.stderr).ok()?)?;
    let id = compiler::source_of(step)?;
    let output = names::place(run, *step.writes.first()?)?;
    // The source keeps its name, because the object contains it.
    let source = names::place(run, id)?;
    let here = run.artifacts.path(id).to_str()?;
    let (clang, rest) = command.split_first()?;
    let mut arguments = builder.add_program(Path::new(clang))?;
    arguments.extend(clang_words(rest, here, &source, &output)?);
    let rewriting = |text: &str| (text == "-c").then_some("-E");
    let mut rewriting = changed(step, &text_file, rewriting)?;
    rewriting.args.insert(0, Arg::text("-frewrite-includes"));
    let (ended, seen) = compiler::ask(run, index, &rewriting, program)?;
    if !ended.stdout.is_empty() || !ended.stderr.is_empty() {
        return None;
    }
    builder.seen.merge(&seen);
    let text = fs::read(&text_file).ok()?;
    let holds = |word: &[u8]| memchr::memmem::find(&text, word).is_some();
    if MACHINE_SPECIFIC.iter().any(|word| holds(word)) || holds(INCLUDE_DEPTH) {
        return None;
    }
    let text = replace(&text, run.graph.private.as_bytes(), KEEP.as_bytes());
    fs::write(&text_file, &text).ok()?;
    builder.put(CommandInput {
        path: source,
        digest: Digest::of_bytes(&text),
        file: text_file,
        executable: false,
    })?;
    builder.close(step, arguments)
}

/// The one command that `clang -###` prints, if it prints nothing else.
fn command(said: &str) -> Option<Vec<String>> {
    let mut commands = said.lines().filter(|line| line.starts_with(" \""));
    let command = words(commands.next()?)?;
    let complains = said.contains("warning: ") || said.contains("error: ");
    let is_known = command.get(1).is_some_and(|word| word == "-cc1");
    (is_known && !complains && commands.next().is_none()).then_some(command)
}

/// clang's arguments on the other machine, for a compile of the file `here`; `None` if an argument may not mean the same
/// there.
fn clang_words(words: &[String], here: &str, source: &str, output: &str) -> Option<Vec<String>> {
    let mut there = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-o" => {
                words.next()?;
                there.extend([word, output]);
            }
            "-x" => {
                there.extend([word, words.next().filter(|language| *language == "c++")?]);
            }
            _ if word == here => there.push(source),
            _ if FOLDER_OPTIONS.contains(&word) => drop(words.next()?),
            _ if DEBUG_FOLDER_OPTIONS.iter().any(|of| word.starts_with(of)) => {}
            _ if WITH_VALUE.contains(&word) => there.extend([word, words.next()?]),
            _ if PLAIN.contains(&word) || PREFIX_MAPS.iter().any(|map| word.starts_with(map)) => {
                there.push(word);
            }
            _ if word.starts_with("-D") || word.starts_with("-U") => there.push(word),
            _ if word.contains(['/', '@']) || word == "-mllvm" => return None,
            _ => {
                let of = |start: &str| word.strip_prefix(start);
                let may = match of("-fno-").or_else(|| of("-f")) {
                    Some(feature) if feature.contains('=') => {
                        FEATURES.iter().any(|known| feature.starts_with(known))
                    }
                    Some(feature) => {
                        let mut not = STAYS_LOCAL.iter().chain(&NOT_CLANGS);
                        !not.any(|no| feature.starts_with(no))
                    }
                    None => ["-m", "-O", "-std=", "-W", "-pedantic"]
                        .iter()
                        .any(|start| word.starts_with(start)),
                };
                if !may {
                    return None;
                }
                there.push(word);
            }
        }
    }
    Some(there.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Debian clang version 19.1.7\nInstalledDir: /usr/lib/llvm-19/bin\n (in-process)\n \
        \"/usr/lib/llvm-19/bin/clang\" \"-cc1\" \"-triple\" \"x86_64-pc-linux-gnu\" \"-emit-obj\" \
        \"-main-file-name\" \"x.cpp\" \"-fdebug-compilation-dir=/a b\" \"-resource-dir\" \"/usr/lib/llvm-19/lib/clang/19\" \
        \"-I\" \"/cuda/include\" \"-D\" \"A=\\\"/x\\\"\" \"-O2\" \"-Wall\" \"-fgnuc-version=4.2.1\" \"-o\" \"x.o\" \"-x\" \"c++\" \
        \"/tmp/k/x.cpp\"\n";

    fn there(words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        clang_words(&words, "/tmp/k/x.cpp", "S", "O").map(|words| words.join(" "))
    }

    #[test]
    fn the_driver_tells_what_it_would_run() {
        let command = command(SAID).expect("a command");
        let words = clang_words(&command[1..], "/tmp/k/x.cpp", "S", "O").expect("known words");
        assert_eq!(
            words.join(" "),
            "-cc1 -triple x86_64-pc-linux-gnu -emit-obj -main-file-name x.cpp -D A=\"/x\" -O2 -Wall \
             -fgnuc-version=4.2.1 -o O -x c++ S"
        );
        let warned = format!("clang: warning: argument unused\n{SAID}");
        assert_eq!(super::command(&warned), None);
        assert_eq!(super::command(&SAID.repeat(2)), None);
    }

    #[test]
    fn options_that_read_or_write_other_files_stay_here() {
        assert!(
            there(&[
                "-fexceptions",
                "-mframe-pointer=none",
                "-target-feature",
                "+avx2"
            ])
            .is_some()
        );
        for word in [
            "-include",
            "-include-pch",
            "-fprofile-instrument=clang",
            "-fsanitize-ignorelist=list",
            "-fsanitize=address",
            "-fpass-plugin=x.so",
            "-flto=full",
            "-fbasic-block-sections=list=x",
            "-mllvm",
            "-load",
            "-dependency-file",
            "other.cpp",
        ] {
            assert_eq!(there(&["-O2", word, "x"]), None, "{word}");
        }
    }
}
