//! Finds NVIDIA's libraries on a machine, in a documented order, and remembers what was tried.
//!
//! 1. the path that the caller gives: a file, or the folder it is in; then nothing else is tried
//! 2. `WARPCC_NVRTC`, `WARPCC_NVJITLINK`, likewise
//! 3. one that the process has loaded already, such as PyTorch's
//! 4. pip's wheels next to Python: `nvidia/cu13/lib`, `nvidia/cuda_nvrtc/lib`, `nvidia/nvjitlink/lib` in
//!    `site-packages` of `VIRTUAL_ENV`, `CONDA_PREFIX`, the running Python, the `python3` on `PATH`
//! 5. `CUDA_HOME`, `CUDA_PATH`, then `/usr/local/cuda`
//! 6. wherever the dynamic linker looks
//!
//! In each place the newest major version comes first. A library is never closed: functions of it may be in use.
#![expect(
    unsafe_code,
    reason = "opening a shared library runs its initialisers, which nobody can vouch for but its maker"
)]

use std::ffi::{OsStr, c_int};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::environment::Environment;
use crate::error::LibraryError;
use crate::version::{OLDEST, Version};

/// A flag of `dlopen(3)`: return only a library that is loaded already. It is the same in glibc and musl.
const RTLD_NOLOAD: c_int = 4;
/// The major versions of the libraries, newest first.
const MAJORS: [u32; 2] = [13, 12];

/// One of NVIDIA's libraries.
#[derive(Debug)]
pub(crate) struct LibraryNames {
    /// Its name in messages.
    pub name: &'static str,
    /// `libnvrtc.so`, to which a major version is added.
    pub file: &'static str,
    /// The variable that names it.
    pub variable: &'static str,
    /// The folders of pip's wheels, below `site-packages`.
    pub wheels: &'static [&'static str],
    /// How to install the library.
    pub advice: &'static str,
}

/// A library that is loaded for as long as the process lives.
struct Opened {
    library: &'static Library,
    /// The places that were tried before, for the message if this library does not work.
    tried: Vec<String>,
}

