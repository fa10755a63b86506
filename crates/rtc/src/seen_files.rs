//! The files that a program may include, in their state before it was compiled.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use warpcc_cache::{InputManifest, InputManifestBuilder, ManifestVerdict};

use crate::includes::{self, Included};
use crate::request::CompileRequest;

/// A file system's clock may be behind by this: a file that is written twice within that time shows one time.
const TICK: Duration = Duration::from_millis(12);

/// The files, and the means to notice a change since.
pub(crate) struct SeenFiles {
    pub included: Included,
    /// `None` if a file changed so recently that a later change would show the same time.
    pub manifest: Option<InputManifest>,
    pub directory: PathBuf,
}

impl SeenFiles {
    /// The files that `request` may include.
    ///
    /// # Errors
    /// The reason why the files cannot be known.
    pub fn find(request: &CompileRequest, directory: &Path) -> Result<Self, String> {
        match request.opens_files() {
            true => Self::of_all(request, directory),
            false => Ok(Self::nothing(directory)),
        }
    }

    fn nothing(directory: &Path) -> Self {
        Self {
            included: Included::default(),
            manifest: Some(InputManifest::default()),
            directory: directory.to_path_buf(),
        }
    }

    /// The files that `request` may include for a compiler that looks for them in the working directory too.
    ///
    /// # Errors
    /// The reason why the files cannot be known.
    pub fn of_all(request: &CompileRequest, directory: &Path) -> Result<Self, String> {
        let mut seen = Self::nothing(directory);
        // A file that was just written is old enough after a few ticks.
        for _ in 0..4 {
            let started = SystemTime::now();
            seen.included =
                includes::find(request, &seen.directory).map_err(|unknown| unknown.0)?;
            let mut builder = InputManifestBuilder::new(started);
            for path in &seen.included.read {
                builder.read(path);
            }
            for path in &seen.included.absent {
                builder.no_file(path);
            }
            seen.manifest = builder.finish().ok();
            if seen.manifest.is_some() {
                break;
            }
            std::thread::sleep(TICK);
        }
        Ok(seen)
    }

    /// Whether NVRTC has read the files that were hashed: none was changed meanwhile.
    pub fn still_holds(&self, request: &CompileRequest) -> bool {
        // If names are not known, a file that was created is in no manifest.
        let same = || {
            let now = includes::find(request, &self.directory);
            now.is_ok_and(|now| now.files == self.included.files)
        };
        let untouched = self.manifest.as_ref().is_some_and(|before| {
            match before.check(Path::new("/")) {
                ManifestVerdict::Holds => true,
                // Another file appeared in a folder, and none of the program's files was changed.
                ManifestVerdict::HoldsAfterHashing(now) => now.files().eq(before.files()),
                ManifestVerdict::Differs(_) => false,
            }
        });
        untouched && (!self.included.computed || same())
    }
}
