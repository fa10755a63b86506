//! What is embedded: reads headers, compiles sources, makes the bundle.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use warpcc_rtc_bundle::{Bundle, BundleError, BundleMaker};

use crate::header_names::{headers_below, name_of};
use crate::nvcc::Nvcc;

/// Why nothing was embedded.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct EmbedError(String);

impl EmbedError {
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }
}

impl From<BundleError> for EmbedError {
    fn from(error: BundleError) -> Self {
        Self(error.to_string())
    }
}

/// Headers and sources of device functions that are put into a bundle.
#[derive(Debug, Clone, Default)]
pub struct Embed {
    pub(crate) base_folders: Vec<PathBuf>,
    pub(crate) headers: Vec<PathBuf>,
    pub(crate) header_folders: Vec<PathBuf>,
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) nvcc: Nvcc,
}

/// A bundle that was made.
#[derive(Debug, Clone)]
pub struct BundleOutput {
    /// The bundle.
    pub bytes: Vec<u8>,
    /// Its digest, in hexadecimal digits.
    pub digest: String,
    /// The files that went into it and were found on the way: below a folder of headers, or by nvcc. Absolute paths, sorted.
    /// Headers and sources that were named one by one are not among them.
    pub found: Vec<PathBuf>,
}

impl Embed {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A folder below which headers have their names: `lib/a.cuh` is the name of `FOLDER/lib/a.cuh`. Without one, it is the
    /// working directory.
    #[must_use]
    pub fn base_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.base_folders.push(folder.into());
        self
    }

    /// A header. It must be in a base folder.
    #[must_use]
    pub fn header(mut self, file: impl Into<PathBuf>) -> Self {
        self.headers.push(file.into());
        self
    }

    /// All headers below a folder, each under its path in it, as with `-I FOLDER`.
    #[must_use]
    pub fn header_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.header_folders.push(folder.into());
        self
    }

    /// A source of device functions, which nvcc compiles to LTO-IR now. A `.fatbin` or `.ltoir` is taken as it is.
    #[must_use]
    pub fn lto(mut self, source: impl Into<PathBuf>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// The architectures that sources are compiled for: `80`, `90a`. LTO-IR of the oldest one links for newer GPUs too.
    #[must_use]
    pub fn architectures<A: Into<String>>(mut self, all: impl IntoIterator<Item = A>) -> Self {
        let all = all.into_iter().map(Into::into);
        self.nvcc.architectures.extend(all);
        self
    }

    /// An option for nvcc: `-Iinclude`, `-std=c++20`.
    #[must_use]
    pub fn option(mut self, option: impl Into<OsString>) -> Self {
        self.nvcc.options.push(option.into());
        self
    }

    /// The nvcc to use, after its launcher if there is one: `["warpcc", "/usr/local/cuda/bin/nvcc"]`.
    #[must_use]
    pub fn compiler<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.nvcc.command = words.into_iter().map(Into::into).collect();
        self
    }

    /// Whether a source has to be compiled.
    pub fn compiles(&self) -> bool {
        self.sources.iter().any(|source| !is_ready(source))
    }

    /// Makes the bundle. Files for the time of the call are put into the folder `scratch`, which exists.
    ///
    /// # Errors
    /// A file cannot be read, has no name in a base folder, or does not compile; the text names it.
    pub fn make(&self, scratch: &Path) -> Result<BundleOutput, EmbedError> {
        let mut maker = BundleMaker::new();
        let mut found = Vec::new();
        let bases = match self.base_folders.as_slice() {
            [] => &[PathBuf::from(".")],
            some => some,
        };
        for header in &self.headers {
            maker.header(&name_of(header, bases)?, &read(header)?)?;
        }
        for folder in &self.header_folders {
            let base = std::slice::from_ref(folder);
            for header in headers_below(folder)? {
                maker.header(&name_of(&header, base)?, &read(&header)?)?;
                found.push(header);
            }
        }
        for source in &self.sources {
            // Only for messages: a name that does not depend on the folder of the build.
            let name = name_of(source, bases).unwrap_or_else(|_| {
                let name = source.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            });
            let bytes = match is_ready(source) {
                true => read(source)?,
                false => {
                    let (bytes, read) = self.nvcc.compile(source, scratch)?;
                    found.extend(read);
                    bytes
                }
            };
            maker.fragment(&name, &bytes)?;
        }
        // Build systems have other working directories than nvcc.
        let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let named = self.headers.iter().chain(&self.sources).cloned();
        let named: HashSet<PathBuf> = named.map(whole).collect();
        let found: BTreeSet<PathBuf> = found.into_iter().map(whole).collect();
        let found = found.into_iter().filter(|path| !named.contains(path));
        let found = found.collect();
        let bytes = maker.finish()?;
        let digest = Bundle::open(bytes.clone())?.digest_hex();
        Ok(BundleOutput {
            bytes,
            digest,
            found,
        })
    }
}

/// Whether a file is LTO-IR already.
fn is_ready(source: &Path) -> bool {
    source
        .extension()
        .is_some_and(|ending| ending == "fatbin" || ending == "ltoir")
}

fn read(file: &Path) -> Result<Vec<u8>, EmbedError> {
    let bytes = std::fs::read(file);
    bytes.map_err(|error| EmbedError::new(format!("{} cannot be read: {error}", file.display())))
}
