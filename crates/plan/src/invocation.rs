//! argv → [`Invocation`]: what the user asked for, which files must exist afterwards, and which parts of the command line
//! belong to its key.

mod host_words;
mod key_parts;

use crate::Unsupported;
use crate::clang_driver::ClangLine;
use crate::flags::{self, Place};
use crate::options::{self, Effect, Takes};

/// One argument or option of the command line, in order, after options files are expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Option {
        long: &'static str,
        effect: Effect,
        value: Option<String>,
    },
    Forwarded(String),
    Input(String),
}

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Invocation {
    items: Vec<Item>,
    /// Why this call must run plain nvcc: there is nothing to cache, or something that is not supported.
    pub plain: Option<&'static str>,
    /// The same, because of an option that is in an options file of the host compiler.
    pub hidden_plain: Option<&'static str>,
    /// `-o`, the last one.
    pub output: Option<String>,
    /// `-odir`.
    pub output_directory: Option<String>,
    /// `-t` with anything but 1.
    pub threads: bool,
    /// The number of threads for `-t`, 0 for one per processor; `None` without `-t`, or if its value is not a number.
    pub thread_count: Option<usize>,
    /// `-keep`, `-save-temps`: the intermediate files are results.
    pub keeps: bool,
    /// `-MD` or `-MMD`.
    pub depend: Option<Depend>,
    /// `-c`, `-dc` or `-dw`.
    pub compiles_only: bool,
    /// `-lib`.
    pub library: bool,
    /// `-g` or `-G`, on the host or the device: the working directory is part of the result.
    pub debug: bool,
    /// An architecture is `native`.
    pub native: bool,
    /// `-ccbin`.
    pub compiler_bindir: Option<String>,
    /// The compiler is clang, and not nvcc.
    pub is_of_clang: bool,
    /// The files to compile or link.
    pub inputs: Vec<String>,
    /// The options files that were read.
    pub options_files: Vec<String>,
    /// The options files that only the host compiler reads (`-Xcompiler @FILE`), also those that they name. Some may not exist.
    pub host_options_files: Vec<String>,
}

/// `-MD` and what goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Depend {
    /// `-MMD`.
    pub skip_system: bool,
    /// `-MF`.
    pub output: Option<String>,
    /// `-MT`.
    pub target: Option<String>,
    /// `-MP`.
    pub phony: bool,
}

impl Invocation {
    /// Reads a command line of clang, where it is the CUDA compiler. Every word is part of the key as it is.
    /// [`Invocation::plain`] says why a call is bypassed.
    pub fn of_clang(args: &[String]) -> Self {
        let line = ClangLine::read(args);
        let depend = line.writes_dependencies.then(|| Depend {
            output: line.dependency_file.clone(),
            ..Depend::default()
        });
        let words = args.iter().cloned().map(Item::Forwarded);
        let language = line.language.is_some().then(|| Item::Option {
            long: "x",
            effect: Effect::Language,
            value: line.language.clone(),
        });
        let plain = match line.inputs.as_slice() {
            _ if line.plain.is_some() => line.plain,
            [] => Some("no input file"),
            [input] if input == "-" => Some("standard input"),
            [input] if input.starts_with('@') => Some("an options file of clang's"),
            [_] if !line.compiles_only => Some("clang without -c"),
            [_] => None,
            _ => Some("clang with several inputs"),
        };
        Self {
            items: words.chain(language).collect(),
            plain,
            output: line.output,
            depend,
            compiles_only: line.compiles_only,
            inputs: line.inputs,
            is_of_clang: true,
            ..Self::default()
        }
    }

