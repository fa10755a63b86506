//! An NVRTC that is not loaded before something has to be compiled.
//!
//! A process whose kernels are all found needs of NVRTC only what keys are made of: its version and its content. The first
//! process with a folder notes version, architectures and files of the NVRTC that it loads. Later ones read the note, if the
//! same files are still there.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use warpcc_cache::DiskStore;

use super::{Facts, Functions, LoadedBuild, Nvrtc, WANTED};
use crate::environment::Environment;
use crate::error::LibraryError;
use crate::library;
use crate::version::Version;

/// The kind of the notes.
const NOTES: &str = "nvrtc-facts";

/// Version, architectures, library, builtins, and what `stat` says of both.
type FactRecord = ((u32, u32), Vec<u32>, Vec<u8>, Vec<u8>, Vec<[u64; 5]>);

impl Nvrtc {
    /// The NVRTC that [`Nvrtc::find`] would load, loaded only if this store has no note of it. `None` if that cannot be said:
    /// then it has to be found and loaded.
    pub(crate) fn deferred(environment: &Environment, store: &DiskStore) -> Option<Self> {
        // By its own name: the dynamic linker would take a library that is loaded under the name of a link for this one.
        let file = library::locate(&WANTED, None, environment)?;
        let file = file.canonicalize().ok()?;
        let loaded = OnceCell::new();
        let look = || {
            let nvrtc = Self::find(Some(&file), &Environment::default());
            let nvrtc = nvrtc.map_err(io::Error::other)?;
            let noted = nvrtc.facts.noted();
            drop(loaded.set(nvrtc));
            noted.ok_or_else(|| io::Error::other("its files are not known"))
        };
        let noted = store.finding(NOTES, &file, &look);
        if let Some(nvrtc) = loaded.into_inner() {
            return Some(nvrtc);
        }
        let facts = Facts::read(&noted.ok()?)?;
        let same =
            facts.loaded.is_some() && facts.loaded == facts.files_now() && file == facts.path;
        same.then(|| Self {
            facts,
            functions: OnceLock::new(),
        })
    }
}

impl Facts {
    /// Loads the library, which must be what these facts say.
    pub(super) fn load(&self) -> Result<Functions, LibraryError> {
        let nvrtc = Nvrtc::find(Some(&self.path), &Environment::default())?;
        let changed = || LibraryError {
            library: WANTED.name,
            problem: format!(
                "{} was replaced after this process had looked at it",
                self.path.display()
            ),
            advice: "start the program again".to_owned(),
            tried: Vec::new(),
        };
        if nvrtc.facts != *self {
            return Err(changed());
        }
        nvrtc
            .functions
            .into_inner()
            .unwrap_or_else(|| Err(changed()))
    }

    fn files_now(&self) -> Option<LoadedBuild> {
        LoadedBuild::find(self.version, &self.path, self.builtins.as_deref())
    }

    /// As bytes; `None` without builtins next to it, because then it is not known which ones NVRTC opens.
    fn noted(&self) -> Option<Vec<u8>> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let noted: FactRecord = (
            (self.version.major, self.version.minor),
            self.architectures.clone(),
            bytes(&self.path),
            bytes(self.builtins.as_deref()?),
            self.loaded.as_ref()?.files.clone(),
        );
        postcard::to_allocvec(&noted).ok()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (noted, rest) = postcard::take_from_bytes::<FactRecord>(bytes).ok()?;
        let ((major, minor), architectures, path, builtins, files) = noted;
        let version = Version::new(major, minor);
        let as_path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        let path = as_path(path);
        let loaded = LoadedBuild {
            version,
            library: path.clone(),
            files,
        };
        rest.is_empty().then(|| Self {
            version,
            architectures,
            path,
            builtins: Some(as_path(builtins)),
            loaded: Some(loaded),
        })
    }
}
