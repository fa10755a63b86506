//! Hooks of functions that ask about the process, its user and the machine, and of those that turn the present moment into a
//! date. Their answers are in no file.

use core::ffi::{c_int, c_uint};

use crate::files::streamed;
use crate::hook;
use crate::state;
use crate::streams;
use crate::sys::{self, AT_FDCWD, Any, Path, text};

// The numbers are in the same record as those of limits, which are small.
const USER: u8 = 200;
const MACHINE: u8 = 201;
const PROCESSORS: u8 = 202;
const PRIORITY: u8 = 203;
const TERMINALS: u8 = 204;
const INPUT: u8 = 205;
const PASSING: u8 = 206;

/// Names of standard input.
const INPUT_NAMES: [&[u8]; 3] = [b"/dev/stdin", b"/dev/fd/0", b"/proc/self/fd/0"];
/// The arguments of `sysconf` that ask for the number of processors.
const PROCESSOR_NUMBERS: [c_int; 2] = [83, 84];
/// A moment that is not further away than this many seconds is the present one.
const PRESENT: u64 = 60;

const NONE: Any = core::ptr::null_mut();
const NOBODY: c_uint = c_uint::MAX;

hook! {
    fn getuid() -> c_uint, NOBODY, |r, e| asked(USER);
    fn geteuid() -> c_uint, NOBODY, |r, e| asked(USER);
    fn getgid() -> c_uint, NOBODY, |r, e| asked(USER);
    fn getegid() -> c_uint, NOBODY, |r, e| asked(USER);
    fn getresuid(real: Any, effective: Any, saved: Any) -> c_int, -1, |r, e| asked(USER);
    fn getresgid(real: Any, effective: Any, saved: Any) -> c_int, -1, |r, e| asked(USER);
    fn getgroups(size: c_int, to: Any) -> c_int, -1, |r, e| asked(USER);

    fn uname(to: Any) -> c_int, -1, |r, e| asked(MACHINE);
    fn gethostname(to: Any, size: usize) -> c_int, -1, |r, e| asked(MACHINE);
    fn __gethostname_chk(to: Any, size: usize, whole: usize) -> c_int, -1, |r, e| asked(MACHINE);
    fn getdomainname(to: Any, size: usize) -> c_int, -1, |r, e| asked(MACHINE);

    fn sched_getaffinity(process: c_int, size: usize, to: Any) -> c_int, -1, |r, e| asked(PROCESSORS);
    fn get_nprocs() -> c_int, -1, |r, e| asked(PROCESSORS);
    fn get_nprocs_conf() -> c_int, -1, |r, e| asked(PROCESSORS);
    fn sysconf(what: c_int) -> core::ffi::c_long, -1, |r, e| if PROCESSOR_NUMBERS.contains(&what) { asked(PROCESSORS) };

    fn getpriority(which: c_int, who: c_uint) -> c_int, -1, |r, e| asked(PRIORITY);
    fn nice(by: c_int) -> c_int, -1, |r, e| asked(PRIORITY);
    fn sched_getscheduler(process: c_int) -> c_int, -1, |r, e| asked(PRIORITY);
    fn sched_getparam(process: c_int, to: Any) -> c_int, -1, |r, e| asked(PRIORITY);

    fn isatty(file: c_int) -> c_int, -1, |r, e| stream(file);
    fn ttyname(file: c_int) -> Any, NONE, |r, e| stream(file);
    fn ttyname_r(file: c_int, to: Any, size: usize) -> c_int, -1, |r, e| stream(file);
    fn fstat(file: c_int, to: Any) -> c_int, -1, |r, e| input(file);
    fn fstat64(file: c_int, to: Any) -> c_int, -1, |r, e| input(file);
    fn __fxstat(v: c_int, file: c_int, to: Any) -> c_int, -1, |r, e| input(file);
    fn __fxstat64(v: c_int, file: c_int, to: Any) -> c_int, -1, |r, e| input(file);

    fn statvfs(path: Path, to: Any) -> c_int, -1, |r, e| passing();
    fn statvfs64(path: Path, to: Any) -> c_int, -1, |r, e| passing();
    fn fstatvfs(file: c_int, to: Any) -> c_int, -1, |r, e| passing();
    fn fstatvfs64(file: c_int, to: Any) -> c_int, -1, |r, e| passing();
    fn sysinfo(to: Any) -> c_int, -1, |r, e| passing();
    fn getloadavg(to: Any, count: c_int) -> c_int, -1, |r, e| passing();
    fn setmntent(path: Path, mode: Path) -> Any, NONE, |r, e| streamed(path, mode, e, r);

    fn localtime(moment: Any) -> Any, NONE, |r, e| { state::path(b't', b""); dated(moment) };
    fn localtime_r(moment: Any, to: Any) -> Any, NONE, |r, e| { state::path(b't', b""); dated(moment) };
    fn gmtime(moment: Any) -> Any, NONE, |r, e| dated(moment);
    fn gmtime_r(moment: Any, to: Any) -> Any, NONE, |r, e| dated(moment);
    fn ctime(moment: Any) -> Any, NONE, |r, e| dated(moment);
    fn ctime_r(moment: Any, to: Any) -> Any, NONE, |r, e| dated(moment);
}

fn asked(about: u8) {
    state::path(b'l', &[about]);
}

/// Logs that the program asked how much is free, or how busy the machine is.
fn passing() {
    asked(PASSING);
}

/// Logs that the program asked whether one of its streams is a terminal.
fn stream(file: c_int) {
    match file {
        0 => asked(INPUT),
        1 | 2 => asked(TERMINALS),
        _ => {}
    }
}

/// Logs that the program asked what its standard input is.
fn input(file: c_int) {
    if file == 0 {
        asked(INPUT);
    }
}

/// Logs a look at standard input by its name.
///
/// # Safety
/// `path` is null or NUL-terminated.
pub(crate) unsafe fn looked(directory: c_int, path: Path) {
    // SAFETY: as the caller promises.
    if directory == AT_FDCWD && unsafe { is_input(path) } {
        asked(INPUT);
    }
}

/// Logs that standard input was opened by its name: the program will read it.
///
/// # Safety
/// As for [`looked`].
pub(crate) unsafe fn opened(directory: c_int, path: Path) {
    // SAFETY: as the caller promises.
    if directory == AT_FDCWD && unsafe { is_input(path) } {
        streams::read_nothing(0);
    }
}

/// # Safety
/// As for [`looked`].
unsafe fn is_input(path: Path) -> bool {
    // SAFETY: as the caller promises.
    unsafe { text(path) }.is_some_and(|name| INPUT_NAMES.contains(&name))
}

/// Logs that the program made a date of the present moment.
///
/// # Safety
/// `moment` is what the program gave to a function that takes a `time_t`.
unsafe fn dated(moment: Any) {
    // SAFETY: the function has read it.
    let moment = unsafe { moment.cast::<i64>().read() };
    if moment.abs_diff(sys::now()) <= PRESENT {
        asked(PASSING);
    }
}
