//! A list of images and other pieces, to be linked or put into a fat binary.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use warpcc_rtc::{LinkRequest, Piece, PieceKind, Target};

use crate::error::{Failure, Status};
use crate::ffi::{bytes, enter, free, given, make, text, texts};
use crate::images::Image;

/// The kind of a piece that is not an image of this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum BytesKind {
    /// A fat binary; the linker takes the fitting image.
    Fatbin = 4,
    /// A host object with a fat binary inside.
    Object = 5,
    /// A library of objects with fat binaries.
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

    pub(crate) fn copy(&self) -> Vec<(Piece, Option<Target>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }

    /// A request to link all pieces for `target` with `count` options.
    ///
    /// # Safety
    /// As [`text`] and [`texts`].
    pub(crate) unsafe fn link_request(
        &self,
        name: *const c_char,
        target: *const c_char,
        options: *const *const c_char,
        count: usize,
    ) -> Result<LinkRequest, Failure> {
        // SAFETY: as the caller says.
        let (name, target, options) = unsafe {
            let options = texts(options, count, "options")?;
            (text(name, "name")?, text(target, "target")?, options)
        };
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

/// Adds an image under a name for messages and cuobjdump. The image may be freed afterwards.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
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

/// Adds another piece to be linked, of a `warpcc_rtc_kind`. The bytes are copied.
///
/// # Safety
/// Each pointer to a text or bytes is null, or valid during the call.
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

/// Frees the list.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_pieces_free(pieces: Option<Box<Pieces>>) {
    free(pieces);
}
