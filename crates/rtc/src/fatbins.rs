//! Chooses the image that a driver would load from a fat binary, by the driver's rules, and compiles PTX through the cache.

use warpcc_fatbin::{
    Candidate, CudaError, DriverVersion, Format, Gpu, ImageKind, ReadLimits as Sizes, Selection,
    Situation, choose, read,
};

use crate::cache::{Image, KernelCache};
use crate::call_limits::CallLimits;
use crate::compiler::Compiled;
use crate::driver_error::DriverError;
use crate::error::Error;
use crate::found::Found;
use crate::target::{RealArch, Target};

impl KernelCache {
    /// The machine code that a driver would run from a fat binary, a cubin or a PTX text on a GPU of compute capability
    /// `device` (ten times major plus minor). PTX is compiled through this cache ([`KernelCache::load_ptx`]), so the driver
    /// need not compile. `driver` is its version; without one, the driver is assumed to know every PTX.
    ///
    /// # Errors
    /// The file has nothing for the GPU (209), or it would have to be compiled and that is switched off (223), as the driver
    /// itself reports; the file is damaged; or see [`KernelCache::load_ptx`].
    pub fn get_fatbin(
        &self,
        name: &str,
        bytes: &[u8],
        device: u32,
        driver: Option<DriverVersion>,
        limits: &CallLimits,
    ) -> Result<Image, Error> {
        let target = RealArch::new(device);
        let Some(format) = Format::detect(bytes) else {
            return match looks_like_ptx(bytes) {
                true => self.load_ptx(name, bytes, target, limits),
                false => Err(Error::invalid(
                    name,
                    "it is not a fat binary, cubin or PTX text",
                )),
            };
        };
        let sizes = Sizes::default();
        let found = read(bytes, format, &sizes);
        let images: Vec<_> = found
            .containers
            .first()
            .map(|container| container.images.iter().collect())
            .unwrap_or_default();
        if images.is_empty() {
            let problems = found
                .problems
                .iter()
                .map(|problem| problem.flaw.to_string());
            let problems: Vec<_> = problems.collect();
            return Err(Error::invalid(
                name,
                format!("there is no image in it {}", problems.join("; ")),
            ));
        }
        let settings = self.settings();
        let situation = Situation {
            // nvJitLink compiles PTX, so the driver's version does not matter here.
            driver: None,
            force_jit: settings.force_ptx_jit,
            disable_jit: settings.disable_ptx_jit,
        };
        let skips = driver.is_some_and(|driver| !driver.reads_concatenated());
        let candidates: Vec<Candidate> =
            images.iter().map(|image| Candidate::from(*image)).collect();
        let seen: Vec<usize> = (0..candidates.len())
            .filter(|index| !(skips && candidates[*index].concatenated))
            .collect();
        let offered: Vec<Candidate> = seen.iter().map(|index| candidates[*index]).collect();
        let payload = |index: usize| {
            let image = images[seen[index]];
            let payload = image.payload(&sizes);
            payload.map_err(|flaw| Error::invalid(name, flaw.to_string()))
        };
        match choose(&offered, Gpu::Known(device), &situation) {
            Selection::Run(index) => {
                debug_assert_eq!(offered[index].kind, ImageKind::Cubin);
                let compiled = Compiled {
                    target: Target::Cubin(RealArch(offered[index].arch)),
                    image: payload(index)?.into(),
                    lowered: Vec::new(),
                    log: String::new(),
                };
                Ok(Image {
                    compiled: compiled.into(),
                    key: None,
                    found: Found::Given,
                })
            }
            Selection::Jit(index) => self.load_ptx(name, &payload(index)?, target, limits),
            Selection::Fail(error, _) => Err(Error::Driver(refusal(name, device, error))),
        }
    }
}

fn refusal(name: &str, device: u32, error: CudaError) -> DriverError {
    DriverError::new(
        format!("choosing an image of {name} for sm_{device}"),
        error.number(),
        error.name().to_owned(),
    )
}

/// Whether the bytes are PTX: it begins with its version, after comments and blanks.
fn looks_like_ptx(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(64 << 10)];
    start.windows(8).any(|word| word == b".version") && !start[..start.len().min(64)].contains(&0)
}
