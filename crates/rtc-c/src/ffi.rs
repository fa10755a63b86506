//! Turns pointers from C into references, and results into pointers. All checks of arguments are here.
#![expect(
    unsafe_code,
    reason = "a pointer from C is what its caller says it is; what can be checked (null, UTF-8, NUL) is checked here"
)]

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;

use warpcc_rtc::{Environment, Error};

use crate::error::{self, Failure, Status};

/// A value for a text's length: the text ends at its first NUL.
pub const WARPCC_RTC_TO_NUL: usize = usize::MAX;

/// Runs the body of a function. Its error, or a panic, is stored for the thread.
pub(crate) fn enter(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    // Data that a panic leaves in the library is consistent: its locks are taken over, and waiting threads are told.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => error::keep(failure),
        Err(panic) => error::keep(Failure::of_panic(panic.as_ref())),
    }
}

/// Runs the body of a function that makes a handle. After an error the handle is null.
pub(crate) fn make<T>(
    out: Option<&mut MaybeUninit<*mut T>>,
    argument: &'static str,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Status {
    enter(|| {
        let out = given_mut(out, argument)?;
        out.write(ptr::null_mut());
        let made = make()?;
        out.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Makes a handle of a library at `path`, or with null in the places that docs/rtc.md lists.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn open<T>(
    path: *const c_char,
    out: Option<&mut MaybeUninit<*mut T>>,
    argument: &'static str,
    find: impl FnOnce(Option<&Path>, &Environment) -> Result<T, Error>,
) -> Status {
    make(out, argument, || {
        // SAFETY: as the caller says.
        let path = unsafe { self::path(path) }?;
        Ok(find(path, &Environment::of_process())?)
    })
}

/// Runs the body of a function that returns a text through a buffer, as [`copy_text`] describes.
///
/// # Safety
/// As [`copy_text`].
pub(crate) unsafe fn answer(
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
    work: impl FnOnce() -> Result<String, Failure>,
) -> Status {
    enter(|| {
        let text = work()?;
        // SAFETY: as the caller says.
        unsafe { copy_text(&text, buffer, size, length) }
    })
}

/// Frees a handle; null is allowed. A panic while freeing ends here too.
pub(crate) fn free<T>(handle: Option<Box<T>>) {
    enter(|| {
        drop(handle);
        Ok(())
    });
}

/// A handle, or an argument by reference; null is an error.
pub(crate) fn given<'a, T>(
    pointer: Option<&'a T>,
    argument: &'static str,
) -> Result<&'a T, Failure> {
    pointer.ok_or_else(|| Failure::null(argument))
}

/// A place for a result; null is an error.
pub(crate) fn given_mut<'a, T>(
    pointer: Option<&'a mut T>,
    argument: &'static str,
) -> Result<&'a mut T, Failure> {
    pointer.ok_or_else(|| Failure::null(argument))
}

/// A text that ends at its NUL.
///
/// # Safety
/// `text` is null or points to bytes with a zero among them, which stay as they are during the call.
pub(crate) unsafe fn text<'a>(
    text: *const c_char,
    argument: &'static str,
) -> Result<&'a str, Failure> {
    // SAFETY: as the caller says.
    unsafe { long_text(text, WARPCC_RTC_TO_NUL, argument) }
}

/// A text of `length` bytes, or to its NUL.
///
/// # Safety
/// `text` is null or points to `length` bytes, or with [`WARPCC_RTC_TO_NUL`] to bytes with a zero among them; they stay
/// as they are during the call.
pub(crate) unsafe fn long_text<'a>(
    text: *const c_char,
    length: usize,
    argument: &'static str,
) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(argument));
    }
    let bytes = match length {
        // SAFETY: as the caller says.
        WARPCC_RTC_TO_NUL => unsafe { CStr::from_ptr(text) }.to_bytes(),
        // SAFETY: likewise.
        length => unsafe { list(text.cast::<u8>(), length, argument) }?,
    };
    let text = str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Failure::invalid(argument, format!("it is not UTF-8 at byte {at}"))
    })?;
    match text.find('\0') {
        None => Ok(text),
        Some(at) => {
            let problem = format!("it has a NUL at byte {at}, where C would stop reading");
            Err(Failure::invalid(argument, problem))
        }
    }
}

/// The texts of a kernel.
///
/// # Safety
/// As [`text`] and [`long_text`].
pub(crate) unsafe fn kernel_of<'a>(
    parameters: *const c_char,
    name: *const c_char,
    source: *const c_char,
    length: usize,
) -> Result<(&'a str, &'a str, &'a str), Failure> {
    // SAFETY: as the caller says.
    unsafe {
        let parameters = text(parameters, "parameters")?;
        Ok((
            parameters,
            text(name, "name")?,
            long_text(source, length, "source")?,
        ))
    }
}

