//! Finds the nvcc of a command: from the command line, the settings, or PATH.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use warpcc_engine::search_path::is_executable;

use crate::config::Config;
use crate::locate;
use crate::process_context::ProcessContext;

/// The nvcc for `run` and `why`: from an option or argument, else from the setting, else from PATH, else from the toolkit that a
/// variable names.
pub fn find_nvcc(
    named: Option<&Path>,
    config: &Config,
    context: &ProcessContext,
) -> anyhow::Result<PathBuf> {
    let path = context
        .environment
        .iter()
        .find(|(n, _)| n == "PATH")
        .map(|(_, v)| v.as_os_str());
    // As in the launcher, the setting applies to a name without a folder.
    let is_bare = |name: &&Path| {
        locate::is_nvcc(name.as_os_str())
            && (name.components().count() == 1 || locate::is_ourselves(name, &context.ourselves))
    };
    let chosen = config.nvcc.value.as_deref();
    let name = named
        .filter(|name| chosen.is_none() || !is_bare(name))
        .or(chosen)
        .map_or(OsStr::new("nvcc"), Path::as_os_str);
    let found = locate::compiler(name, path, &context.ourselves).or_else(|| {
        let in_toolkit = locate::in_toolkit(name, &context.environment, &context.ourselves);
        in_toolkit
            .filter(|_| locate::is_nvcc(name))
            .map(|(file, _)| file)
    });
    found.with_context(|| {
        format!(
            "{} is not in PATH, and no CUDA_HOME or CUDA_PATH has it; name it with WARPCC_NVCC or --nvcc",
            name.display()
        )
    })
}

/// Take the compiler's name off the front of `run`'s or `why`'s arguments, if it is there.
///
/// A compiler is named `nvcc` or begins so (`/opt/cuda/bin/nvcc-13.0`); a source
/// file that begins so (`nvcc_test.cu`) has an extension that says otherwise.
pub fn split_compiler(args: &[OsString]) -> (Option<&Path>, &[OsString]) {
    match args.split_first() {
        Some((first, rest)) if names_compiler(Path::new(first)) => (Some(Path::new(first)), rest),
        _ => (None, args),
    }
}

/// The program at the beginning of a command line, if it is not nvcc: `gcc -c x.c`.
pub fn program_that_is_no_nvcc(args: &[OsString], context: &ProcessContext) -> Option<PathBuf> {
    let first = Path::new(args.first()?);
    let is_word = !first.as_os_str().as_encoded_bytes().starts_with(b"-");
    if !is_word || names_compiler(first) || names_input(first) {
        return None;
    }
    let path = context.environment.iter().find(|(n, _)| n == "PATH");
    let path = path.map(|(_, value)| value.as_os_str());
    let found = locate::compiler(first.as_os_str(), path, &context.ourselves)?;
    is_executable(&context.directory.join(&found)).then_some(found)
}

/// Fails if the command line is another program's.
///
/// # Errors
/// The program's name.
pub fn refuse_other_programs(args: &[OsString], context: &ProcessContext) -> anyhow::Result<()> {
    match program_that_is_no_nvcc(args, context) {
        Some(program) => bail!(
            "{} is not nvcc: give the arguments of nvcc, with or without its name before them",
            program.display()
        ),
        None => Ok(()),
    }
}

fn names_compiler(first: &Path) -> bool {
    let name = first.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with("nvcc")) && !names_input(first)
}

/// Whether a file's ending says that nvcc would read it.
fn names_input(file: &Path) -> bool {
    let is_input = |ending: &OsStr| {
        [
            "cu", "c", "cc", "cpp", "cxx", "o", "a", "so", "ptx", "cubin", "fatbin",
        ]
        .iter()
        .any(|known| ending == *known)
    };
    file.extension().is_some_and(is_input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_told_from_the_arguments() {
        let split = |line: &str| {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let (compiler, rest) = split_compiler(&args);
            (compiler.map(|path| path.display().to_string()), rest.len())
        };
        assert_eq!(split("nvcc -c x.cu"), (Some("nvcc".into()), 2));
        assert_eq!(
            split("/cuda/bin/nvcc-13.0 x.cu"),
            (Some("/cuda/bin/nvcc-13.0".into()), 1)
        );
        assert_eq!(split("-c x.cu"), (None, 2));
        assert_eq!(split("nvcc_test.cu -c"), (None, 2));
        assert_eq!(split(""), (None, 0));
    }

    #[test]
    fn another_program_is_told_from_nvcc_and_from_its_arguments() {
        let context = ProcessContext {
            ourselves: Vec::new(),
            has_proc: true,
            directory: "/".into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            started: std::time::SystemTime::UNIX_EPOCH,
        };
        let other = |line: &str| {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            program_that_is_no_nvcc(&args, &context).is_some()
        };
        for (line, expected) in [
            ("sh -c x.c", true),
            ("/bin/sh x.cu", true),
            ("nvcc -c x.cu", false),
            ("-c x.cu", false),
            ("x.cu y.cu", false),
            ("no-such-program x.cu", false),
            ("", false),
        ] {
            assert_eq!(other(line), expected, "{line}");
        }
    }
}