/// Opens the first library that loads, and calls `load` to get its functions. `load` may refuse it.
///
/// # Errors
/// No library loads, or `load` refuses it; the error has everything that was tried.
pub(crate) fn find<L>(
    wanted: &LibraryNames,
    explicit: Option<&Path>,
    beside: Option<&Path>,
    environment: &Environment,
    load: impl FnOnce(&'static Library) -> Result<L, String>,
) -> Result<L, LibraryError> {
    let Opened { library, tried } = open(wanted, explicit, beside, environment)?;
    load(library).map_err(|problem| failure(wanted, &problem, tried))
}

/// The file that [`find`] would try first, in the same order, without loading anything. `None` if a library that is loaded
/// already would be taken, or if only the dynamic linker knows. The caller must not rely on it: the file may not load.
pub(crate) fn locate(
    wanted: &LibraryNames,
    beside: Option<&Path>,
    environment: &Environment,
) -> Option<PathBuf> {
    if let Some(path) = environment.path(wanted.variable) {
        return match path.is_dir() {
            true => files_in(&path, wanted).into_iter().next(),
            false => path.is_file().then_some(path),
        };
    }
    let beside = beside.and_then(|folder| files_in(folder, wanted).into_iter().next());
    let is_loaded = |name: &String| {
        // SAFETY: with RTLD_NOLOAD nothing is loaded, so no initialiser runs.
        unsafe { Library::open(Some(name), RTLD_NOLOAD | RTLD_NOW) }.is_ok()
    };
    if beside.is_some() {
        return beside;
    }
    if sonames(wanted).iter().any(is_loaded) {
        return None;
    }
    let mut folders = folders(wanted, environment).into_iter();
    folders.find_map(|folder| files_in(&folder, wanted).into_iter().next())
}

fn open(
    wanted: &LibraryNames,
    explicit: Option<&Path>,
    beside: Option<&Path>,
    environment: &Environment,
) -> Result<Opened, LibraryError> {
    let mut tried = Vec::new();
    let only = match explicit {
        Some(path) => Some((path.to_path_buf(), "the given path")),
        None => environment
            .path(wanted.variable)
            .map(|path| (path, wanted.variable)),
    };
    if let Some((path, from)) = only {
        let candidates = match path.is_dir() {
            true => files_in(&path, wanted),
            false => vec![path.clone()],
        };
        if candidates.is_empty() {
            tried.push(format!(
                "{} ({from}): no {} in it",
                path.display(),
                wanted.file
            ));
        }
        return first(candidates, &mut tried)
            .map(|library| Opened {
                library,
                tried: tried.clone(),
            })
            .ok_or_else(|| failure(wanted, "what is named does not load", tried));
    }
    // NVRTC and the linker in one folder belong to one toolkit.
    if let Some(folder) = beside
        && let Some(library) = first(files_in(folder, wanted), &mut tried)
    {
        return Ok(Opened { library, tried });
    }
    for name in sonames(wanted) {
        // SAFETY: with RTLD_NOLOAD nothing is loaded, so no initialiser runs.
        if let Ok(library) = unsafe { Library::open(Some(&name), RTLD_NOLOAD | RTLD_NOW) } {
            return Ok(Opened {
                library: keep(library),
                tried,
            });
        }
    }
    tried.push(format!("{} in this process: not loaded", wanted.file));
    for folder in folders(wanted, environment) {
        let candidates = files_in(&folder, wanted);
        if candidates.is_empty() {
            tried.push(format!("{}: none there", folder.display()));
        }
        if let Some(library) = first(candidates, &mut tried) {
            return Ok(Opened { library, tried });
        }
    }
    let by_linker = sonames(wanted).into_iter().map(PathBuf::from).collect();
    first(by_linker, &mut tried)
        .map(|library| Opened {
            library,
            tried: tried.clone(),
        })
        .ok_or_else(|| failure(wanted, "", tried))
}

/// Loads a library that another one will request by its bare name: the dynamic linker then finds it loaded.
pub(crate) fn load_ahead(path: &Path) -> bool {
    path.is_file() && first(vec![path.to_path_buf()], &mut Vec::new()).is_some()
}

/// The driver's version, which is the newest toolkit that it knows: 13.0. It is queried before cudarc is used, because
/// cudarc panics if there is no driver, or if the driver lacks a function.
///
/// # Errors
/// There is no driver, or it is older than 12.0; the error has what was tried.
pub fn driver_version() -> Result<Version, LibraryError> {
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
    let wanted = LibraryNames {
        name: "the CUDA driver (libcuda.so.1)",
        file: "libcuda.so",
        variable: "",
        wheels: &[],
        advice: "install NVIDIA's driver; in a container, start it with the GPU (`--gpus all`). Compiling needs none",
    };
    let mut tried = Vec::new();
    let names = ["libcuda.so.1", "libcuda.so"].map(PathBuf::from).to_vec();
    let Some(library) = first(names, &mut tried) else {
        return Err(failure(&wanted, "there is none", tried));
    };
    // SAFETY: the name and the type belong together (cuda.h), and the library is never closed.
    let get = unsafe { library.get::<GetVersion>(b"cuDriverGetVersion") };
    let Ok(get) = get else {
        return Err(failure(&wanted, "it does not report its version", tried));
    };
    let mut version = 0;
    // SAFETY: a live number is given.
    let code = unsafe { get(&raw mut version) };
    let version = u32::try_from(version).unwrap_or(0);
    let version = Version::new(version / 1000, version % 1000 / 10);
    if code != 0 || version < OLDEST {
        let problem =
            format!("it is for CUDA {version} (error {code}), and 12.0 or newer is needed");
        return Err(failure(&wanted, &problem, tried));
    }
    Ok(version)
}

/// An error about a library that was found.
fn failure(wanted: &LibraryNames, problem: &str, tried: Vec<String>) -> LibraryError {
    LibraryError {
        library: wanted.name,
        problem: problem.to_owned(),
        advice: wanted.advice.to_owned(),
        tried,
    }
}

fn first(candidates: Vec<PathBuf>, tried: &mut Vec<String>) -> Option<&'static Library> {
    candidates.into_iter().find_map(|path| {
        // SAFETY: the file has NVIDIA's name and stands where NVIDIA's libraries stand, or the user named it.
        match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => {
                tried.push(format!("{}: loaded", path.display()));
                Some(keep(library))
            }
            Err(error) => {
                tried.push(format!("{}: {}", path.display(), describe(&error)));
                None
            }
        }
    })
}

