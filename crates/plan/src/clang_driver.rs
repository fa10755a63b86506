//! clang as the CUDA compiler: the command line of `clang++ -x cuda -c`, and its dry run (`-###`).
//!
//! clang prints one command on each line, with every word in double quotes:
//!
//! ```text
//!  "/usr/lib/llvm-22/bin/clang" "-cc1" ... "-o" "/tmp/k-sm_90-911d28.s" "-x" "cuda" "k.cu"
//!  "/cuda/bin/ptxas" "-m64" "--gpu-name" "sm_90" "--output-file" "/tmp/k-sm_90-ae2b71.o" "/tmp/k-sm_90-911d28.s"
//!  "/cuda/bin/fatbinary" "-64" "--create" "/tmp/k-194801.fatbin" "--image3=kind=elf,sm=90,file=/tmp/k-sm_90-ae2b71.o"
//!  "/usr/lib/llvm-22/bin/clang" "-cc1" ... "-fcuda-include-gpubinary" "/tmp/k-194801.fatbin" ... "-o" "k.o" "-x" "cuda" "k.cu"
//! ```
//!
//! Before them come lines about clang, which only a dry run has, and the driver's warnings. Names of intermediate files are
//! random: here they become fixed names in the private folder.

use std::collections::HashMap;

use crate::Unsupported;
use crate::host_options::host_side_file;
use crate::transcript::{PlanLine, Transcript};
use crate::words::Word;

/// The words that begin a command of clang's own compiler.
pub(crate) const COMPILER: &str = "-cc1";

/// The option of a command for a device.
const FOR_DEVICE: &str = "-fcuda-is-device";

/// Lines that a dry run prints and a compile does not.
const ABOUT_CLANG: [&str; 5] = [
    "Target: ",
    "Thread model: ",
    "InstalledDir: ",
    "Build config: ",
    "Configuration file: ",
];

/// The options with a value that is a word of its own. With another such option, the value looks like a second source, and the
/// call is bypassed.
const WITH_VALUE: [&str; 24] = [
    "-o",
    "-x",
    "-MF",
    "-MT",
    "-MQ",
    "-I",
    "-D",
    "-U",
    "-L",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-isysroot",
    "-Xclang",
    "-Xpreprocessor",
    "-Xcuda-ptxas",
    "-Xcuda-fatbinary",
    "-mllvm",
    "-target",
    "-Xarch_device",
    "-Xarch_host",
    "-resource-dir",
];

/// A command line of clang, as far as it has to be understood before the dry run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClangLine {
    pub(crate) inputs: Vec<String>,
    /// `-x`, the last one.
    pub(crate) language: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) compiles_only: bool,
    /// `-MD` or `-MMD`.
    pub(crate) writes_dependencies: bool,
    pub(crate) dependency_file: Option<String>,
    /// An option with which the call is bypassed.
    pub(crate) plain: Option<&'static str>,
}

impl ClangLine {
    pub(crate) fn read(args: &[String]) -> Self {
        let mut line = Self::default();
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            if !word.starts_with('-') || word == "-" {
                line.inputs.push(word.clone());
                continue;
            }
            let value = match WITH_VALUE.contains(&word.as_str()) {
                true => rest.next().cloned(),
                false => None,
            };
            match (word.as_str(), value) {
                ("-o", value) => line.output = value,
                ("-x", value) => line.language = value,
                ("-MF", value) => line.dependency_file = value,
                ("-c", _) => line.compiles_only = true,
                ("-MD" | "-MMD", _) => line.writes_dependencies = true,
                (word, _) if line.read_attached(word) => {}
                // -### prints as much as -v does.
                ("--verbose", _) => line.plain = Some("host option -v"),
                (word, _) => line.plain = line.plain.or_else(|| host_side_file(word)),
            }
        }
        line
    }

    /// Reads an option with its value in the same word. Whether it is one of ours.
    fn read_attached(&mut self, word: &str) -> bool {
        for (flag, place) in [
            ("-o", &mut self.output),
            ("-x", &mut self.language),
            ("-MF", &mut self.dependency_file),
        ] {
            if let Some(value) = word.strip_prefix(flag).filter(|value| !value.is_empty()) {
                *place = Some(value.to_owned());
                return true;
            }
        }
        false
    }
}

