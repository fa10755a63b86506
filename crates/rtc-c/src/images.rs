//! Images as C sees them, and what is made of several: one cubin by nvJitLink, one fat binary by nvFatbin.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through border.rs, which says what is asked of it"
)]

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warpcc_rtc::{Compiled, Environment, FatbinImage, LinkRequest, Piece, PieceKind, Target};

use crate::error::{Failure, Status};
use crate::ffi::{bytes, enter, free, given, given_mut, make, path, text, texts};

/// A compiled or linked image: machine code, PTX or LTO-IR, with its names and log.
#[derive(Debug)]
pub struct Image {
    image: Arc<Compiled>,
    key: Option<warpcc_rtc::Key>,
    found: Found,
    texts: OnceLock<Texts>,
}

/// An image's texts as C strings: made when they are first asked for, so that a hit need not make them.
#[derive(Debug)]
struct Texts {
    target: CString,
    log: CString,
    key: CString,
    lowered: Vec<(String, CString)>,
}

/// Where an image was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Found {
    /// In this process's memory.
    Memory = 0,
    /// In a folder.
    Disk = 1,
    /// In a shared cache.
    Shared = 2,
    /// Nowhere: it was made.
    Made = 3,
    /// In what the caller gave.
    Given = 4,
}

impl Image {
    /// One that was made without a cache.
    pub(crate) fn from_compiled(compiled: Compiled) -> Self {
        Self {
            image: compiled.into(),
            key: None,
            found: Found::Made,
            texts: OnceLock::new(),
        }
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.image
    }

    fn texts(&self) -> &Texts {
        // NVRTC's own words have no NUL; an entry of a cache that has one is shown up to nothing.
        let text = |text: &str| CString::new(text).unwrap_or_default();
        self.texts.get_or_init(|| Texts {
            target: text(&self.image.target.to_string()),
            log: text(&self.image.log),
            key: text(&self.key.map(|key| key.hex()).unwrap_or_default()),
            lowered: self
                .image
                .lowered
                .iter()
                .map(|(asked, lowered)| (asked.clone(), text(lowered)))
                .collect(),
        })
    }
}

impl From<warpcc_rtc::Image> for Image {
    fn from(image: warpcc_rtc::Image) -> Self {
        Self {
            image: image.compiled,
            key: image.key,
            found: match image.found {
                warpcc_rtc::Found::Memory => Found::Memory,
                warpcc_rtc::Found::Disk => Found::Disk,
                warpcc_rtc::Found::Shared => Found::Shared,
                warpcc_rtc::Found::Made => Found::Made,
                warpcc_rtc::Found::Given => Found::Given,
            },
            texts: OnceLock::new(),
        }
    }
}

/// An image of bytes that the program has: `target` says what they are ("sm_90", "compute_90", "lto_90"). They are copied.
///
/// # Safety
/// The text and the bytes are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_image_new(
    target: *const c_char,
    bytes: *const c_void,
    length: usize,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        // SAFETY: as the caller says.
        let (target, bytes) = unsafe {
            (
                text(target, "target")?,
                self::bytes(bytes, length, "bytes")?,
            )
        };
        let made = Image::from_compiled(Compiled {
            target: target.parse()?,
            image: bytes.into(),
            lowered: Vec::new(),
            log: String::new(),
        });
        Ok(Image {
            found: Found::Given,
            ..made
        })
    })
}

/// The image's bytes, which live as long as it does. PTX has no NUL at its end.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_bytes(
    image: Option<&Image>,
    bytes: Option<&mut MaybeUninit<*const c_void>>,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    enter(|| {
        let all = &given(image, "image")?.image.image;
        given_mut(bytes, "bytes")?.write(all.as_ptr().cast());
        given_mut(length, "length")?.write(all.len());
        Ok(())
    })
}

/// The name in the image of what the source calls `expression`, which must be one of those asked for. It lives as long as
/// the image.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_image_lowered_name(
    image: Option<&Image>,
    expression: *const c_char,
    name: Option<&mut MaybeUninit<*const c_char>>,
) -> Status {
    enter(|| {
        let lowered = &given(image, "image")?.texts().lowered;
        // SAFETY: as the caller says.
        let expression = unsafe { text(expression, "expression") }?;
        let found = lowered.iter().find(|(asked, _)| asked == expression);
        let (_, found) = found.ok_or_else(|| {
            let asked: Vec<_> = lowered.iter().map(|(asked, _)| asked.as_str()).collect();
            let problem = format!(
                "{expression:?} was not asked for; names asked for: [{}]",
                asked.join(", ")
            );
            Failure::invalid("expression", problem)
        })?;
        given_mut(name, "name")?.write(found.as_ptr());
        Ok(())
    })
}

