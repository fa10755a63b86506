//! Images on a GPU: contexts, modules and functions, by cudarc. The only part that needs a driver.

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use warpcc_fatbin::Driver;
use xxhash_rust::xxh3::Xxh3;

use crate::cache::{Image, KernelCache};
use crate::compiler::{CallLimits, Compiled};
use crate::error::Error;
use crate::library;
use crate::memory::{read, whole, written};
use crate::request::{c_text, is_same};
use crate::target::Target;

/// What the driver answered, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({number}){}", told(.advice))]
pub struct DriverError {
    /// What was asked of it.
    pub call: String,
    /// The number in `cuda.h`.
    pub number: u32,
    /// The name in `cuda.h`.
    pub name: String,
    /// What to do, where that is known; else empty.
    pub advice: &'static str,
}

fn told(advice: &str) -> String {
    match advice {
        "" => String::new(),
        advice => format!("; {advice}"),
    }
}

impl DriverError {
    /// With what to do about it.
    pub(crate) fn new(call: String, number: u32, name: String) -> Self {
        Self {
            call,
            number,
            name,
            advice: advice(number),
        }
    }
}

/// What to do about an error of the driver, by its number in `cuda.h`.
fn advice(number: u32) -> &'static str {
    match number {
        100 => "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES",
        200 => {
            "the image is no image of the driver's: a spoiled file, or PTX without a zero at its end"
        }
        209 => {
            "the image is for another GPU: compile for this one (Compiler::target_for), or give PTX of an architecture \
             that is not newer"
        }
        218 => {
            "the driver's compiler refuses the PTX: `warpcc jit prove` or KernelCache::load_ptx says why, with ptxas' \
             own words"
        }
        221 => {
            "the driver has no PTX compiler (libnvidia-ptxjitcompiler): give machine code, or mend the driver"
        }
        222 => {
            "the PTX is of a toolkit newer than the driver: give machine code (Target::Cubin, or \
             KernelCache::load_ptx), use an older NVRTC (WARPCC_NVRTC), or renew the driver"
        }
        223 => {
            "compiling PTX is switched off: unset CUDA_DISABLE_PTX_JIT, or give machine code for this GPU (Target::Cubin)"
        }
        500 => {
            "the module has no function of this name: give the lowered name (Compiled::lowered_name)"
        }
        _ => "",
    }
}

fn failed(call: impl Into<String>, error: cudarc::driver::DriverError) -> Error {
    let number = error.0 as u32;
    let name = match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => "an error without a name".to_owned(),
    };
    Error::Driver(DriverError::new(call.into(), number, name))
}

/// A GPU with a context. Cheap to clone; any thread may use it.
#[derive(Debug, Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    capability: u32,
    driver: Driver,
}

impl Device {
    /// The GPU number `ordinal`, with its primary context, which PyTorch, CuPy and the CUDA runtime use too.
    ///
    /// # Errors
    /// There is no driver, an older one than 12.0, or no such GPU.
    pub fn open(ordinal: usize) -> Result<Self, Error> {
        library::driver_version()?;
        let context =
            CudaContext::new(ordinal).map_err(|error| failed(format!("GPU {ordinal}"), error))?;
        Self::of_context(context)
    }

    /// The GPU of a context that the program has already.
    ///
    /// # Errors
    /// The driver does not answer.
    pub fn of_context(context: Arc<CudaContext>) -> Result<Self, Error> {
        let version = library::driver_version()?;
        let (major, minor) = context
            .compute_capability()
            .map_err(|error| failed("the GPU's compute capability", error))?;
        let capability = u32::try_from(major * 10 + minor).unwrap_or(0);
        let small = |number: u32| u16::try_from(number).unwrap_or(0);
        let driver = Driver {
            major: small(version.major),
            minor: small(version.minor),
        };
        Ok(Self {
            context,
            capability,
            driver,
        })
    }

    /// The context, for memory, streams and launches.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The compute capability, ten times major plus minor.
    pub fn capability(&self) -> u32 {
        self.capability
    }

    /// The driver's version.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// Loads an image. It stays loaded as long as the module or a function of it lives.
    ///
    /// # Errors
    /// It is LTO-IR, which must be linked first, or the driver refuses it; with what to do.
    pub fn load(&self, name: &str, compiled: &Compiled) -> Result<Module, Error> {
        let mut image = compiled.image.to_vec();
        match compiled.target {
            Target::Cubin(_) => {}
            // A text for C.
            Target::Ptx(_) => image.push(0),
            Target::LtoIr(_) => {
                return Err(Error::invalid(name, "it is LTO-IR: link it first (Linker)"));
            }
        }
        let module = self.context.load_module(Ptx::from_binary(image));
        let what = || format!("loading {name} for {}", compiled.target);
        let module = module.map_err(|error| failed(what(), error))?;
        Ok(Module {
            module,
            name: name.into(),
        })
    }

    /// Two devices are one where their contexts are.
    fn identity(&self) -> usize {
        self.context.cu_ctx() as usize
    }
}

/// A loaded image.
#[derive(Debug, Clone)]
pub struct Module {
    module: Arc<CudaModule>,
    name: Arc<str>,
}

