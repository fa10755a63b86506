//! Identifies everything besides the case that nvcc's result depends on: the toolkit, the host compiler, and how
//! processes run here.
//!
//! Programs of the host count by their contents. Everything in the toolkit and in the folders that gcc searches counts by
//! name, size and time, as packages install it: to read a gigabyte in each test would take longer than nvcc.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::space::{Toolkit, hash_small_headers, is_small};

/// The programs that gcc starts.
const PARTS: [&str; 5] = ["cc1", "cc1plus", "as", "collect2", "ld"];

/// Feeds all of it to the hasher. `None` where the toolkit is not one of `xtask/toolkits`: its contents are not known.
pub fn identify(toolkit: &Toolkit, words: &[OsString], into: &mut impl Hasher) -> Option<()> {
    let top = match is_small(toolkit) {
        true => {
            list(&toolkit.top(), Depth::One, into);
            hash_small_headers(into);
            Toolkit::all()
                .into_iter()
                .find(|real| real.name == toolkit.name)?
                .top()
        }
        false => toolkit.top(),
    };
    let marker = top
        .ancestors()
        .find_map(|folder| fs::read(folder.join(".warpcc-toolkit")).ok())?;
    (&toolkit.nvcc, marker).hash(into);
    list(&top, Depth::All, into);
    host(into)?;
    // `-ccbin g++-12` and the like: by the rule that any word may name a program.
    for word in words {
        let text = word.to_string_lossy();
        for part in text.split(['=', ' ']) {
            if let Some(program) = program(OsStr::new(part)) {
                (part, contents(&program)?).hash(into);
            }
        }
    }
    processes(into);
    Some(())
}

fn host(into: &mut impl Hasher) -> Option<()> {
    let gcc = program(OsStr::new("gcc"))?;
    (&gcc, contents(&gcc)?, said(&gcc, &["--version"])?).hash(into);
    for part in PARTS {
        let path = said(&gcc, &[&format!("-print-prog-name={part}")])?;
        let path = program(OsStr::new(path.trim()))?;
        (&path, contents(&path)?).hash(into);
    }
    for folder in headers(&gcc)? {
        list(&folder, Depth::All, into);
    }
    for folder in libraries(&gcc)? {
        list(&folder, Depth::One, into);
    }
    Some(())
}

/// The folders in which gcc looks for headers, as it prints them.
fn headers(gcc: &Path) -> Option<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for language in ["c", "c++"] {
        let text = said(gcc, &["-v", "-E", "-x", language, "/dev/null"])?;
        let (_, listed) = text.split_once("<...> search starts here:\n")?;
        let (listed, _) = listed.split_once("End of search list.")?;
        found.extend(
            listed
                .lines()
                .filter_map(|line| fs::canonicalize(line.trim()).ok()),
        );
    }
    // A folder below another one is listed with that one.
    let all = found.clone();
    found.retain(|folder| !folder.ancestors().skip(1).any(|above| all.contains(above)));
    Some(found)
}

/// The folders in which gcc looks for libraries.
fn libraries(gcc: &Path) -> Option<BTreeSet<PathBuf>> {
    let text = said(gcc, &["-print-search-dirs"])?;
    let listed = text
        .lines()
        .find_map(|line| line.strip_prefix("libraries: ="))?;
    Some(
        listed
            .split(':')
            .filter_map(|folder| fs::canonicalize(folder).ok())
            .collect(),
    )
}

/// The user, the limits that show in outputs, the processors that `--threads 0` counts, and the GPU that `-arch=native`
/// means.
fn processes(into: &mut impl Hasher) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines() {
        if ["Uid:", "Gid:", "Groups:", "Umask:"]
            .iter()
            .any(|name| line.starts_with(name))
        {
            line.hash(into);
        }
    }
    std::thread::available_parallelism()
        .map_or(0, usize::from)
        .hash(into);
    fs::read("/proc/driver/nvidia/version").ok().hash(into);
    let devices = names(Path::new("/dev"));
    devices
        .iter()
        .filter(|name| name.to_string_lossy().starts_with("nvidia"))
        .for_each(|name| name.hash(into));
}

#[derive(Clone, Copy, PartialEq)]
enum Depth {
    One,
    All,
}

/// Names, sizes and times. A link also counts by its target.
fn list(folder: &Path, depth: Depth, into: &mut impl Hasher) {
    folder.hash(into);
    for name in names(folder) {
        let path = folder.join(&name);
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        name.hash(into);
        if meta.is_dir() {
            if depth == Depth::All {
                list(&path, depth, into);
            }
            continue;
        }
        let reached = match meta.is_symlink() {
            true => fs::metadata(&path).ok().filter(|to| !to.is_dir()),
            false => Some(meta),
        };
        let told = reached.map(|meta| (meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode()));
        (fs::read_link(&path).ok(), told).hash(into);
    }
}

fn names(folder: &Path) -> BTreeSet<OsString> {
    let listing = fs::read_dir(folder).into_iter().flatten().flatten();
    listing.map(|item| item.file_name()).collect()
}

/// The executable file that a word names, by its path or on PATH.
fn program(word: &OsStr) -> Option<PathBuf> {
    let executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
    };
    if word.is_empty() {
        return None;
    }
    let path = PathBuf::from(word);
    if path.components().count() > 1 {
        return Some(path).filter(executable);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(word))
        .find(executable)
}

fn contents(path: &Path) -> Option<u128> {
    fs::read(path)
        .ok()
        .map(|bytes| xxhash_rust::xxh3::xxh3_128(&bytes))
}

/// Both streams of a program that runs with an empty environment.
fn said(program: &Path, arguments: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8");
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}
