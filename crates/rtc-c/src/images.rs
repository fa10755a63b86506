//! Images as C sees them: bytes, with their names and log.
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
    enter(|| show_bytes(&given(image, "image")?.image.image, bytes, length))
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
