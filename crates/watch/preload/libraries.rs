//! Logs the shared libraries of a process, and which of them may look through all variables.
//!
//! It runs without the lock of the state: the loader takes its own, and the thread that holds that one may wait for ours.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::identity::Identity;
use crate::sys::{self, LoadedObject, text};
use crate::{Real, state, symbols};

/// The number of objects at the start of the program; 0 before it was counted. Later ones are behind them.
static AT_START: AtomicUsize = AtomicUsize::new(0);

/// What is known of the objects that were visited.
#[derive(Default)]
struct Visit {
    count: usize,
    /// Whether this library was among them.
    behind_ours: bool,
}

/// Logs every library when the program starts.
pub(crate) fn log_first() {
    AT_START.store(log_all(), Ordering::Relaxed);
}

/// Logs every library again, for those that `dlopen` loaded.
pub(crate) fn log() {
    log_all();
}

fn log_all() -> usize {
    let mut seen = Visit::default();
    // SAFETY: `visit` has the signature, and the data has the type that it expects.
    unsafe { sys::dl_iterate_phdr(visit, (&raw mut seen).cast()) };
    seen.count
}

extern "C" fn visit(object: *mut LoadedObject, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader's description, valid for the call, and what `log_all` passed.
    let (object, seen) = unsafe { (&*object, &mut *data.cast::<Visit>()) };
    let at_start = AT_START.load(Ordering::Relaxed);
    let is_late = at_start > 0 && seen.count >= at_start;
    seen.count += 1;
    if ours(object) {
        seen.behind_ours = true;
        return 0;
    }
    // SAFETY: the loader's names end in NUL.
    let name = unsafe { text(object.name) };
    // The main program's name is empty, and that of the kernel's object has no slash.
    if let Some(name) = name.filter(|name| name.contains(&b'/')) {
        // SAFETY: as above.
        let identity = Identity::of_path(unsafe { CStr::from_ptr(object.name) });
        state::file(b'L', &identity, name);
        // The user's own preloaded libraries come before this one, the program's come after it. SAFETY: the object is loaded.
        if (is_late || !seen.behind_ours) && unsafe { symbols::has_environ(object) } {
            state::path(b'j', name);
        }
    }
    0
}

/// Whether the object is this library.
pub(crate) fn ours(object: &LoadedObject) -> bool {
    let here = ours as *const () as usize;
    // SAFETY: the loader's table of that many headers.
    let headers =
        unsafe { core::slice::from_raw_parts(object.headers, object.header_count.into()) };
    headers.iter().any(|header| {
        let start = object.address.wrapping_add(header.address as usize);
        header.kind == sys::PT_LOAD && here.wrapping_sub(start) < header.memory_size as usize
    })
}

/// Logs that a library is loaded whose calls are not ours: it has a C library of its own. Returns the real `dlmopen`.
extern "C" fn into_another_namespace() -> *mut c_void {
    static REAL: Real = Real::new();
    // SAFETY: errno is this thread's.
    unsafe {
        let errno = *sys::__errno_location();
        state::path(b'U', b"it loads libraries into another namespace");
        *sys::__errno_location() = errno;
    }
    REAL.get("dlmopen\0").unwrap_or(core::ptr::null_mut())
}

/// The real function searches where its caller was linked to, so it must not be called from here: this jumps to it.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlmopen() {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {log}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: ret",
        log = sym into_another_namespace,
    )
}

/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlmopen() {
    core::arch::naked_asm!(
        "stp x0, x1, [sp, #-32]!",
        "stp x2, x30, [sp, #16]",
        "bl {log}",
        "mov x16, x0",
        "ldp x2, x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "cbz x16, 2f",
        "br x16",
        "2: mov x0, #0",
        "ret",
        log = sym into_another_namespace,
    )
}