    /// Parses a command line. `environment_flags` are NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS as nvcc sees them; `read`
    /// returns the content of an options file.
    ///
    /// # Errors
    /// An option is not in the table, a value is missing, or an options file cannot be read.
    pub fn parse(
        args: &[String],
        prepend: &str,
        append: &str,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Self, Unsupported> {
        let mut words = flags::split(prepend, Place::Variable)?;
        words.extend(args.iter().cloned());
        words.extend(flags::split(append, Place::Variable)?);
        let mut out = Self::default();
        // A forwarding option applies to the whole command line.
        let forwards = words.iter().any(|w| {
            w.starts_with('-')
                && options::find(w).is_some_and(|m| m.row.effect == Effect::ForwardUnknown)
        });
        out.walk(&words, forwards, read, 0)?;
        let host_words = out.host_words();
        out.note_host_words(&host_words, read);
        if out.inputs.is_empty() && out.plain.is_none() {
            out.plain = Some("no input file");
        }
        if out.inputs.iter().any(|i| i == "-") {
            out.plain = Some("standard input");
        }
        Ok(out)
    }

    fn walk(
        &mut self,
        words: &[String],
        forwards: bool,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
        depth: u32,
    ) -> Result<(), Unsupported> {
        if depth > 16 {
            return Err(Unsupported::new("options files nested too deeply", ""));
        }
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if !word.starts_with('-') || word == "-" {
                self.inputs.push(word.clone());
                self.items.push(Item::Input(word.clone()));
                continue;
            }
            let Some(found) = options::find(word) else {
                if !forwards {
                    return Err(Unsupported::new("unknown option", word));
                }
                self.items.push(Item::Forwarded(word.clone()));
                continue;
            };
            let value = match (found.row.takes, found.attached) {
                (Takes::Nothing, _) => None,
                (_, Some(attached)) => Some(attached.to_owned()),
                (_, None) => Some(
                    rest.next()
                        .ok_or_else(|| Unsupported::new("an option without its value", word))?
                        .clone(),
                ),
            };
            self.note(found.row.effect, value.as_deref())?;
            if found.row.effect == Effect::OptionsFile {
                for file in value.as_deref().unwrap_or_default().split(',') {
                    let text = read(file).and_then(|content| String::from_utf8(content).ok());
                    let text = text.ok_or_else(|| {
                        Unsupported::new("an options file that cannot be read", file)
                    })?;
                    self.options_files.push(file.to_owned());
                    let words = flags::split(&text, Place::File)?;
                    self.walk(&words, forwards, read, depth + 1)?;
                }
                continue;
            }
            self.items.push(Item::Option {
                long: found.row.long,
                effect: found.row.effect,
                value,
            });
        }
        Ok(())
    }

    fn note(&mut self, effect: Effect, value: Option<&str>) -> Result<(), Unsupported> {
        let value = value.unwrap_or_default();
        match effect {
            Effect::Keyed | Effect::Unkeyed | Effect::KeepDir | Effect::OptionsFile => {}
            Effect::ForwardUnknown | Effect::Language | Effect::HostOptions => {}
            Effect::Threads => {
                self.threads = value != "1";
                self.thread_count = value.parse().ok();
            }
            Effect::Compile => self.compiles_only = true,
            Effect::Library => self.library = true,
            Effect::Output => self.output = Some(value.to_owned()),
            Effect::OutputDirectory => self.output_directory = Some(value.to_owned()),
            Effect::Keep => self.keeps = true,
            Effect::Depend => _ = self.depend.get_or_insert_default(),
            Effect::DependNonSystem => self.depend.get_or_insert_default().skip_system = true,
            Effect::DependOutput => {
                self.depend.get_or_insert_default().output = Some(value.to_owned())
            }
            Effect::DependPhony => self.depend.get_or_insert_default().phony = true,
            Effect::DependTarget => {
                let depend = self.depend.get_or_insert_default();
                if depend.target.is_some() {
                    return Err(Unsupported::new("several -MT", value));
                }
                depend.target = Some(value.to_owned());
            }
            Effect::HostDebug => self.debug = true,
            Effect::Architecture => {
                self.native |= value.split([',', '=', '[', ']']).any(|v| v == "native")
            }
            Effect::CompilerBindir => self.compiler_bindir = Some(value.to_owned()),
            Effect::Plain(reason) => self.plain = Some(reason),
        }
        Ok(())
    }

    /// The options of the host compiler on nvcc's command line, in order.
    pub fn host_words(&self) -> Vec<String> {
        let words = self.quoted_host_words();
        let plain = words.map(|word| word.trim_matches(['"', '\'']).to_owned());
        plain.collect()
    }

    /// As [`Invocation::host_words`], with the quotes around words, which are the shell's.
    fn quoted_host_words(&self) -> impl Iterator<Item = &str> {
        self.items.iter().flat_map(|item| match item {
            Item::Option {
                effect: Effect::HostOptions,
                value: Some(value),
                ..
            } => value
                .split(|c: char| c == ',' || c.is_ascii_whitespace())
                .collect(),
            Item::Forwarded(word) => vec![word.as_str()],
            _ => Vec::new(),
        })
    }