/// Bytes.
///
/// # Safety
/// `bytes` is null or points to `length` bytes, which stay as they are during the call.
pub(crate) unsafe fn bytes<'a>(
    bytes: *const c_void,
    length: usize,
    argument: &'static str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: as the caller says.
    unsafe { list(bytes.cast::<u8>(), length, argument) }
}

/// An array. Null is an empty array if the count is 0.
///
/// # Safety
/// `items` is null or points to `count` items, which stay as they are during the call.
pub(crate) unsafe fn list<'a, T>(
    items: *const T,
    count: usize,
    argument: &'static str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return Err(Failure::null(argument));
    }
    let bytes = count.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| bytes > isize::MAX.cast_unsigned()) {
        let problem = format!("{count} items are more than memory holds");
        return Err(Failure::invalid(argument, problem));
    }
    if !items.is_aligned() {
        return Err(Failure::invalid(argument, "the pointer is not aligned"));
    }
    // SAFETY: not null, aligned, and as the caller says.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}

/// Stores the address of bytes, and their number.
pub(crate) fn show_bytes(
    all: &[u8],
    bytes: Option<&mut MaybeUninit<*const c_void>>,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), Failure> {
    given_mut(bytes, "bytes")?.write(all.as_ptr().cast());
    given_mut(length, "length")?.write(all.len());
    Ok(())
}

/// A path that may be null.
///
/// # Safety
/// As [`text`].
unsafe fn path<'a>(path: *const c_char) -> Result<Option<&'a Path>, Failure> {
    match path.is_null() {
        true => Ok(None),
        // SAFETY: as the caller says.
        false => unsafe { text(path, "path") }.map(|path| Some(Path::new(path))),
    }
}

/// Texts that end at their NULs.
///
/// # Safety
/// As [`list`] and [`text`].
pub(crate) unsafe fn texts<'a>(
    items: *const *const c_char,
    count: usize,
    argument: &'static str,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: as the caller says.
    let items = unsafe { list(items, count, argument) }?;
    items
        .iter()
        // SAFETY: likewise.
        .map(|item| unsafe { text(*item, argument) })
        .collect()
}

/// Copies a text and a zero into `buffer` of `size` bytes, cut to fit, and stores its length without the zero. The buffer
/// may be null if its size is 0, and `length` may be null.
///
/// # Safety
/// `buffer` is null or points to `size` bytes that are not used elsewhere during the call.
unsafe fn copy_text(
    text: &str,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), Failure> {
    if let Some(length) = length {
        length.write(text.len());
    }
    if size == 0 {
        return Ok(());
    }
    if buffer.is_null() {
        return Err(Failure::null("buffer"));
    }
    let mut end = text.len().min(size - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: `end` is less than `size`, and the text is outside the caller's buffer.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), end);
        buffer.add(end).write(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_here_and_is_told() {
        let status = enter(|| panic!("on purpose {}", 1));
        assert_eq!(status, Status::Internal);
        let message = error::last();
        assert!(message.contains("on purpose 1"), "{message}");
        let mut out = MaybeUninit::new(ptr::dangling_mut::<u64>());
        let status = make(Some(&mut out), "out", || -> Result<u64, Failure> {
            panic!("again")
        });
        assert_eq!(status, Status::Internal);
        // SAFETY: it was written to before, and is a pointer either way.
        assert!(unsafe { out.assume_init() }.is_null());
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("while freed");
            }
        }
        free(Some(Box::new(Bad)));
        assert!(error::last().contains("while freed"));
    }

    #[test]
    fn texts_are_cut_at_whole_characters_and_end_with_a_zero() {
        let copy = |text: &str, size: usize| {
            let mut buffer = [0x7f_u8; 8];
            let mut length = MaybeUninit::new(0);
            // SAFETY: no more than the buffer has.
            unsafe { copy_text(text, buffer.as_mut_ptr().cast(), size, Some(&mut length)) }
                .expect("copied");
            // SAFETY: a number either way.
            (buffer, unsafe { length.assume_init() })
        };
        let (buffer, length) = copy("abc", 4);
        assert_eq!((&buffer[..5], length), (&b"abc\0\x7f"[..], 3));
        let (buffer, length) = copy("a\u{e9}c", 3);
        assert_eq!((&buffer[..4], length), (&b"a\0\x7f\x7f"[..], 4));
        let (buffer, length) = copy("abc", 0);
        assert_eq!((buffer[0], length), (0x7f, 3));
        let (buffer, _) = copy("abc", 1);
        assert_eq!(&buffer[..2], b"\0\x7f");
    }
}