/// What the compiler said: warnings. It lives as long as the image; "" for null.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_log(image: Option<&Image>) -> *const c_char {
    image.map_or(c"".as_ptr(), |image| image.texts().log.as_ptr())
}

/// What the image is: "sm_90". It lives as long as the image; "" for null.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_target(image: Option<&Image>) -> *const c_char {
    image.map_or(c"".as_ptr(), |image| image.texts().target.as_ptr())
}

/// The image's key in the cache, the same on every machine; "" where it has none. It lives as long as the image.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_key(image: Option<&Image>) -> *const c_char {
    image.map_or(c"".as_ptr(), |image| image.texts().key.as_ptr())
}

/// Where the image was found.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_found(image: Option<&Image>) -> Found {
    image.map_or(Found::Given, |image| image.found)
}

/// Frees it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_free(image: Option<Box<Image>>) {
    free(image);
}

/// What a piece is that is no image of this library's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum BytesKind {
    /// A fat binary, of which the fitting image is taken.
    Fatbin = 4,
    /// A host object with a fat binary inside.
    Object = 5,
    /// A library of such objects.
    Library = 6,
}

/// Images and more, to be linked or put into a fat binary, in order.
#[derive(Debug)]
pub struct Pieces(Mutex<Vec<(Piece, Option<Target>)>>);

impl Pieces {
    fn add(&self, piece: Piece, target: Option<Target>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((piece, target));
    }

    fn copy(&self) -> Vec<(Piece, Option<Target>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }

    /// All of them, to be linked.
    pub(crate) fn link_request(
        &self,
        name: &str,
        target: &str,
        options: &[&str],
    ) -> Result<LinkRequest, Failure> {
        let pieces = self.copy().into_iter().map(|(piece, _)| piece).collect();
        Ok(LinkRequest {
            name: name.into(),
            pieces,
            target: target.parse()?,
            options: options.iter().map(|option| Arc::from(*option)).collect(),
        })
    }
}

/// Makes an empty list.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_pieces_new(pieces: Option<&mut MaybeUninit<*mut Pieces>>) -> Status {
    make(pieces, "pieces", || Ok(Pieces(Mutex::default())))
}

/// Adds an image under the name that messages and cuobjdump call it by. The image may be freed afterwards.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_pieces_add_image(
    pieces: Option<&Pieces>,
    name: *const c_char,
    image: Option<&Image>,
) -> Status {
    enter(|| {
        let pieces = given(pieces, "pieces")?;
        // SAFETY: as the caller says.
        let name = unsafe { text(name, "name") }?;
        let image = given(image, "image")?.compiled();
        let piece = Piece {
            name: name.into(),
            kind: match image.target {
                Target::Cubin(_) => PieceKind::Cubin,
                Target::Ptx(_) => PieceKind::Ptx,
                Target::LtoIr(_) => PieceKind::LtoIr,
            },
            bytes: image.image.clone(),
        };
        pieces.add(piece, Some(image.target));
        Ok(())
    })
}

/// Adds something else to be linked, by `warpcc_rtc_kind`. The bytes are copied.
///
/// # Safety
/// The text and the bytes are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_pieces_add_bytes(
    pieces: Option<&Pieces>,
    kind: i32,
    name: *const c_char,
    bytes: *const c_void,
    length: usize,
) -> Status {
    enter(|| {
        let pieces = given(pieces, "pieces")?;
        // SAFETY: as the caller says.
        let (name, bytes) = unsafe { (text(name, "name")?, self::bytes(bytes, length, "bytes")?) };
        let known = [
            (BytesKind::Fatbin, PieceKind::Fatbin),
            (BytesKind::Object, PieceKind::Object),
            (BytesKind::Library, PieceKind::Library),
        ];
        let found = known.iter().find(|(known, _)| *known as i32 == kind);
        let (_, kind) = found.ok_or_else(|| {
            Failure::invalid(
                "kind",
                format!(
                    "{kind} is not a warpcc_rtc_kind; add images with warpcc_rtc_pieces_add_image"
                ),
            )
        })?;
        let piece = Piece {
            name: name.into(),
            kind: *kind,
            bytes: bytes.into(),
        };
        pieces.add(piece, None);
        Ok(())
    })
}

