//! The images that nvJitLink makes for a cache: linked ones, and cubins of PTX.

use std::path::PathBuf;
use std::time::Instant;

use warpcc_cache::InputManifest;

use crate::call_limits::CallLimits;
use crate::compiler::Compiled;
use crate::error::Error;
use crate::found::Found;
use crate::keys;
use crate::linker::{LinkRequest, Linker};
use crate::memory::{Remembered, read, written};
use crate::target::{RealArch, Target};

use super::{Image, KernelCache};

impl KernelCache {
    /// The linked image of `request`, from the same places as [`KernelCache::get`].
    ///
    /// # Errors
    /// There is no nvJitLink, or as [`Linker::link`].
    pub fn get_linked(&self, request: &LinkRequest, limits: &CallLimits) -> Result<Image, Error> {
        let linker = self.linker()?;
        let builds = self.build(1, [linker.library()].into_iter());
        let key = keys::of_link(linker, builds, request);
        let make = || {
            limits.check(&request.name)?;
            let start = Instant::now();
            let linked = linker.link(request);
            self.usage.spent(start.elapsed());
            let linked = linked?;
            let compiled = Compiled {
                target: Target::Cubin(request.target),
                image: linked.image,
                lowered: Vec::new(),
                log: linked.log,
            };
            Ok((compiled, true))
        };
        let find = || {
            if let Some(image) = read(&self.linked).get(&key) {
                return Ok((image.compiled.clone(), Found::Memory));
            }
            let (compiled, found) = self.find_or_make(&key, &request.name, limits, make)?;
            let image = Remembered::new(&compiled, key, InputManifest::default(), PathBuf::new());
            written(&self.linked).put(key, image);
            Ok((compiled, found))
        };
        self.observed(&request.name, |known| {
            *known = Some(key);
            self.once(&key, &request.name, limits, find)
        })
    }

    /// The cubin of a PTX text for a GPU: like the driver's JIT, but stored for every process and machine, of any size, and
    /// made without a GPU.
    ///
    /// # Errors
    /// `CUDA_DISABLE_PTX_JIT` is set, or as [`KernelCache::get_linked`].
    pub fn load_ptx(
        &self,
        name: &str,
        ptx: &[u8],
        target: RealArch,
        limits: &CallLimits,
    ) -> Result<Image, Error> {
        if self.settings.disable_ptx_jit {
            return Err(Error::invalid(
                "CUDA_DISABLE_PTX_JIT",
                format!("it is set, and {name} is PTX, which would have to be compiled"),
            ));
        }
        let image = self.get_linked(&LinkRequest::of_ptx(name, ptx, target), limits)?;
        self.record(|recorder| recorder.ptx(name, ptx, target));
        Ok(image)
    }

    /// nvJitLink, looked for when it is first needed.
    pub(crate) fn linker(&self) -> Result<&Linker, Error> {
        let found = self.linker.get_or_init(|| {
            let folder = self.compiler.library().parent();
            Linker::find_with(None, folder, &self.environment)
        });
        found.as_ref().map_err(Clone::clone)
    }
}
