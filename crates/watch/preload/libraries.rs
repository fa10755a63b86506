//! The libraries that are mapped into the process.

use core::ffi::{CStr, c_int, c_void};

use crate::identity::Identity;
use crate::state::file;
use crate::sys::{self, text};

/// Logs every mapped library except this one: at the start, and again later for those that `dlopen` loaded.
///
/// It runs without our lock: the loader takes its own, and the thread that holds that one may wait for ours.
pub(crate) fn log() {
    extern "C" fn visit(object: *mut sys::LoadedObject, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the loader's description, valid for the call.
        let (object, name) = unsafe { (&*object, text((*object).name)) };
        // The main program's name is empty, and that of the kernel's object has no slash.
        if let Some(name) = name.filter(|name| name.contains(&b'/') && !ours(object)) {
            // SAFETY: the loader's names end in NUL.
            let identity = Identity::of_path(unsafe { CStr::from_ptr(object.name) });
            file(b'L', &identity, name);
        }
        0
    }
    // SAFETY: `visit` has the signature.
    unsafe { sys::dl_iterate_phdr(visit, core::ptr::null_mut()) };
}

/// Whether the object is this library.
pub(crate) fn ours(object: &sys::LoadedObject) -> bool {
    let here = ours as *const () as usize;
    // SAFETY: the loader's table of that many headers.
    let headers =
        unsafe { core::slice::from_raw_parts(object.headers, object.header_count.into()) };
    headers.iter().any(|header| {
        let start = object.address.wrapping_add(header.address as usize);
        header.kind == sys::PT_LOAD && here.wrapping_sub(start) < header.memory_size as usize
    })
}
