//! Links images and LTO-IR to one cubin, and compiles PTX to a cubin, with nvJitLink: no GPU, no driver, no cache.

use std::ffi::{CString, c_int};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::c_text::{c_text, with_zero};
use crate::environment::Environment;
use crate::error::Error;
use crate::nvjitlink::{LinkJob, NvJitLink, NvJitLinkError};
use crate::target::RealArch;
use crate::version::Version;

/// The first version whose cache can be switched off.
const OWN_CACHE: Version = Version::new(12, 9);

/// The kind of a piece to link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PieceKind {
    /// Machine code, relocatable if there are several pieces.
    Cubin,
    /// PTX.
    Ptx,
    /// LTO-IR.
    LtoIr,
    /// A fat binary; the linker takes the fitting image.
    Fatbin,
    /// A host object with a fat binary inside.
    Object,
    /// A library of objects with fat binaries.
    Library,
}

impl PieceKind {
    /// The number in `nvJitLinkInputType` of nvJitLink.h.
    fn number(self) -> c_int {
        match self {
            Self::Cubin => 1,
            Self::Ptx => 2,
            Self::LtoIr => 3,
            Self::Fatbin => 4,
            Self::Object => 5,
            Self::Library => 6,
        }
    }

    /// In one word, for messages and keys.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cubin => "cubin",
            Self::Ptx => "ptx",
            Self::LtoIr => "ltoir",
            Self::Fatbin => "fatbin",
            Self::Object => "object",
            Self::Library => "library",
        }
    }
}

/// A piece to link.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Its name in messages.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: PieceKind,
    /// Its content.
    pub bytes: Arc<[u8]>,
}

/// Pieces to link together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LinkRequest {
    /// The name of the result in messages.
    pub name: Arc<str>,
    /// Its pieces, in order.
    pub pieces: Vec<Piece>,
    /// The GPU architecture.
    pub target: RealArch,
    /// Further options of nvJitLink, each in one piece: `-O3`, `-lineinfo`.
    pub options: Vec<Arc<str>>,
}

impl LinkRequest {
    /// A request to compile PTX to a cubin, as a driver's JIT does.
    pub fn of_ptx(name: impl Into<Arc<str>>, ptx: impl Into<Arc<[u8]>>, target: RealArch) -> Self {
        let name = name.into();
        let piece = Piece {
            name: name.clone(),
            kind: PieceKind::Ptx,
            bytes: ptx.into(),
        };
        Self {
            name,
            pieces: vec![piece],
            target,
            options: Vec::new(),
        }
    }
}

/// The result of linking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The cubin.
    pub image: Arc<[u8]>,
    /// nvJitLink's log.
    pub log: String,
}

/// nvJitLink, ready to link. Cheap to clone; any number of threads may use it at once.
#[derive(Debug, Clone)]
pub struct Linker {
    library: Arc<NvJitLink>,
}

impl Linker {
    /// Finds the nvJitLink of this machine, in the places that docs/rtc.md lists.
    ///
    /// # Errors
    /// No nvJitLink was found; the error lists everything that was tried.
    pub fn find() -> Result<Self, Error> {
        Self::find_with(None, None, &Environment::of_process())
    }

    /// Opens the nvJitLink at `path` (the library or its folder). Without a path, finds it in the folder `beside`, such as
    /// NVRTC's, or else through `environment`.
    ///
    /// # Errors
    /// As [`Linker::find`].
    pub fn find_with(
        path: Option<&Path>,
        beside: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let library = NvJitLink::find(path, beside, environment)?;
        Ok(Self {
            library: Arc::new(library),
        })
    }

    /// The file that [`Linker::find_with`] would load first, if that can be said without loading it.
    pub(crate) fn locate(beside: Option<&Path>, environment: &Environment) -> Option<PathBuf> {
        NvJitLink::locate(beside, environment)
    }

    /// nvJitLink's version.
    pub fn version(&self) -> Version {
        self.library.version()
    }

    /// The library's file; empty if the system does not report it.
    pub fn library(&self) -> &Path {
        self.library.path()
    }

