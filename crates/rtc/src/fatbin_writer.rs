//! Makes one fat binary of several images with nvFatbin: no GPU, no driver, no toolkit.

use std::path::Path;
use std::sync::Arc;

use crate::c_text::{c_text, with_zero};
use crate::compiler::Compiled;
use crate::environment::Environment;
use crate::error::Error;
use crate::nvfatbin::{NvFatbin, NvFatbinError, Part, PartKind};
use crate::target::Target;
use crate::version::Version;

/// An image for a fat binary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FatbinImage {
    /// Its name in the output of `cuobjdump`.
    pub name: Arc<str>,
    /// Its kind and architecture.
    pub target: Target,
    /// Its content.
    pub bytes: Arc<[u8]>,
    /// For PTX and LTO-IR: options for the tool that compiles it, as ptxas or nvJitLink take them.
    pub options: Arc<str>,
}

impl FatbinImage {
    /// The image of a compilation, under a name.
    pub fn from_compiled(name: impl Into<Arc<str>>, compiled: &Compiled) -> Self {
        Self {
            name: name.into(),
            target: compiled.target,
            bytes: compiled.image.clone(),
            options: "".into(),
        }
    }
}

/// nvFatbin, ready to make fat binaries. Cheap to clone; any number of threads may use it at once.
///
/// ```no_run
/// use warpcc_rtc::{CallLimits, CompileRequest, Compiler, FatbinImage, FatbinMaker};
///
/// let (compiler, maker) = (Compiler::find()?, FatbinMaker::find()?);
/// let mut images = Vec::new();
/// for target in ["sm_80", "sm_90", "compute_90"] {
///     let target = target.parse().expect("a target");
///     let request = CompileRequest::new("k", "extern \"C\" __global__ void k() {}", target);
///     images.push(FatbinImage::from_compiled("k", &compiler.compile(&request, &CallLimits::default())?));
/// }
/// std::fs::write("k.fatbin", maker.make(&images, &[])?).expect("written");
/// # Ok::<(), warpcc_rtc::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FatbinMaker {
    library: Arc<NvFatbin>,
}

impl FatbinMaker {
    /// Finds the nvFatbin of this machine, in the places that docs/rtc.md lists.
    ///
    /// # Errors
    /// No nvFatbin was found; the error lists everything that was tried.
    pub fn find() -> Result<Self, Error> {
        Self::find_with(None, None, &Environment::of_process())
    }

    /// Opens the nvFatbin at `path` (the library or its folder). Without a path, finds it in the folder `beside`, such as
    /// NVRTC's, or else through `environment`.
    ///
    /// # Errors
    /// As [`FatbinMaker::find`].
    pub fn find_with(
        path: Option<&Path>,
        beside: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let library = NvFatbin::find(path, beside, environment)?;
        Ok(Self {
            library: Arc::new(library),
        })
    }

    /// nvFatbin's version.
    pub fn version(&self) -> Version {
        self.library.version()
    }

    /// The library's file; empty if the system does not report it.
    pub fn library(&self) -> &Path {
        self.library.path()
    }

    /// Makes a fat binary of `images`, in order. `options` are nvFatbin's own, each in one piece: `-compress=false`.
    ///
    /// # Errors
    /// An image is not of the stated kind ([`Error::Invalid`]), or nvFatbin refuses one ([`Error::Fatbin`]).
    pub fn make(&self, images: &[FatbinImage], options: &[&str]) -> Result<Vec<u8>, Error> {
        if images.is_empty() {
            return Err(Error::invalid("images", "there is nothing to put together"));
        }
        let options: Vec<_> = options
            .iter()
            .map(|option| c_text("option", option.as_bytes()))
            .collect::<Result<_, _>>()?;
        // PTX gets a zero at its end, which nvFatbin needs.
        let texts: Vec<_> = images.iter().map(text_of).collect::<Result<_, _>>()?;
        let mut parts = Vec::with_capacity(images.len());
        for (image, text) in images.iter().zip(&texts) {
            parts.push(Part {
                kind: kind_of(image.target),
                bytes: text
                    .as_ref()
                    .map_or(&*image.bytes, |text| text.as_bytes_with_nul()),
                arch: c_text("architecture", image.target.arch().to_string().as_bytes())?,
                name: c_text("name of an image", image.name.as_bytes())?,
                options: c_text("options of an image", image.options.as_bytes())?,
            });
        }
        self.library
            .run(&options, &parts)
            .map_err(|fault| failure(fault, images))
    }
}

fn kind_of(target: Target) -> PartKind {
    match target {
        Target::Cubin(_) => PartKind::Cubin,
        Target::Ptx(_) => PartKind::Ptx,
        Target::LtoIr(_) => PartKind::LtoIr,
    }
}

/// The text of an image with a zero. Refuses bytes that are not of the stated kind, which nvFatbin does not always notice.
fn text_of(image: &FatbinImage) -> Result<Option<std::ffi::CString>, Error> {
    let what = || format!("image {:?} for {}", image.name, image.target);
    match image.target {
        Target::Cubin(_) if !image.bytes.starts_with(b"\x7fELF") => {
            Err(Error::invalid(what(), "it is not an ELF file"))
        }
        Target::LtoIr(_) if image.bytes.is_empty() => Err(Error::invalid(what(), "it is empty")),
        Target::Cubin(_) | Target::LtoIr(_) => Ok(None),
        Target::Ptx(_) => with_zero(&what(), &image.bytes).map(Some),
    }
}

fn failure(fault: NvFatbinError, images: &[FatbinImage]) -> Error {
    let image = fault.part.and_then(|index| images.get(index));
    Error::Fatbin {
        what: image.map_or_else(
            || "the fat binary".to_owned(),
            |image| format!("{:?} for {}", image.name, image.target),
        ),
        code: fault.code,
    }
}