/// Whether clang compiles CUDA with these arguments. A source of C++ is another cache's.
pub fn compiles_cuda(args: &[String]) -> bool {
    let line = ClangLine::read(args);
    match line.language {
        Some(language) => language == "cuda",
        None => line.inputs.iter().any(|input| input.ends_with(".cu")),
    }
}

impl Transcript {
    /// Reads what `clang -###` wrote to stderr. `temporary` is the folder for temporary files in that run; the files get fixed
    /// names in the folder `private`. Both end in `/`.
    ///
    /// # Errors
    /// [`Unsupported`] names the line that is not understood.
    pub fn of_clang(text: &str, temporary: &str, private: &str) -> Result<Self, Unsupported> {
        let mut transcript = Self::default();
        let mut names = TemporaryNames {
            temporary,
            private,
            fixed: HashMap::new(),
        };
        for line in text.lines() {
            if line.starts_with(" \"") {
                let words = names.fix(unquote(line)?)?;
                transcript.entries.push(PlanLine::Command {
                    raw: words.join(" "),
                    words: words.into_iter().map(Word::Text).collect(),
                });
            } else if !(is_about_clang(line) || line.trim() == "(in-process)") {
                if !without_colours(line).contains(": warning: ") {
                    return Err(Unsupported::new("unknown dry-run line", line));
                }
                transcript.messages.push(line.to_owned());
            }
        }
        match transcript.entries.is_empty() {
            true => Err(Unsupported::new("the dry run has no commands", "")),
            false => Ok(transcript),
        }
    }
}

fn is_about_clang(line: &str) -> bool {
    line.contains("clang version ") || ABOUT_CLANG.iter().any(|start| line.starts_with(start))
}

/// A line without the escape sequences of a terminal's colours.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut text, part| {
        text.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
        text
    })
}

/// The words of a line of `-###`, in which `"`, `\` and `$` have a backslash before them.
fn unquote(line: &str) -> Result<Vec<String>, Unsupported> {
    let unknown = || Unsupported::new("unknown dry-run line", line);
    let mut words = Vec::new();
    let mut rest = line.chars();
    loop {
        match rest.next() {
            None => return Ok(words),
            Some(' ') => continue,
            Some('"') => {}
            Some(_) => return Err(unknown()),
        }
        let mut word = String::new();
        loop {
            match rest.next().ok_or_else(unknown)? {
                '"' => break,
                '\\' => word.push(rest.next().ok_or_else(unknown)?),
                other => word.push(other),
            }
        }
        words.push(word);
    }
}

/// Gives temporary files fixed names.
struct TemporaryNames<'a> {
    temporary: &'a str,
    private: &'a str,
    fixed: HashMap<String, String>,
}

impl TemporaryNames<'_> {
    fn fix(&mut self, words: Vec<String>) -> Result<Vec<String>, Unsupported> {
        let is_for_device = words.iter().any(|word| word == FOR_DEVICE);
        let mut fixed: Vec<String> = Vec::with_capacity(words.len());
        for word in words {
            // Every command writes the same rule to the same file, the host's last. In parallel each needs a file of its own.
            if is_for_device && fixed.last().is_some_and(|flag| flag == "-dependency-file") {
                let name = format!("{}device-{}.d", self.private, self.fixed.len());
                fixed.push(name);
                continue;
            }
            let Some(at) = word.find(self.temporary) else {
                fixed.push(word);
                continue;
            };
            let (head, path) = word.split_at(at);
            fixed.push(format!("{head}{}", self.name(path)?));
        }
        Ok(fixed)
    }

    /// `/tmp/k-sm_90-911d28.s` is `k-sm_90.s` in the private folder, and so is `/tmp/k-911d28/k-sm_90.s` of clang 16.
    fn name(&mut self, path: &str) -> Result<String, Unsupported> {
        if let Some(known) = self.fixed.get(path) {
            return Ok(known.clone());
        }
        let name = path.strip_prefix(self.temporary).unwrap_or(path);
        let fixed = match name.split_once('/') {
            Some((folder, name)) if !name.contains('/') => {
                without_random_end(folder).map(|_| name.to_owned())
            }
            Some(_) => None,
            None => name
                .rsplit_once('.')
                .and_then(|(stem, ending)| Some(format!("{}.{ending}", without_random_end(stem)?))),
        };
        let fixed = fixed.map(|name| format!("{}{name}", self.private));
        let taken = |name: &String| self.fixed.values().any(|other| other == name);
        let fixed = fixed.filter(|name| !taken(name));
        let fixed = fixed.ok_or_else(|| Unsupported::new("unknown temporary file", path))?;
        self.fixed.insert(path.to_owned(), fixed.clone());
        Ok(fixed)
    }
}