    /// Links the pieces. A running link cannot be stopped.
    ///
    /// # Errors
    /// The request is invalid ([`Error::Invalid`]) or the pieces do not link ([`Error::Link`], with the log).
    pub fn link(&self, request: &LinkRequest) -> Result<Linked, Error> {
        if request.pieces.is_empty() {
            return Err(Error::invalid("pieces", "there is nothing to link"));
        }
        request.pieces.iter().try_for_each(check_kind)?;
        let mut options = Vec::new();
        for option in self.options(request) {
            options.push(c_text("option", option.as_bytes())?);
        }
        let mut pieces = Vec::with_capacity(request.pieces.len());
        let texts: Vec<_> = request
            .pieces
            .iter()
            .map(with_end)
            .collect::<Result<_, _>>()?;
        for (piece, text) in request.pieces.iter().zip(&texts) {
            let bytes = match text {
                Some(text) => text.as_bytes_with_nul(),
                None => &piece.bytes,
            };
            let name = c_text("name of a piece", piece.name.as_bytes())?;
            pieces.push((piece.kind.number(), bytes, name));
        }
        let job = LinkJob {
            options: &options,
            pieces: &pieces,
        };
        let (image, log) = self
            .library
            .run(&job)
            .map_err(|fault| failure(fault, request))?;
        Ok(Linked {
            image: image.into(),
            log,
        })
    }

    /// All options for nvJitLink, in order. Keys are made of these.
    pub(crate) fn options(&self, request: &LinkRequest) -> Vec<String> {
        let mut options = vec![format!("-arch={}", request.target)];
        if request
            .pieces
            .iter()
            .any(|piece| piece.kind == PieceKind::LtoIr)
        {
            options.push("-lto".to_owned());
        }
        if self.version() >= OWN_CACHE {
            options.push("-no-cache".to_owned());
        }
        options.extend(request.options.iter().map(ToString::to_string));
        options
    }
}

/// Refuses a piece that is not of the stated kind: nvJitLink 12.0 crashes on a text that is no PTX.
fn check_kind(piece: &Piece) -> Result<(), Error> {
    let begins = |magic: &[u8]| piece.bytes.starts_with(magic);
    let has = |word: &[u8]| piece.bytes.windows(word.len()).any(|part| part == word);
    let (right, expected) = match piece.kind {
        PieceKind::Cubin | PieceKind::Object => (begins(b"\x7fELF"), "an ELF file"),
        PieceKind::Ptx => (
            has(b".version") && has(b".target"),
            "a text with .version and .target",
        ),
        PieceKind::Fatbin => (begins(b"\x50\xed\x55\xba"), "a fat binary"),
        PieceKind::Library => (begins(b"!<arch>\n"), "an archive"),
        PieceKind::LtoIr => (!piece.bytes.is_empty(), "LTO-IR"),
    };
    match right {
        true => Ok(()),
        false => Err(Error::invalid(
            format!("{} {:?}", piece.kind.word(), piece.name),
            format!("it is not {expected}"),
        )),
    }
}

/// PTX must end with a zero; other pieces are as long as they are.
fn with_end(piece: &Piece) -> Result<Option<CString>, Error> {
    if piece.kind != PieceKind::Ptx {
        return Ok(None);
    }
    with_zero(&format!("PTX {:?}", piece.name), &piece.bytes).map(Some)
}

fn failure(fault: NvJitLinkError, request: &LinkRequest) -> Error {
    let piece = fault.piece.and_then(|index| request.pieces.get(index));
    let what = match piece {
        Some(piece) if piece.name != request.name => {
            format!("{} ({} {})", request.name, piece.kind.word(), piece.name)
        }
        _ => request.name.to_string(),
    };
    let options: Vec<_> = request.options.iter().map(|option| &**option).collect();
    let log = match fault.log.trim() {
        "" => format!("nvJitLink gives no details; options: {}", options.join(" ")),
        said => said.to_owned(),
    };
    Error::Link {
        what,
        target: request.target.to_string(),
        code: fault.code,
        log,
    }
}
