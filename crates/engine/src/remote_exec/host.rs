//! Packs gcc's host compile for another machine: the includes are resolved here, and the compiler proper and the assembler
//! are sent.
//!
//! `-fdirectives-only` keeps macros and columns as they are; after a full expansion, gcc's code without optimization
//! contains other `nop`s. The driver prints with `-###` the commands that it would start, so that its specs, `-march=native`
//! and the folders of its installation count. [`super::clang`] does the same for clang. With any other compiler the step
//! stays here.

use std::fs;
use std::path::{Path, PathBuf};

use warpcc_cache::Digest;
use warpcc_cache::command::CommandInput;
use warpcc_plan::{Arg, Part, Step, Tool};

use super::builder::{ActionBuilder, Packed};
use super::compiler::{self, MACHINE_SPECIFIC, STAYS_LOCAL, changed, words};
use super::names::{self, KEEP, MARK};
use crate::context::RunContext;
use crate::located::Located;
use crate::prefix_map::PREFIX_MAPS;
use crate::private_folder::replace;
use crate::search_path;

/// The path of one of a host compile's own files on the other machine.
fn place(name: &str) -> String {
    format!("{MARK}/host/{name}")
}

/// The names of a host compile's own files.
const SOURCE: &str = "in.ii";
const ASSEMBLY: &str = "out.s";

/// Packs the step; `None` if the compiler is not gcc, or has an option that does not work on another machine.
pub fn pack_gcc(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    folder: &Path,
) -> Option<Packed> {
    let mut builder = ActionBuilder::new(run, step.tool)?;
    let source = folder.join(SOURCE);
    // For `-###` the file only has to exist. This order finds out before the long preprocessing whether the step must stay
    // here.
    fs::write(&source, "").ok()?;
    let (ended, seen) = compiler::ask(run, index, &asking(step, &source)?, program)?;
    builder.seen.merge(&seen);
    let commands = Commands::read(std::str::from_utf8(&ended.stderr).ok()?)?;
    let looks_at_indentation = looks_at_indentation(&commands.compiler);
    let output = names::place(run, *step.writes.first()?)?;
    let arguments = host_commands(run, &mut builder, step.tool, &commands, &output)?;
    let (ended, seen) = compiler::ask(run, index, &preprocessing(step, &source)?, program)?;
    if !ended.stdout.is_empty() || !ended.stderr.is_empty() {
        return None;
    }
    builder.seen.merge(&seen);
    let text = fs::read(&source).ok()?;
    if MACHINE_SPECIFIC
        .iter()
        .any(|word| memchr::memmem::find(&text, word).is_some())
    {
        return None;
    }
    if looks_at_indentation
        && !begins_with_a_marker(
            &text,
            run.artifacts.path(compiler::source_of(step)?).to_str()?,
        )
    {
        return None;
    }
    let text = replace(&text, run.graph.private.as_bytes(), KEEP.as_bytes());
    fs::write(&source, &text).ok()?;
    builder.put(CommandInput {
        path: place(SOURCE),
        digest: Digest::of_bytes(&text),
        file: source,
        executable: false,
    })?;
    builder.close(step, arguments)
}

/// Packs the programs; returns the command to run on the other machine.
fn host_commands(
    run: &RunContext<'_>,
    builder: &mut ActionBuilder<'_, '_>,
    tool: Tool,
    commands: &Commands,
    output: &str,
) -> Option<Vec<String>> {
    let (name, rest) = commands.compiler.split_first()?;
    let mut compile = builder.add_program(Path::new(name))?;
    match (tool, &commands.assembler) {
        (Tool::HostAssembly, None) => {
            compile.extend(compiler_words(rest, &place(SOURCE), output)?);
            Some(compile)
        }
        (Tool::HostCompile, Some(assembler)) => {
            compile.extend(compiler_words(rest, &place(SOURCE), &place(ASSEMBLY))?);
            let (name, rest) = assembler.split_first()?;
            let path = run.options.variable("PATH");
            let found = search_path::find_program(name, path, run.options.directory)?;
            let mut assemble = builder.add_program(&found)?;
            assemble.extend(assembler_words(rest, &place(ASSEMBLY), output)?);
            // The shell only starts them: the result does not depend on it.
            let mut words = builder.add_starter(Path::new("/bin/sh"))?;
            words.push("-c".to_owned());
            words.push(format!("{} && {}", quoted(&compile), quoted(&assemble)));
            Some(words)
        }
        _ => None,
    }
}

