//! What other compilers make, in the same memory, folders and shared caches.

use std::path::PathBuf;
use std::sync::Arc;

use warpcc_cache::{Hashing, InputManifest, Key, KeySink, StoreError};

use crate::call_limits::CallLimits;
use crate::compiler::Compiled;
use crate::error::Error;
use crate::float_environment;
use crate::found::Found;
use crate::memory::{Remembered, read, written};
use crate::product::{Product, placeholder};
use crate::seen_files::SeenFiles;

use super::{Image, KernelCache};

/// The version of these keys.
const DOMAIN: &str = "warpcc product 1";

impl KernelCache {
    /// What another compiler made of `product`, or what `make` makes of it now: in one thread and one process for all that
    /// ask. `make` may fail with [`Error::Cancelled`]: then another caller tries on its own.
    ///
    /// # Errors
    /// The error of `make`, or a limit that was reached.
    pub fn get_product(
        &self,
        product: &Product,
        limits: &CallLimits,
        make: impl Fn() -> Result<Compiled, Error>,
    ) -> Result<Image, Error> {
        self.observed(&product.name, |known| {
            self.get_product_unobserved(product, limits, make, known)
        })
    }

    fn get_product_unobserved(
        &self,
        product: &Product,
        limits: &CallLimits,
        make: impl Fn() -> Result<Compiled, Error>,
        known: &mut Option<Key>,
    ) -> Result<Image, Error> {
        let Some((key, seen)) = self.key_of_product(product) else {
            let compiled = make()?;
            return Ok(Image {
                compiled: compiled.into(),
                key: None,
                found: Found::Made,
            });
        };
        *known = Some(key);
        self.once(&key, &product.name, limits, || {
            if let Some(image) = read(&self.linked).get(&key) {
                return Ok((image.compiled.clone(), Found::Memory));
            }
            let (compiled, found) = self.find_or_make(&key, &product.name, limits, || {
                let compiled = make()?;
                let holds = match (&seen, &product.program()) {
                    (Some(seen), Some(program)) => seen.still_holds(&absolute(program)),
                    _ => true,
                };
                Ok((compiled, holds))
            })?;
            self.remember_product(&key, &compiled);
            Ok((compiled, found))
        })
    }

    /// What another compiler made of `product`, if it is kept.
    pub fn find_product(&self, product: &Product) -> Option<Image> {
        let begun = self.begin();
        let (key, _) = self.key_of_product(product)?;
        let remembered = read(&self.linked)
            .get(&key)
            .map(|image| (image.compiled.clone(), Found::Memory));
        let (compiled, found) = remembered.or_else(|| {
            let (compiled, found) = self.found(&key)?;
            let compiled = Arc::new(compiled);
            self.remember_product(&key, &compiled);
            Some((compiled, found))
        })?;
        self.usage.count(found);
        self.report(&begun, &product.name, Some(key), Ok(found));
        Some(Image {
            compiled,
            key: Some(key),
            found,
        })
    }

    /// Keeps what another compiler made of `product`.
    pub fn keep_product(&self, product: &Product, bytes: &[u8]) {
        let begun = self.begin();
        if let Some((key, _)) = self.key_of_product(product) {
            let compiled = Arc::new(Compiled::of_product(bytes, Vec::new(), String::new()));
            self.tiers.put(&key, &compiled, std::time::Duration::ZERO);
            self.remember_product(&key, &compiled);
            self.usage.count(Found::Made);
            self.report(&begun, &product.name, Some(key), Ok(Found::Made));
        }
    }

    /// Removes what is kept of `product`, in memory and in every folder that may be written to. Returns whether it was kept
    /// there.
    pub fn forget_product(&self, product: &Product) -> bool {
        let Some((key, _)) = self.key_of_product(product) else {
            return false;
        };
        let known =
            read(&self.linked).get(&key).is_some() || self.tiers.get_from_disk(&key).is_some();
        written(&self.linked).remove(&key);
        self.tiers.forget(&key);
        known
    }

    /// Removes everything from memory and from every folder that may be written to. Shared caches, packs and loaded kernels
    /// stay.
    ///
    /// # Errors
    /// A folder cannot be emptied.
    pub fn clear(&self) -> Result<(), Error> {
        written(&self.memory).clear();
        written(&self.linked).clear();
        self.tiers.clear().map_err(of_store)
    }

    /// How many images are stored in the nearest folder that may be written to. Its files are counted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn stored(&self) -> Result<u64, Error> {
        self.tiers.stored().map_err(of_store)
    }

    /// [`KernelCache::stored`] under its old name, for one release.
    ///
    /// # Errors
    /// The folder cannot be read.
    #[deprecated(note = "its name is `stored`")]
    pub fn kept(&self) -> Result<u64, Error> {
        self.stored()
    }

    fn remember_product(&self, key: &Key, compiled: &Arc<Compiled>) {
        let image = Remembered::new(compiled, *key, InputManifest::default(), PathBuf::new());
        written(&self.linked).put(*key, image);
    }

    /// The key of a product, with the files that went into it; `None`, and a remark, if they cannot be known.
    fn key_of_product(&self, product: &Product) -> Option<(Key, Option<SeenFiles>)> {
        let known = self.try_key_of_product(product);
        known.map_err(|why| self.tiers.remark(why)).ok()
    }

    fn try_key_of_product(&self, product: &Product) -> Result<(Key, Option<SeenFiles>), String> {
        if let Some(why) = product.unknown() {
            return Err(why);
        }
        if !float_environment::is_usual() {
            return Err(format!(
                "{} is not stored: this thread rounds unusually, or takes denormal numbers for zero, and its compilers compute constants \
                 in the same way",
                product.name
            ));
        }
        let mut hashing = Hashing::new(DOMAIN);
        for (label, bytes) in &product.parts {
            hashing.part(label, bytes);
        }
        for path in &product.files {
            let content = self.content_of(path);
            let content = content.map_err(|error| {
                format!(
                    "{} is not stored: {}: {error}",
                    product.name,
                    path.display()
                )
            })?;
            hashing.part("library", &content);
        }
        let Some(program) = product.program() else {
            return Ok((hashing.finish(), None));
        };
        let not_stored = |why: String| format!("{} is not stored: {why}", product.name);
        let directory = std::path::absolute(".").map_err(|error| not_stored(error.to_string()))?;
        let program = absolute(program);
        let seen = SeenFiles::of_all(&program, &directory).map_err(not_stored)?;
        if seen.included.shows_paths {
            for folder in program.include_folders.iter().chain([&directory]) {
                hashing.part("folder", folder.as_os_str().as_encoded_bytes());
            }
        }
        for (label, content) in &seen.included.files {
            hashing.part("file name", label.as_bytes());
            hashing.part("file", content);
        }
        Ok((hashing.finish(), Some(seen)))
    }
}

impl Compiled {
    /// What another compiler made: its bytes, kernels with their names in it, and its log.
    pub fn of_product(bytes: &[u8], lowered: Vec<(String, String)>, log: String) -> Self {
        Self {
            target: placeholder(),
            image: bytes.into(),
            lowered,
            log,
        }
    }
}

/// The same program, with folders that do not depend on the working directory.
fn absolute(program: &crate::request::CompileRequest) -> crate::request::CompileRequest {
    let mut program = program.clone();
    for folder in &mut program.include_folders {
        if let Ok(path) = std::path::absolute(&*folder) {
            *folder = path;
        }
    }
    program
}

fn of_store(error: StoreError) -> Error {
    Error::File {
        action: "use",
        path: "the cache's folder".into(),
        problem: error.to_string(),
    }
}