    /// Whether an option is on the command line.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        let is = |item: &Item| matches!(item, Item::Option { long, .. } if *long == name);
        self.items.iter().any(is)
    }

    /// The value of an option's last appearance.
    pub(crate) fn value_of(&self, name: &str) -> Option<&str> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Option { long, value, .. } if *long == name => value.as_deref(),
            _ => None,
        })
    }

    /// Whether there is a `-keep-dir`. Without `-keep` it has no effect.
    pub fn names_keep_dir(&self) -> bool {
        self.asks_for("keep-dir")
    }

    /// Whether people or other tools read its outputs, which contain the names of sources: kept intermediate files, and
    /// `-cuda`.
    pub fn leaves_intermediate_files(&self) -> bool {
        let cuda = |item: &Item| matches!(item, Item::Option { long: "cuda", .. });
        self.keeps || self.items.iter().any(cuda)
    }

    /// Whether the result contains LTO code, in which cicc writes its working directory (seen on 13.5).
    pub fn makes_lto_code(&self) -> bool {
        self.items.iter().any(|item| match item {
            Item::Option { long, value, .. } => {
                *long == "dlink-time-opt" || value.as_ref().is_some_and(|v| v.contains("lto_"))
            }
            _ => false,
        })
    }

    /// Whether every path on the command line is absolute, so that the working directory does
    /// not decide what is read.
    pub fn is_absolute(&self) -> bool {
        self.inputs.iter().all(|i| i.starts_with('/'))
            && self.items.iter().all(|item| match item {
                Item::Option {
                    effect: Effect::Output | Effect::DependOutput | Effect::DependTarget,
                    ..
                } => true,
                Item::Option {
                    long,
                    value: Some(v),
                    ..
                } if PATH_OPTIONS.contains(long) => v.split(',').all(|p| p.starts_with('/')),
                Item::Option {
                    effect: Effect::HostOptions,
                    value: Some(v),
                    ..
                } => !v.contains("-I") && !v.contains("-i"),
                Item::Forwarded(word) => !word.contains("-I") && !word.contains("-i"),
                _ => true,
            })
    }
}

const PATH_OPTIONS: &[&str] = &[
    "pre-include",
    "include-path",
    "system-include",
    "library-path",
    "output-directory",
    "compiler-bindir",
    "archiver-binary",
    "libdevice-directory",
    "keep-dir",
    "options-file",
    "apply-controls",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Invocation, Unsupported> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Invocation::parse(&args, "", "", &|name| {
            (name == "x.rsp").then(|| b"-DQ=\"a b\" -o y.o".to_vec())
        })
    }

    #[test]
    fn modes_are_recognised() {
        let i = parse("-c a.cu -o b.o -t4 -MD -MF b.d -MT b.o -Xcompiler -fPIC").expect("parses");
        assert_eq!(i.inputs, ["a.cu"]);
        assert!(i.threads && i.compiles_only && i.output_is_free() && i.plain.is_none());
        assert_eq!(
            i.depend.as_ref().and_then(|d| d.output.as_deref()),
            Some("b.d")
        );
        let j = parse("-c a.cu -o c.o -MD -MF c.d -MT b.o -Xcompiler=-fPIC").expect("parses");
        assert_eq!(i.key_parts(), j.key_parts());
    }

    #[test]
    fn the_folder_of_an_object_made_of_ptx_counts() {
        let [a, b] = ["-dc x.ptx -o a/x.o", "-dc x.ptx -o b/x.o"]
            .map(|line| parse(line).expect("parses").key_parts());
        assert_ne!(a, b);
    }

    #[test]
    fn separated_values_are_not_inputs() {
        let i = parse("-diag-suppress 20012,186 -Xptxas -v --generate-code arch=compute_80,code=sm_80 -x cu a.cpp").expect("parses");
        assert_eq!(i.inputs, ["a.cpp"]);
    }

    #[test]
    fn options_files_are_expanded_and_remembered() {
        let i = parse("--options-file x.rsp -c a.cu").expect("parses");
        assert_eq!(i.output.as_deref(), Some("y.o"));
        assert_eq!(i.options_files, ["x.rsp"]);
        assert!(parse("-optf none.rsp a.cu").is_err());
    }

    #[test]
    fn options_that_bypass_the_cache() {
        assert_eq!(parse("-E a.cu").expect("parses").plain, Some("-E"));
        assert_eq!(parse("--version").expect("parses").plain, Some("--version"));
        assert_eq!(parse("-?").expect("parses").plain, Some("--help"));
        assert_eq!(
            parse("-c a.cu -time x").expect("parses").plain,
            Some("-time")
        );
        assert_eq!(
            parse("-c a.cu -Xcompiler -O2,--coverage")
                .expect("parses")
                .plain,
            Some("host option --coverage")
        );
        assert!(parse("-c a.cu -Wall").is_err());
        assert!(parse("-c a.cu -forward-unknown-to-host-compiler -Wall").is_ok());
        assert!(parse("a.cu -o").is_err());
        assert!(parse("-c a.cu -arch=native").expect("parses").native);
    }
}