fn preprocessing(step: &Step, to: &Path) -> Option<Step> {
    let change = |text: &str| matches!(text, "-c" | "-S").then_some("-E");
    let mut changed = changed(step, to, change)?;
    // The second option makes gcc look for precompiled headers, as in a compilation.
    let options = ["-fdirectives-only", "-fpch-preprocess"];
    changed.args.splice(0..0, options.map(Arg::text));
    Some(changed)
}

/// A step that would compile the preprocessed text. It is never run: the driver only prints its commands.
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

/// The programs that a driver would start, with their arguments.
#[derive(Debug, PartialEq, Eq)]
struct Commands {
    compiler: Vec<String>,
    assembler: Option<Vec<String>>,
}

impl Commands {
    /// Parses the output of `gcc -###`: each command is on a line that begins with a space.
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

/// cc1plus's arguments on the other machine; `None` if an argument may not mean the same there.
fn compiler_words(words: &[String], source: &str, output: &str) -> Option<Vec<String>> {
    let mut there = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            // These are names for files next to the output, which were not requested.
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
            _ if word.ends_with(SOURCE) && !word.starts_with('-') => {
                there.push(source.to_owned());
                continue;
            }
            // Ubuntu's driver also passes this option with preprocessed text, which already contains the definition.
            _ if word.starts_with("-D_FORTIFY_SOURCE=") => {}
            // These names are only compared with others.
            _ if PREFIX_MAPS.iter().any(|map| word.starts_with(map)) => {}
            _ if word.contains(['/', '@']) => return None,
            _ => {
                let of = |start: &str| word.strip_prefix(start);
                let feature = of("-fno-").or_else(|| of("-f"));
                let may = match feature {
                    Some(feature) => !STAYS_LOCAL.iter().any(|no| feature.starts_with(no)),
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
    Some(there)
}

/// Whether cc1plus must warn of misleading indentation.
fn looks_at_indentation(words: &[String]) -> bool {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let names = |word: &&String| word.starts_with("-W") && word.contains(INDENTATION);
    let mut named = words.iter().filter(names).peekable();
    match named.peek() {
        None => has("-Wall"),
        Some(_) => named.any(|word| *word != format!("-Wno-{INDENTATION}")),
    }
}

/// The only warning for which gcc reads the source again, to count visual columns. gcc does not do that after a line marker
/// (`seen_line_directive` in gcc's `c-indentation.cc`, since gcc 6), because the file may have been generated.
const INDENTATION: &str = "misleading-indentation";

/// Whether a compilation of `source` itself, whose preprocessed form is `text`, meets a line marker before any code, as a
/// compilation of `text` does. cudafe++'s output begins with one. A file that a person wrote does not, and neither may a
/// file that an option includes before it.
fn begins_with_a_marker(text: &[u8], source: &str) -> bool {
    let own = format!("\n# 1 \"{source}\"\n# ");
    let Some(at) = memchr::memmem::find(text, own.as_bytes()) else {
        return false;
    };
    let code = &text[at + own.len()..];
    let before = text[..at].split(|&b| b == b'\n');
    let mut markers = before.filter(|line| line.starts_with(b"# "));
    let brings_no_code = |marker: &[u8]| {
        let mut parts = marker.split(|&b| b == b'"').skip(1);
        let (name, flags) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
        // gcc gives no warnings for system headers.
        name.starts_with(b"<")
            || name == source.as_bytes()
            || flags.ends_with(b" 3")
            || flags.ends_with(b" 3 4")
    };
    code.first().is_some_and(u8::is_ascii_digit) && markers.all(brings_no_code)
}

/// The assembler's arguments on the other machine.
fn assembler_words(words: &[String], source: &str, output: &str) -> Option<Vec<String>> {
    let mut there = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            // Files that the assembler would look for are not on the other machine: it then fails there, and the step runs
            // here.
            "-I" => drop(words.next()?),
            "-o" => {
                words.next()?;
                there.extend(["-o".to_owned(), output.to_owned()]);
            }
            "--debug-prefix-map" => there.extend([word.to_owned(), words.next()?.to_owned()]),
            "--64" | "--noexecstack" | "--fatal-warnings" => there.push(word.to_owned()),
            _ if word.starts_with('-') => return None,
            _ => there.push(source.to_owned()),
        }
    }
    Some(there)
}

/// Quotes the words for a shell.
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