impl Module {
    /// The function with this name in the image: see [`Compiled::lowered_name`].
    ///
    /// # Errors
    /// There is none, or the driver could not load it.
    pub fn function(&self, lowered: &str) -> Result<Function, Error> {
        // cudarc would panic.
        c_text("name of a function", lowered.as_bytes())?;
        let function = self
            .module
            .load_function(lowered)
            .map_err(|error| failed(format!("{lowered} of {}", self.name), error))?;
        Ok(Function {
            function,
            name: lowered.into(),
            parameters: Arc::default(),
        })
    }
}

/// A kernel on a GPU, ready to launch. Its module stays loaded as long as it lives.
#[derive(Debug, Clone)]
pub struct Function {
    function: CudaFunction,
    name: Arc<str>,
    parameters: Arc<OnceLock<Option<Vec<usize>>>>,
}

impl Function {
    /// For cudarc's `CudaStream::launch_builder`, and `cu_function()` for everything else.
    pub fn cuda(&self) -> &CudaFunction {
        &self.function
    }

    /// Its name in the image.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sizes of its parameters in bytes, asked for once; `None` where the driver does not tell (before 12.4). The
    /// function's context must be the thread's.
    pub fn parameter_sizes(&self) -> Option<&[usize]> {
        let known = self
            .parameters
            .get_or_init(|| crate::parameters::sizes(self));
        known.as_deref()
    }
}

/// What a kernel is made of, read and hashed once: for those who ask for it again and again.
///
/// It belongs to no cache and no device. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Kernel {
    parameters: Arc<str>,
    name: Arc<str>,
    source: Arc<str>,
    hash: u64,
}

impl Kernel {
    /// The kernel `name` of `source`, with `parameters` as text before it, as [`KernelCache::get_image`] has them.
    pub fn new(
        parameters: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        source: impl Into<Arc<str>>,
    ) -> Self {
        let (parameters, name, source) = (parameters.into(), name.into(), source.into());
        let hash = hash_of(&parameters, &name, &source);
        Self {
            parameters,
            name,
            source,
            hash,
        }
    }

    /// What C++ calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text before its own.
    pub fn parameters(&self) -> &str {
        &self.parameters
    }

    /// Its text.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && is_same(&self.source, &other.source)
            && is_same(&self.name, &other.name)
            && is_same(&self.parameters, &other.parameters)
    }
}

impl Eq for Kernel {}

/// A function by what was asked for, compared whole.
#[derive(Debug)]
pub(crate) struct Loaded {
    kernel: Kernel,
    device: usize,
    /// The image it is of: another one has come where a header was edited.
    image: Arc<Compiled>,
    function: Arc<Function>,
}

impl KernelCache {
    /// MXNet's call: the kernel `name` of `source`, with `parameters` as text before it, ready to launch on `device`.
    /// Compiled and loaded when it is first asked for; afterwards it costs a look into memory.
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

    /// The same for a kernel whose texts were read and hashed before: however long they are, a repeat costs well under
    /// a microsecond. Where there are include folders, every file that was included is looked at as for
    /// [`KernelCache::get`], which costs more.
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

    /// What is loaded, and the image it is of.
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

    /// What is known, if it still is of the image that there is now; else that image, loaded.
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
            ..
        } = &kernel;
        let image = self.get_image(parameters, name, source, target, limits)?;
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

    /// Forgets every loaded function. Those that somebody still holds stay loaded; the others' memory on the GPU is
    /// free again.
    pub fn unload_functions(&self) {
        written(&self.functions).clear();
    }

    /// What a driver would take of a fat binary, a cubin or a PTX text for `device`, by its own rules; PTX is compiled
    /// through this cache.
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

fn hash_of(parameters: &str, name: &str, source: &str) -> u64 {
    let mut hasher = Xxh3::new();
    for text in [parameters, name, source] {
        whole(&mut hasher, text.as_bytes());
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_driver_say_what_to_do() {
        for (number, word) in [
            (209, "another GPU"),
            (218, "load_ptx"),
            (222, "renew the driver"),
            (223, "CUDA_DISABLE_PTX_JIT"),
        ] {
            let error = DriverError::new("loading k".to_owned(), number, "CUDA_ERROR".to_owned());
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(advice(1), "");
    }

    #[test]
    fn borders_between_texts_count() {
        let kernels = [
            ("a", "bc", ""),
            ("ab", "c", ""),
            ("", "abc", ""),
            ("a", "b", "c"),
        ];
        let kernels = kernels.map(|(before, name, source)| Kernel::new(before, name, source));
        for (index, one) in kernels.iter().enumerate() {
            for (other, two) in kernels.iter().enumerate() {
                assert_eq!(one == two, index == other, "{one:?} {two:?}");
            }
            assert_eq!(
                *one,
                Kernel::new(&*one.parameters, &*one.name, &*one.source)
            );
        }
    }

    #[test]
    fn a_machine_without_a_driver_is_told_so() {
        // On a machine with one this says nothing; CI has none.
        if let Err(error) = Device::open(0) {
            let told = error.to_string();
            assert!(
                told.contains("libcuda.so.1") || told.contains("GPU 0"),
                "{told}"
            );
        }
    }
}
