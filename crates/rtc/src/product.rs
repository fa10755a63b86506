//! What another compiler makes (CuPy's, Numba's or cuda.core's own), to be kept as this library keeps its own images.
//!
//! The caller says what decides the result, and compiles it itself where it is not found. Files that NVRTC could include
//! count as they do for a [`CompileRequest`].

use std::path::PathBuf;
use std::sync::Arc;

use crate::option_rules::{pre_include, reads_or_writes_more};
use crate::request::{CompileRequest, Text};
use crate::target::{RealArch, Target};

/// What decides the result of another compiler.
#[derive(Debug, Clone)]
pub struct Product {
    /// Its name in messages.
    pub name: Arc<str>,
    /// Everything that decides the result but files: labels and bytes, in order.
    pub parts: Vec<(String, Vec<u8>)>,
    /// Files whose content decides the result: the compiler's libraries.
    pub files: Vec<PathBuf>,
    /// The program, if files may be included into it.
    program: Option<CompileRequest>,
    /// The option that forbids to keep the result, as it makes the compiler read or write files that are not known.
    unknown: Option<String>,
}

impl Product {
    /// A product that only `parts` and `files` decide.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            parts: Vec::new(),
            files: Vec::new(),
            program: None,
            unknown: None,
        }
    }

    /// What NVRTC makes of a program for a caller that runs NVRTC itself, with these options. Files that it may include are
    /// looked for in the working directory, in `folders` and in the folders of the options.
    #[must_use]
    pub fn of_program(mut self, source: &str, options: &[String], folders: &[PathBuf]) -> Self {
        let mut program = CompileRequest::new(self.name.clone(), "", placeholder());
        // As the text of a header it is searched for names in the working directory too.
        program.headers.push(Text::new("program", source));
        program.include_folders = folders.to_vec();
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            self.part("option", option.as_bytes());
            if let Some(word) = takes_the_next(option) {
                let value = rest.next().map_or("", String::as_str);
                self.part("option", value.as_bytes());
                match word {
                    Names::Folder => program.include_folders.push(value.into()),
                    Names::File => program.options.push(format!("-include={value}").into()),
                }
            } else if let Some(folder) = include_folder(option) {
                program.include_folders.push(folder.into());
            } else if reads_or_writes_more(option) {
                self.unknown = Some(option.clone());
            } else {
                program.options.push(option.as_str().into());
            }
        }
        self.part("source", source.as_bytes());
        self.program = Some(program);
        self
    }

    /// Adds a part.
    pub fn part(&mut self, label: &str, bytes: &[u8]) {
        self.parts.push((label.to_owned(), bytes.to_vec()));
    }

    pub(crate) fn program(&self) -> Option<&CompileRequest> {
        self.program.as_ref()
    }

    /// Why the result must not be stored.
    pub(crate) fn unknown(&self) -> Option<String> {
        let option = self.unknown.as_ref()?;
        Some(format!(
            "{} is not stored: {option} makes the compiler read or write other files",
            self.name
        ))
    }
}

/// The target of a product, which only its maker knows: the first GPU of all, since an entry must have a target that can be
/// read back.
pub(crate) fn placeholder() -> Target {
    Target::Cubin(RealArch::new(10))
}

enum Names {
    Folder,
    File,
}

/// Options whose value is the next one.
fn takes_the_next(option: &str) -> Option<Names> {
    match option.trim() {
        "-I" | "--include-path" | "-include-path" => Some(Names::Folder),
        "-include" | "--pre-include" => Some(Names::File),
        _ => None,
    }
}

/// The folder that an option names.
fn include_folder(option: &str) -> Option<&str> {
    if pre_include(option).is_some() {
        return None;
    }
    let long = ["--include-path", "-include-path"];
    let value = long
        .iter()
        .find_map(|word| option.strip_prefix(word)?.strip_prefix(['=', ' ']));
    let value = value.or_else(|| option.strip_prefix("-I"))?;
    Some(value.strip_prefix('=').unwrap_or(value).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(options: &[&str]) -> Vec<PathBuf> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let product = Product::new("k").of_program("", &options, &[]);
        product.program.expect("a program").include_folders
    }

    #[test]
    fn every_way_to_name_a_folder_is_understood() {
        let expected = vec![PathBuf::from("/a b")];
        for options in [
            &["-I/a b"][..],
            &["-I", "/a b"],
            &["-I /a b"],
            &["-I=/a b"],
            &["--include-path=/a b"],
            &["--include-path /a b"],
            &["--include-path", "/a b"],
        ] {
            assert_eq!(folders(options), expected, "{options:?}");
        }
        assert!(folders(&["-include=/a", "--pre-include", "/b", "-DI=/c"]).is_empty());
    }

    #[test]
    fn what_reads_or_writes_other_files_is_not_kept() {
        let refused = |option: &str| {
            let product = Product::new("k").of_program("", &[option.to_owned()], &[]);
            product.unknown().is_some()
        };
        for option in [
            "--pch",
            "-use-pch=a",
            "--use-bundled-headers=/x",
            "--time=t",
        ] {
            assert!(refused(option), "{option}");
        }
        assert!(!refused("-DA") && !refused("-I/pch") && !refused("-dopt=on"));
    }
}