    /// Ubuntu 24.04's gcc 13 hardens by default, and prints it here.
    #[test]
    fn hardening_options_of_distributions_may_leave() {
        let said = " /usr/libexec/gcc/x86_64-linux-gnu/13/cc1plus -fpreprocessed in.ii \"-D_FORTIFY_SOURCE=3\" -quiet \
            -dumpbase x.ii -dumpbase-ext .ii -m64 \"-mtune=generic\" \"-march=x86-64\" -O3 \"-std=c++17\" -fdirectives-only -fPIC \
            -fasynchronous-unwind-tables -fstack-protector-strong -Wformat -Wformat-security -fstack-clash-protection \
            -fcf-protection -o /tmp/cc.s\n as --64 -o x.o /tmp/cc.s\n";
        let commands = Commands::read(said).expect("commands");
        let words = compiler_words(&commands.compiler[1..], "S", "O").expect("known words");
        assert!(
            words
                .join(" ")
                .starts_with("-fpreprocessed S -D_FORTIFY_SOURCE=3 -quiet"),
            "{words:?}"
        );
        let other = said.replace("_FORTIFY_SOURCE=3", "OTHER=/x");
        let commands = Commands::read(&other).expect("commands");
        assert_eq!(compiler_words(&commands.compiler[1..], "S", "O"), None);
    }

    #[test]
    fn options_that_read_or_write_other_files_stay_here() {
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
        assert!(may(&["-Wall", "-Wextra", "-Werror"]));
        assert!(may(&["-ffile-prefix-map=/home/ada=/warpcc-base/1"]));
        for word in [
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
        let maps = ["--debug-prefix-map".to_owned(), "/a=/b".to_owned()];
        let same = assembler_words(&maps, "S", "O");
        assert_eq!(same.as_deref(), Some(&maps[..]));
        let words = ["--64".to_owned(), "-al=list".to_owned()];
        assert_eq!(assembler_words(&words, "S", "O"), None);
    }

    #[test]
    fn which_compiles_check_indentation() {
        let looks = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            looks_at_indentation(&words)
        };
        assert!(looks("-O2 -Wall"));
        assert!(looks("-Werror=misleading-indentation"));
        assert!(looks("-Wall -Wno-error=misleading-indentation"));
        assert!(!looks("-Wno-misleading-indentation -Wall"));
        assert!(!looks("-Wextra"));
    }

    #[test]
    fn markers_come_before_code_where_a_tool_wrote_the_source() {
        let begins = |text: &str| begins_with_a_marker(text.as_bytes(), "/k/x.cpp");
        let head = "# 0 \"/k/x.cpp\"\n# 0 \"<built-in>\"\n#define A 1\n# 0 \"<command-line>\"\n\
            # 1 \"/usr/include/stdc-predef.h\" 1 3 4\nint s;\n# 0 \"<command-line>\" 2\n";
        let marked = "# 1 \"/k/x.cpp\"\n# 1 \"x.cu\"\nint a;\n";
        assert!(begins(&format!("{head}{marked}")));
        assert!(!begins(&format!("{head}# 1 \"/k/x.cpp\"\nint a;\n")));
        assert!(!begins(&format!("{head}# 1 \"/k/x.cpp\"\n# pragma x\n")));
        // A file that an option includes is read before the source.
        assert!(!begins(&format!("{head}# 1 \"./h.h\" 1\nint a;\n{marked}")));
        assert!(!begins(marked));
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted(&["a b".into(), "it's".into()]), r"'a b' 'it'\''s'");
    }
}