/// `k-sm_90-911d28` without its end; `None` where it has no such end.
fn without_random_end(name: &str) -> Option<&str> {
    let (stem, random) = name.rsplit_once('-')?;
    let is_random = !random.is_empty() && random.bytes().all(|b| b.is_ascii_hexdigit());
    is_random.then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{FileKind, Tool};
    use crate::{Invocation, TaskGraph};

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    /// Two architectures, shortened from clang 22.1.8 with CUDA 13.5.
    const DRY_RUN: &str = r#"Debian clang version 22.1.8 (1~deb12u1)
Target: x86_64-pc-linux-gnu
Thread model: posix
InstalledDir: /usr/lib/llvm-22/bin
clang++-22: warning: CUDA version is newer than the latest partially supported version 12.9 [-Wunknown-cuda-version]
 "/l/bin/clang" "-cc1" "-S" "-main-file-name" "k.cu" "-fcuda-is-device" "-target-cpu" "sm_80" "-DQ=\"a \\ \$b\"" "-dependency-file" "k.d" "-MT" "k.o" "-o" "/t/k-sm_80-d8fed4.s" "-x" "cuda" "k.cu"
 "/cuda/bin/ptxas" "-m64" "-O2" "--gpu-name" "sm_80" "--output-file" "/t/k-sm_80-0bb482.o" "/t/k-sm_80-d8fed4.s"
 "/l/bin/clang" "-cc1" "-S" "-main-file-name" "k.cu" "-fcuda-is-device" "-target-cpu" "sm_90" "-dependency-file" "k.d" "-MT" "k.o" "-o" "/t/k-sm_90-911d28.s" "-x" "cuda" "k.cu"
 "/cuda/bin/ptxas" "-m64" "-O2" "--gpu-name" "sm_90" "--output-file" "/t/k-sm_90-ae2b71.o" "/t/k-sm_90-911d28.s"
 "/cuda/bin/fatbinary" "-64" "--create" "/t/k-194801.fatbin" "--image3=kind=elf,sm=80,file=/t/k-sm_80-0bb482.o" "--image3=kind=elf,sm=90,file=/t/k-sm_90-ae2b71.o"
 "/l/bin/clang" "-cc1" "-emit-obj" "-main-file-name" "k.cu" "-dependency-file" "k.d" "-MT" "k.o" "-fcuda-include-gpubinary" "/t/k-194801.fatbin" "-o" "k.o" "-x" "cuda" "k.cu"
"#;

    #[test]
    fn a_dry_run_becomes_a_graph() {
        let transcript = Transcript::of_clang(DRY_RUN, "/t/", "/k/").expect("reads");
        assert_eq!(transcript.messages.len(), 1);
        let graph = TaskGraph::build(&transcript, "/k/").expect("a graph");
        let tools: Vec<Tool> = graph.steps.iter().map(|step| step.tool).collect();
        assert_eq!(
            tools,
            [
                Tool::Clang,
                Tool::Ptxas,
                Tool::Clang,
                Tool::Ptxas,
                Tool::Fatbinary,
                Tool::Clang
            ]
        );
        assert_eq!(graph.needs(0), [] as [usize; 0]);
        assert_eq!(graph.needs(2), [] as [usize; 0]);
        assert_eq!(graph.needs(4), [1, 3]);
        assert_eq!(graph.needs(5), [4]);
        assert_eq!(graph.steps[3].arch.as_deref(), Some("sm_90"));
        assert_eq!(graph.steps[2].arch.as_deref(), Some("sm_90"));
        assert!(graph.preprocesses_unseen(&graph.steps[0]));
        let has_quotes = |arg: &crate::Arg| arg.as_text() == Some("-DQ=\"a \\ $b\"");
        assert!(graph.steps[0].args.iter().any(has_quotes));
        let outputs = graph.files.iter().filter(|f| f.kind == FileKind::Output);
        let outputs: Vec<&str> = outputs.map(|file| file.path.as_str()).collect();
        assert_eq!(outputs, ["k.d", "k.o"]);
        assert!(graph.files.iter().any(|file| file.path == "/k/k-sm_90.s"));
    }

    #[test]
    fn temporary_folders_are_left_out() {
        // clang 14 and 16.
        let text = DRY_RUN
            .replace("/t/k-sm_80-d8fed4.s", "/t/k-d8fed4/k-sm_80.s")
            .replace("/t/k-sm_80-0bb482.o", "/t/k-0bb482/k-sm_80.o");
        let graph = |text: &str| {
            let transcript = Transcript::of_clang(text, "/t/", "/k/").expect("reads");
            TaskGraph::build(&transcript, "/k/").expect("a graph")
        };
        assert_eq!(graph(&text), graph(DRY_RUN));
    }

    #[test]
    fn the_unknown_is_refused() {
        for (what, with) in [
            ("InstalledDir: ", "Something: "),
            ("warning: ", "wurning: "),
            ("/t/k-194801.fatbin", "/t/k.fatbin"),
            (" \"-cc1\"", " -cc1"),
        ] {
            let text = DRY_RUN.replace(what, with);
            let transcript = Transcript::of_clang(&text, "/t/", "/k/");
            let graph = transcript.and_then(|t| TaskGraph::build(&t, "/k/"));
            assert!(graph.is_err(), "{with}");
        }
        assert!(Transcript::of_clang("", "/t/", "/k/").is_err());
    }

    #[test]
    fn command_lines_are_read() {
        let parse = |line: &str| Invocation::of_clang(&words(line));
        let call = parse("-x cuda -c k.cu -o out/k.o -MD -MF k.d -I inc --cuda-gpu-arch=sm_90");
        assert_eq!(call.plain, None);
        let outputs: Vec<String> = call.outputs().into_iter().map(|o| o.path).collect();
        assert_eq!(outputs, ["out/k.o", "k.d"]);
        for (line, outputs) in [
            ("-c a/k.cu", "k.o"),
            ("-c k.cu -ok2.o -MMD", "k2.o k2.d"),
            ("-xcuda -c k.cpp -MD -MFd", "k.o d"),
        ] {
            let call = parse(line);
            let made: Vec<String> = call.outputs().into_iter().map(|o| o.path).collect();
            assert_eq!(
                (made.join(" "), call.plain),
                (outputs.to_owned(), None),
                "{line}"
            );
        }
        for line in [
            "k.cu -o k",
            "-c k.cu other.cu",
            "-c k.cu -v",
            "-c -x cuda -",
            "-c k.cu -save-temps",
            "-c @words",
            "-c k.cu -unknown value",
        ] {
            assert!(parse(line).plain.is_some(), "{line}");
        }
        assert!(compiles_cuda(&words("-c k.cu")));
        assert!(compiles_cuda(&words("-x cuda -c k.cpp")));
        assert!(!compiles_cuda(&words("-c k.cpp -o x.cu.o")));
        assert!(!compiles_cuda(&words("-x c++ k.cu")));
    }
}
