//! The nvcc that a command means: as it is named, set or found.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::Context;

use crate::config::Config;
use crate::locate;
use crate::process_context::ProcessContext;

/// The nvcc that `run` and `why` mean: named by option or argument, else the setting, else PATH, else the toolkit that a
/// variable names.
pub fn find_nvcc(
    named: Option<&Path>,
    config: &Config,
    around: &ProcessContext,
) -> anyhow::Result<std::path::PathBuf> {
    let path = around
        .environment
        .iter()
        .find(|(n, _)| n == "PATH")
        .map(|(_, v)| v.as_os_str());
    // As the launcher: the setting holds for the bare word.
    let is_bare = |name: &&Path| {
        locate::is_nvcc(name.as_os_str())
            && (name.components().count() == 1 || locate::is_ourselves(name, &around.ourselves))
    };
    let chosen = config.nvcc.value.as_deref();
    let name = named
        .filter(|name| chosen.is_none() || !is_bare(name))
        .or(chosen)
        .map_or(OsStr::new("nvcc"), Path::as_os_str);
    let found = locate::compiler(name, path, &around.ourselves).or_else(|| {
        let in_toolkit = locate::in_toolkit(name, &around.environment, &around.ourselves);
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

fn names_compiler(first: &Path) -> bool {
    let Some(name) = first.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let source = |ending: &OsStr| {
        [
            "cu", "c", "cc", "cpp", "cxx", "o", "a", "so", "ptx", "cubin", "fatbin",
        ]
        .iter()
        .any(|known| ending == *known)
    };
    name.starts_with("nvcc") && !first.extension().is_some_and(source)
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
}
