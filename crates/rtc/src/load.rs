//! Loads the cache's kernels on a GPU once, and finds them again by their request.

use std::sync::Arc;

use crate::cache::{Image, KernelCache};
use crate::call_limits::CallLimits;
use crate::compiler::Compiled;
use crate::device::{Device, Function, Module};
use crate::error::Error;
use crate::kernel::{Kernel, Loaded, hash_of};
use crate::memory::{read, written};

impl KernelCache {
    /// The same call as MXNet's: the kernel `name` of `source`, with `parameters` as text before it, ready to launch on
    /// `device`. The first request compiles and loads it; later ones only look it up in memory.
    ///
    /// # Errors
    /// As [`KernelCache::get`] and [`Device::load`].
    pub fn get_function(
        &self,
        parameters: &str,
        name: &str,
        source: &str,
        device: &Device,
        limits: &CallLimits,
    ) -> Result<Arc<Function>, Error> {
        let place = device.identity();
        let hash = hash_of(parameters, name, source);
        let known = self.known(hash, place, |kernel| {
            *kernel.name == *name && *kernel.parameters == *parameters && *kernel.source == *source
        });
        match known {
            Some((function, _)) if !self.knows_the_directory() => Ok(function),
            known => self.looked_up(Kernel::new(parameters, name, source), known, device, limits),
        }
    }

    /// The same for a kernel whose texts are already read and hashed: however long they are, a repeated call takes well
    /// under a microsecond. If there are include folders, every included file is checked as for [`KernelCache::get`], which
    /// takes longer.
    ///
    /// # Errors
    /// As [`KernelCache::get_function`].
    pub fn get_function_of(
        &self,
        kernel: &Kernel,
        device: &Device,
        limits: &CallLimits,
    ) -> Result<Arc<Function>, Error> {
        let known = self.known(kernel.hash, device.identity(), |known| known == kernel);
        match known {
            Some((function, _)) if !self.knows_the_directory() => Ok(function),
            known => self.looked_up(kernel.clone(), known, device, limits),
        }
    }

    /// A loaded function, and its image.
    fn known(
        &self,
        hash: u64,
        device: usize,
        is: impl Fn(&Kernel) -> bool,
    ) -> Option<(Arc<Function>, Arc<Compiled>)> {
        let functions = read(&self.functions);
        let all = functions.get(&hash)?;
        let found = all
            .iter()
            .find(|one| one.device == device && is(&one.kernel))?;
        Some((found.function.clone(), found.image.clone()))
    }

    /// The loaded function, if its image is still the current one; otherwise the current image, loaded.
    fn looked_up(
        &self,
        kernel: Kernel,
        known: Option<(Arc<Function>, Arc<Compiled>)>,
        device: &Device,
        limits: &CallLimits,
    ) -> Result<Arc<Function>, Error> {
        let target = self.target_for(device.capability())?;
        let Kernel {
            parameters,
            name,
            source,
            file,
            ..
        } = &kernel;
        let mut request = self.request(parameters, name, source, target);
        if let Some(file) = file {
            request.file = Some(file.clone());
        }
        let image = self.get(&request, limits)?;
        if let Some((function, of)) = known
            && Arc::ptr_eq(&of, &image.compiled)
        {
            return Ok(function);
        }
        let lowered = image.compiled.lowered_name(name).unwrap_or(name);
        let function = Arc::new(device.load(name, &image.compiled)?.function(lowered)?);
        let place = device.identity();
        let mut functions = written(&self.functions);
        let all = functions.entry(kernel.hash).or_default();
        all.retain(|one| !(one.device == place && one.kernel == kernel));
        all.push(Loaded {
            kernel,
            device: place,
            image: image.compiled,
            function: function.clone(),
        });
        Ok(function)
    }

    /// Removes every loaded function from the cache. Functions that are still in use stay loaded; the GPU memory of the
    /// others becomes free.
    pub fn unload_functions(&self) {
        written(&self.functions).clear();
    }

    /// Loads the image that a driver would choose from a fat binary, a cubin or a PTX text for `device`; PTX is
    /// compiled through this cache.
    ///
    /// # Errors
    /// As [`KernelCache::get_fatbin`] and [`Device::load`].
    pub fn load_fatbin(
        &self,
        name: &str,
        bytes: &[u8],
        device: &Device,
        limits: &CallLimits,
    ) -> Result<Module, Error> {
        let image: Image = self.get_fatbin(
            name,
            bytes,
            device.capability(),
            Some(device.driver()),
            limits,
        )?;
        device.load(name, &image.compiled)
    }
}
