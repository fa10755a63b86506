//! Finds the compiler that a launcher call means. It is never warpcc itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use warpcc_engine::search_path::is_executable;

use crate::log::Log;

/// Whether the name is nvcc's: `nvcc`, `nvcc-13.0`, `/opt/cuda/bin/nvcc`.
pub fn is_nvcc(name: &OsStr) -> bool {
    let Some(stem) = Path::new(name).file_name().and_then(OsStr::to_str) else {
        return false;
    };
    stem == "nvcc"
        || stem
            .strip_prefix("nvcc-")
            .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether the name is clang's: `clang++`, `clang-19`, `/usr/bin/clang++-22`.
pub fn is_clang(name: &OsStr) -> bool {
    let stem = Path::new(name).file_name().and_then(OsStr::to_str);
    let rest = stem.and_then(|stem| stem.strip_prefix("clang"));
    let rest = rest.map(|rest| rest.strip_prefix("++").unwrap_or(rest));
    rest.is_some_and(|rest| {
        let is_version = |v: &str| v.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        rest.is_empty() || rest.strip_prefix('-').is_some_and(is_version)
    })
}

/// The file of a compiler: its path as given, or the first file of that name in `path` that is not warpcc.
pub fn compiler(name: &OsStr, path: Option<&OsStr>, ourselves: &[PathBuf]) -> Option<PathBuf> {
    let given = Path::new(name);
    if given.components().count() > 1 || given.is_absolute() {
        if !is_ourselves(given, ourselves) {
            return Some(given.to_owned());
        }
        // The path leads to warpcc under a compiler's name: it means the real compiler of that name.
        return search(given.file_name()?, path, ourselves);
    }
    search(name, path, ourselves)
}

/// The file in a folder of `warpcc shim` that contains the path of its toolkit.
pub const SHIM_MARK: &str = ".warpcc-shim";

/// The variables that name a toolkit's folder, in the order in which build tools look at them.
const TOOLKITS: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];
/// Where a toolkit is installed unless somebody says otherwise.
const USUAL: &str = "/usr/local/cuda";

/// A compiler in a toolkit that is not in `PATH`, as PyTorch and CMake find it. The second value is the variable or folder that
/// led to it.
pub fn in_toolkit(
    name: &OsStr,
    environment: &[(OsString, OsString)],
    ourselves: &[PathBuf],
) -> Option<(PathBuf, &'static str)> {
    let named = named_toolkits(environment).chain([(PathBuf::from(USUAL), USUAL)]);
    named
        .map(|(folder, by)| (folder.join("bin").join(name), by))
        .find(|(file, _)| is_executable(file) && !is_ourselves(file, ourselves))
}

/// The nvcc of a toolkit that a variable names, and the variable, if another nvcc is used. An nvcc in `PATH` comes
/// first, and the user may not know that.
pub fn other_toolkit(
    used: &Path,
    environment: &[(OsString, OsString)],
    ourselves: &[PathBuf],
) -> Option<(PathBuf, &'static str)> {
    let used = used.canonicalize().ok()?;
    named_toolkits(environment)
        .map(|(folder, by)| (folder.join("bin/nvcc"), by))
        .filter(|(file, _)| is_executable(file) && !is_ourselves(file, ourselves))
        .find(|(file, _)| file.canonicalize().is_ok_and(|file| file != used))
}

/// Logs which toolkit is used, if the user may have meant another one.
pub fn log_choice(
    used: &Path,
    named_by: Option<&str>,
    environment: &[(OsString, OsString)],
    ourselves: &[PathBuf],
    log: &Log,
) {
    let shown = used.display();
    if let Some(by) = named_by {
        log.line(|| format!("nvcc is not in PATH; using {shown} from {by}"));
    }
    if let Some((other, by)) = other_toolkit(used, environment, ourselves) {
        log.line(|| format!("{shown} is used, and {by} has {}", other.display()));
    }
}

