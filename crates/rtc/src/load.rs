//! Images on a GPU: contexts, modules and functions, by cudarc. The only part that needs a driver.

use std::hash::Hasher;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use warpcc_fatbin::Driver;
use xxhash_rust::xxh3::Xxh3;

use crate::cache::{Image, KernelCache};
use crate::compiler::{Compiled, Limits};
use crate::error::Error;
use crate::library;
use crate::memory::{read, written};
use crate::request::c_text;
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
        })
    }
}

/// A kernel on a GPU, ready to launch. Its module stays loaded as long as it lives.
#[derive(Debug, Clone)]
pub struct Function {
    function: CudaFunction,
    name: Arc<str>,
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
}

/// A function by what was asked for, compared whole.
#[derive(Debug)]
pub(crate) struct Loaded {
    parameters: Box<str>,
    name: Box<str>,
    source: Box<str>,
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
        limits: &Limits,
    ) -> Result<Arc<Function>, Error> {
        let place = device.identity();
        let hash = hash_of(parameters, name, source, place);
        let same = |loaded: &&Loaded| {
            loaded.device == place
                && *loaded.name == *name
                && *loaded.parameters == *parameters
                && *loaded.source == *source
        };
        let known = || {
            let functions = read(&self.functions);
            let loaded = functions.get(&hash).and_then(|all| all.iter().find(same));
            loaded.map(|loaded| (loaded.function.clone(), loaded.image.clone()))
        };
        // Without files to look at again, what is known is right.
        let known = known();
        if let Some((function, _)) = &known
            && !self.opens_files()
        {
            return Ok(function.clone());
        }
        let target = self.target_for(device.capability())?;
        let image = self.get_image(parameters, name, source, target, limits)?;
        if let Some((function, of)) = known
            && Arc::ptr_eq(&of, &image.compiled)
        {
            return Ok(function);
        }
        let lowered = image.compiled.lowered_name(name).unwrap_or(name);
        let function = Arc::new(device.load(name, &image.compiled)?.function(lowered)?);
        let mut functions = written(&self.functions);
        let all = functions.entry(hash).or_default();
        all.retain(|loaded| !same(&loaded));
        all.push(Loaded {
            parameters: parameters.into(),
            name: name.into(),
            source: source.into(),
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
        limits: &Limits,
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

fn hash_of(parameters: &str, name: &str, source: &str, device: usize) -> u64 {
    let mut hasher = Xxh3::new();
    for text in [parameters, name, source] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(&device.to_le_bytes());
    hasher.finish()
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
        assert_ne!(hash_of("a", "bc", "", 0), hash_of("ab", "c", "", 0));
        assert_ne!(hash_of("a", "b", "c", 0), hash_of("a", "b", "c", 1));
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
