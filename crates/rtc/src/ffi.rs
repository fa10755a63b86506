//! Code that the interfaces of NVIDIA's libraries share: functions by name, a version in two numbers, results in two calls.
#![expect(
    unsafe_code,
    reason = "a function of a C library that is found at run time has the type that its header declares, which only \
              people can compare"
)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::os::unix::Library;

use crate::version::Version;

/// The handle of a program, a link or a fat binary.
pub(crate) type Handle = *mut c_void;
/// A library's text for one of its error codes.
pub(crate) type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type GetSize = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type GetBytes = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint) -> c_int;

/// A function of a library.
///
/// # Safety
/// `F` must be its type in NVIDIA's header, as a function pointer.
pub(crate) unsafe fn function<F: Copy>(library: &'static Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller gives the name and the type that belong together, and the library is never closed.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found
        .map(|found| *found)
        .map_err(|_| format!("it has no function {name}"))
}

/// The library's version, from its function `name`.
///
/// # Safety
/// `name` takes two pointers to `int` or `unsigned int`.
pub(crate) unsafe fn version(library: &'static Library, name: &str) -> Result<Version, String> {
    // SAFETY: as the caller says.
    let get: GetVersion = unsafe { function(library, name) }?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two live numbers are given.
    match unsafe { get(&raw mut major, &raw mut minor) } {
        0 => Ok(Version::new(major, minor)),
        code => Err(format!("it does not report its version (error {code})")),
    }
}

/// A result that takes two calls: one for its length, and one for its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    size: GetSize,
    get: GetBytes,
}

impl Output {
    /// The result of the functions `size` and `get`.
    ///
    /// # Safety
    /// Both take a handle. `size` also takes a pointer to a `size_t`, `get` a pointer to a buffer of that many bytes.
    pub(crate) unsafe fn find(
        library: &'static Library,
        size: &str,
        get: &str,
    ) -> Result<Self, String> {
        // SAFETY: as the caller says.
        let (size, get) = unsafe { (function(library, size)?, function(library, get)?) };
        Ok(Self { size, get })
    }

    /// The result, or the library's error.
    ///
    /// # Safety
    /// `handle` is a live one of the library's.
    pub(crate) unsafe fn bytes(self, handle: Handle) -> Result<Vec<u8>, c_int> {
        let mut size = 0;
        // SAFETY: a live handle, and a live number for the answer.
        let code = unsafe { (self.size)(handle, &raw mut size) };
        if code != 0 {
            return Err(code);
        }
        // One more byte, for a library that does not count the zero at the end of a text (nvJitLink 12.0).
        let mut bytes = vec![0_u8; size.saturating_add(1)];
        if size > 0 {
            // SAFETY: the room is more than the library has just asked for.
            let code = unsafe { (self.get)(handle, bytes.as_mut_ptr().cast()) };
            if code != 0 {
                return Err(code);
            }
        }
        bytes.truncate(size);
        Ok(bytes)
    }

    /// The result as a text, up to its zero.
    ///
    /// # Safety
    /// `handle` is a live one of the library's.
    pub(crate) unsafe fn text(self, handle: Handle) -> Result<String, c_int> {
        // SAFETY: as the caller says.
        let bytes = unsafe { self.bytes(handle) }?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
