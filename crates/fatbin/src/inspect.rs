//! Reads facts from an image's own bytes: its exact size, its producer, its functions.

use serde::Serialize;

use crate::arch::Arch;
use crate::cubin::Cubin;
use crate::error::{Flaw, ReadLimits};
use crate::image::{Image, ImageKind};
use crate::kernels::{self, ImageFunction};
use crate::ptx;

/// An image after a look inside.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Inside {
    /// Exact size after decompression, without padding, in bytes.
    pub size: u64,
    /// The toolkit that made it, as far as the image says: `13.5.37`, `12.4`.
    pub toolkit: Option<String>,
    /// Whether a cubin must be linked before it can be loaded. `None` if the image is not a cubin.
    pub relocatable: Option<bool>,
    /// The architecture that a cubin itself states.
    pub own_arch: Option<Arch>,
    /// Variables in global memory, in bytes.
    pub global_bytes: u64,
    /// Kernels and functions with code of their own.
    pub functions: Vec<ImageFunction>,
}

impl Inside {
    /// The functions that are started from the host.
    pub fn kernels(&self) -> impl Iterator<Item = &ImageFunction> {
        self.functions.iter().filter(|f| f.is_kernel)
    }
}

impl Image<'_> {
    /// Decompresses the image and reads what is in it.
    ///
    /// # Errors It cannot be decompressed, or a cubin's tables are damaged.
    pub fn inside(&self, limits: &ReadLimits) -> Result<Inside, Flaw> {
        let payload = self.payload(limits)?;
        let mut inside = Inside {
            size: payload.len() as u64,
            ..Inside::default()
        };
        match self.kind {
            ImageKind::Ptx => {
                inside.toolkit = ptx::toolkit(&payload);
                inside.functions = kernels::of_ptx(&payload);
            }
            ImageKind::Cubin => {
                let cubin = Cubin::parse(&payload)?;
                inside.toolkit = cubin.toolkit();
                inside.relocatable = Some(cubin.is_relocatable());
                inside.own_arch = Some(cubin.arch());
                inside.global_bytes = cubin.global_bytes();
                inside.functions = kernels::of_cubin(&cubin)?;
            }
            ImageKind::LtoIr | ImageKind::Concatenated | ImageKind::Unknown(_) => {}
        }
        Ok(inside)
    }
}
