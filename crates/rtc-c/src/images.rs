//! Images for C: bytes, with their names and log.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

use warpcc_rtc::Compiled;

use crate::error::{Failure, Status};
use crate::ffi::{bytes, enter, free, given, given_mut, make, show_bytes, text};

/// A compiled or linked image: machine code, PTX or LTO-IR, with its names and log.
#[derive(Debug)]
pub struct Image {
    image: Arc<Compiled>,
    key: Option<warpcc_rtc::Key>,
    found: Found,
    texts: OnceLock<Texts>,
}

/// An image's texts as C strings: they are made when they are first requested, so that a hit need not make them.
#[derive(Debug)]
struct Texts {
    target: CString,
    log: CString,
    key: CString,
    lowered: Vec<(String, CString)>,
}

/// The place where an image was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Found {
    /// This process's memory.
    Memory = 0,
    /// In a folder.
    Disk = 1,
    /// In a shared cache.
    Shared = 2,
    /// It was not found, so it was made.
    Made = 3,
    /// The caller's own data.
    Given = 4,
}

impl From<warpcc_rtc::Found> for Found {
    fn from(found: warpcc_rtc::Found) -> Self {
        match found {
            warpcc_rtc::Found::Memory => Self::Memory,
            warpcc_rtc::Found::Disk => Self::Disk,
            warpcc_rtc::Found::Shared => Self::Shared,
            warpcc_rtc::Found::Made => Self::Made,
            warpcc_rtc::Found::Given => Self::Given,
        }
    }
}

impl Image {
    /// The image of a compilation without a cache.
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
        // NVRTC's texts have no NUL; a text from a cache that has one is shown as empty.
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
            found: image.found.into(),
            texts: OnceLock::new(),
        }
    }
}

/// Makes an image from the program's own bytes, which are copied. `target` is their kind and architecture ("sm_90",
/// "compute_90", "lto_90").
///
/// # Safety
/// Each pointer to a text or bytes is null, or valid during the call.
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

/// The image's bytes, which are valid as long as the image. PTX has no NUL at its end.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_bytes(
    image: Option<&Image>,
    bytes: Option<&mut MaybeUninit<*const c_void>>,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    enter(|| show_bytes(&given(image, "image")?.image.image, bytes, length))
}

/// The name in the image for `expression`, which is a name in the source and must be one of those requested. It is valid as
/// long as the image.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
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

/// The compiler's warnings. They are valid as long as the image; "" for null.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_log(image: Option<&Image>) -> *const c_char {
    image.map_or(c"".as_ptr(), |image| image.texts().log.as_ptr())
}

/// The image's target: "sm_90". It is valid as long as the image; "" for null.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_target(image: Option<&Image>) -> *const c_char {
    image.map_or(c"".as_ptr(), |image| image.texts().target.as_ptr())
}

/// The image's key in the cache, the same on every machine; "" if it has none. It is valid as long as the image.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_key(image: Option<&Image>) -> *const c_char {
    image.map_or(c"".as_ptr(), |image| image.texts().key.as_ptr())
}

/// The place where the image was found.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_found(image: Option<&Image>) -> Found {
    image.map_or(Found::Given, |image| image.found)
}

/// Frees the image.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_image_free(image: Option<Box<Image>>) {
    free(image);
}
