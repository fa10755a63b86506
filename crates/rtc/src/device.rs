//! Loads images on a GPU: contexts, modules and functions, with cudarc. Only this module needs a driver.

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use warpcc_fatbin::DriverVersion;

use crate::c_text::c_text;
use crate::compiler::Compiled;
use crate::driver_error::DriverError;
use crate::error::Error;
use crate::library;
use crate::target::Target;

fn failed(call: impl Into<String>, error: cudarc::driver::DriverError) -> Error {
    let number = error.0 as u32;
    let name = match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => "an unnamed error".to_owned(),
    };
    Error::Driver(DriverError::new(call.into(), number, name))
}

/// A GPU with a context. Cheap to clone; any thread may use it.
#[derive(Debug, Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    capability: u32,
    driver: DriverVersion,
}

impl Device {
    /// Opens the GPU number `ordinal` with its primary context, which PyTorch, CuPy and the CUDA runtime use too.
    ///
    /// # Errors
    /// There is no driver, an older one than 12.0, or no such GPU.
    pub fn open(ordinal: usize) -> Result<Self, Error> {
        library::driver_version()?;
        let context =
            CudaContext::new(ordinal).map_err(|error| failed(format!("GPU {ordinal}"), error))?;
        Self::of_context(context)
    }

    /// The GPU of a context that the program already has.
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
        let driver = DriverVersion {
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
    pub fn driver(&self) -> DriverVersion {
        self.driver
    }

    /// Loads an image. It stays loaded as long as the module or a function of it lives.
    ///
    /// # Errors
    /// The image is LTO-IR, which must be linked first, or the driver refuses it; the error says what to do.
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

    /// Two devices are the same if their contexts are.
    pub(crate) fn identity(&self) -> usize {
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
    /// There is no such function, or the driver could not load it.
    pub fn function(&self, lowered: &str) -> Result<Function, Error> {
        // cudarc would panic on such a name.
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
    /// cudarc's function, for `CudaStream::launch_builder`, and for everything else by its `cu_function()`.
    pub fn cuda(&self) -> &CudaFunction {
        &self.function
    }

    /// Its name in the image.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sizes of its parameters in bytes, queried once; `None` if the driver does not report them (before 12.4). The
    /// function's context must be the thread's.
    pub fn parameter_sizes(&self) -> Option<&[usize]> {
        let known = self
            .parameters
            .get_or_init(|| crate::parameters::sizes(&self.function));
        known.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_driver_is_told_so() {
        // On a machine with a GPU this tests nothing; CI has none.
        if let Err(error) = Device::open(0) {
            let told = error.to_string();
            assert!(
                told.contains("libcuda.so.1") || told.contains("GPU 0"),
                "{told}"
            );
        }
    }
}