fn describe(error: &libloading::Error) -> String {
    // The loader's message is in the source; the error itself only says that dlopen failed.
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn keep(library: Library) -> &'static Library {
    Box::leak(Box::new(library))
}

fn sonames(wanted: &LibraryNames) -> Vec<String> {
    MAJORS
        .iter()
        .map(|major| format!("{}.{major}", wanted.file))
        .collect()
}

/// The libraries in a folder, the newest first.
fn files_in(folder: &Path, wanted: &LibraryNames) -> Vec<PathBuf> {
    let named = sonames(wanted).into_iter().chain([wanted.file.to_owned()]);
    let paths = named.map(|name| folder.join(name));
    paths.filter(|path| path.is_file()).collect()
}

fn folders(wanted: &LibraryNames, environment: &Environment) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for packages in site_packages(environment) {
        folders.extend(
            wanted
                .wheels
                .iter()
                .map(|wheel| packages.join("nvidia").join(wheel)),
        );
    }
    folders.retain(|folder| folder.is_dir());
    let named = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|name| environment.path(name));
    for home in named.chain([PathBuf::from("/usr/local/cuda")]) {
        folders.extend(["lib64", "lib"].iter().map(|lib| home.join(lib)));
    }
    folders
}

/// The folders of Python's packages. Python is not started, because that takes as long as a compilation.
fn site_packages(environment: &Environment) -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|name| environment.path(name))
        .collect();
    let running = std::fs::read_link("/proc/self/exe").ok();
    let running = running.filter(|exe| {
        let name = exe.file_name().map(OsStr::to_string_lossy);
        name.is_some_and(|name| name.starts_with("python"))
    });
    let on_path = environment.get("PATH").and_then(|path| {
        let all = std::env::split_paths(path).map(|folder| folder.join("python3"));
        let mut all = all.filter(|python| python.is_file());
        all.next()
    });
    for python in [running, on_path].into_iter().flatten() {
        // The python3 of a virtual environment is a link to another Python; packages may be next to either.
        let resolved = std::fs::canonicalize(&python).ok();
        for file in [Some(python), resolved].into_iter().flatten() {
            prefixes.extend(file.parent().and_then(Path::parent).map(Path::to_path_buf));
        }
    }
    let mut packages = Vec::new();
    for prefix in prefixes {
        let lib = prefix.join("lib");
        let Ok(listing) = std::fs::read_dir(&lib) else {
            continue;
        };
        let mut pythons: Vec<PathBuf> = listing
            .flatten()
            .filter(|found| found.file_name().to_string_lossy().starts_with("python3"))
            .map(|found| found.path())
            .collect();
        pythons.sort_unstable();
        for python in pythons.into_iter().rev() {
            for kind in ["site-packages", "dist-packages"] {
                let folder = python.join(kind);
                if folder.is_dir() && !packages.contains(&folder) {
                    packages.push(folder);
                }
            }
        }
    }
    packages
}

/// The file from which a function of a library comes: the kernel maps it at the function's address.
pub(crate) fn file_at(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let from = usize::from_str_radix(from, 16).ok()?;
        let to = usize::from_str_radix(to, 16).ok()?;
        // "r-xp 00000000 fe:00 123   /path with spaces"
        let path = (from..to)
            .contains(&address)
            .then(|| rest.find('/'))
            .flatten()?;
        Some(PathBuf::from(&rest[path..]))
    })
}