/// Frees it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_pieces_free(pieces: Option<Box<Pieces>>) {
    free(pieces);
}

/// nvJitLink, ready to link.
#[derive(Debug)]
pub struct Linker(warpcc_rtc::Linker);

/// Finds nvJitLink: at `path` (the library or its folder), or with null where docs/rtc.md says.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_linker_open(
    path: *const c_char,
    linker: Option<&mut MaybeUninit<*mut Linker>>,
) -> Status {
    make(linker, "linker", || {
        // SAFETY: as the caller says.
        let path = unsafe { self::path(path) }?;
        let environment = Environment::of_process();
        let found = warpcc_rtc::Linker::find_with(path, None, &environment)?;
        Ok(Linker(found))
    })
}

/// Links pieces to one cubin for `target` ("sm_90"), with `count` options of nvJitLink's; no cache. Messages call the whole
/// `name`.
///
/// # Safety
/// The texts are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_link(
    linker: Option<&Linker>,
    name: *const c_char,
    pieces: Option<&Pieces>,
    target: *const c_char,
    options: *const *const c_char,
    count: usize,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let linker = given(linker, "linker")?;
        let pieces = given(pieces, "pieces")?;
        // SAFETY: as the caller says.
        let (name, target, options) = unsafe {
            let options = texts(options, count, "options")?;
            (text(name, "name")?, text(target, "target")?, options)
        };
        let request = pieces.link_request(name, target, &options)?;
        let linked = linker.0.link(&request)?;
        Ok(Image::from_compiled(Compiled {
            target: Target::Cubin(request.target),
            image: linked.image,
            lowered: Vec::new(),
            log: linked.log,
        }))
    })
}

/// Frees it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_linker_free(linker: Option<Box<Linker>>) {
    free(linker);
}

/// nvFatbin, ready to make fat binaries.
#[derive(Debug)]
pub struct FatbinMaker(warpcc_rtc::FatbinMaker);

/// A fat binary.
#[derive(Debug)]
pub struct Fatbin(Vec<u8>);

/// Finds nvFatbin: at `path` (the library or its folder), or with null where docs/rtc.md says.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_fatbin_maker_open(
    path: *const c_char,
    maker: Option<&mut MaybeUninit<*mut FatbinMaker>>,
) -> Status {
    make(maker, "maker", || {
        // SAFETY: as the caller says.
        let path = unsafe { self::path(path) }?;
        let environment = Environment::of_process();
        let found = warpcc_rtc::FatbinMaker::find_with(path, None, &environment)?;
        Ok(FatbinMaker(found))
    })
}

/// Makes a fat binary of the images in `pieces`, with `count` options of nvFatbin's ("-compress=false").
///
/// # Safety
/// The texts are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_fatbin_make(
    maker: Option<&FatbinMaker>,
    pieces: Option<&Pieces>,
    options: *const *const c_char,
    count: usize,
    fatbin: Option<&mut MaybeUninit<*mut Fatbin>>,
) -> Status {
    make(fatbin, "fatbin", || {
        let maker = given(maker, "maker")?;
        let pieces = given(pieces, "pieces")?.copy();
        // SAFETY: as the caller says.
        let options = unsafe { texts(options, count, "options") }?;
        let mut images = Vec::with_capacity(pieces.len());
        for (piece, target) in pieces {
            let target = target.ok_or_else(|| {
                let problem = format!(
                    "{:?} is a {}, and a fat binary holds images",
                    piece.name,
                    piece.kind.word()
                );
                Failure::invalid("pieces", problem)
            })?;
            images.push(FatbinImage {
                name: piece.name,
                target,
                bytes: piece.bytes,
                options: "".into(),
            });
        }
        Ok(Fatbin(maker.0.make(&images, &options)?))
    })
}

/// The fat binary's bytes, which live as long as it does.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_fatbin_bytes(
    fatbin: Option<&Fatbin>,
    bytes: Option<&mut MaybeUninit<*const c_void>>,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    enter(|| {
        let all = &given(fatbin, "fatbin")?.0;
        given_mut(bytes, "bytes")?.write(all.as_ptr().cast());
        given_mut(length, "length")?.write(all.len());
        Ok(())
    })
}

/// Frees it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_fatbin_free(fatbin: Option<Box<Fatbin>>) {
    free(fatbin);
}

/// Frees it; what it made stays.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_fatbin_maker_free(maker: Option<Box<FatbinMaker>>) {
    free(maker);
}