fn named_toolkits(
    environment: &[(OsString, OsString)],
) -> impl Iterator<Item = (PathBuf, &'static str)> + '_ {
    TOOLKITS.into_iter().filter_map(|name| {
        let (_, value) = environment.iter().find(|(n, _)| n == name)?;
        (!value.is_empty()).then(|| (behind_shim(value.into()), name))
    })
}

/// The toolkit that a folder of `warpcc shim` leads to; any other folder itself.
fn behind_shim(folder: PathBuf) -> PathBuf {
    let mark = std::fs::read(folder.join(SHIM_MARK)).ok();
    let toolkit = mark.as_deref().and_then(|text| text.strip_suffix(b"\n"));
    toolkit.map_or(folder, |toolkit| OsStr::from_bytes(toolkit).into())
}

fn search(name: &OsStr, path: Option<&OsStr>, ourselves: &[PathBuf]) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file) && !is_ourselves(file, ourselves))
}

/// Whether `file` is one of `ourselves` (this program, and any warpcc that runs it), through any
/// number of links.
pub fn is_ourselves(file: &Path, ourselves: &[PathBuf]) -> bool {
    file.canonicalize()
        .is_ok_and(|real| ourselves.contains(&real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["nvcc", "/usr/local/cuda/bin/nvcc", "nvcc-13.0"] {
            assert!(is_nvcc(OsStr::new(name)), "{name}");
        }
        for name in ["gcc", "nvcc_test", "nvcc-wrapper", "/usr/bin/nvc++"] {
            assert!(!is_nvcc(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_link_to_ourselves_is_passed_over() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::create_dir(&a)?;
        std::fs::create_dir(&b)?;
        let ourselves = [Path::new("/bin/true").canonicalize()?];
        std::os::unix::fs::symlink(&ourselves[0], a.join("nvcc"))?;
        std::fs::copy("/bin/ls", b.join("nvcc"))?;
        let path = std::env::join_paths([&a, &b]).map_err(std::io::Error::other)?;
        let found = compiler(OsStr::new("nvcc"), Some(&path), &ourselves);
        assert_eq!(found, Some(b.join("nvcc")));
        let through_link = compiler(a.join("nvcc").as_os_str(), Some(&path), &ourselves);
        assert_eq!(through_link, Some(b.join("nvcc")));
        Ok(())
    }

    #[test]
    fn toolkits_that_variables_name() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let folder = |name: &str| dir.path().join(name);
        for name in ["a", "b"] {
            std::fs::create_dir_all(folder(name).join("bin"))?;
            std::fs::copy("/bin/ls", folder(name).join("bin/nvcc"))?;
        }
        let (a, b) = (folder("a").join("bin/nvcc"), folder("b").join("bin/nvcc"));
        let environment = [
            ("CUDA_PATH".into(), folder("b").into()),
            ("CUDA_HOME".into(), folder("a").into()),
        ];
        let nvcc = OsStr::new("nvcc");
        let found = in_toolkit(nvcc, &environment, &[]);
        assert_eq!(found, Some((a.clone(), "CUDA_HOME")));
        // A link to ourselves: the next one.
        let found = in_toolkit(nvcc, &environment, &[a.canonicalize()?]);
        assert_eq!(found, Some((b.clone(), "CUDA_PATH")));
        let other = other_toolkit(&a, &environment, &[]);
        assert_eq!(other, Some((b, "CUDA_PATH")));
        assert_eq!(other_toolkit(&a, &environment[1..], &[]), None);

        // A folder of `warpcc shim` is its toolkit under another name.
        std::fs::create_dir_all(folder("shim").join("bin"))?;
        std::fs::copy("/bin/ls", folder("shim").join("bin/nvcc"))?;
        let mark = format!("{}\n", folder("a").display());
        std::fs::write(folder("shim").join(SHIM_MARK), mark)?;
        let environment = [("CUDA_HOME".into(), folder("shim").into())];
        assert_eq!(other_toolkit(&a, &environment, &[]), None);
        let found = in_toolkit(nvcc, &environment, &[]);
        assert_eq!(found, Some((a, "CUDA_HOME")));
        Ok(())
    }
}
