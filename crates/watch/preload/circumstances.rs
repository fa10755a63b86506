//! Hooks of functions that ask about the process, its user and the machine, and of those that turn the present moment into a
//! date. Their answers are in no file.

use core::ffi::{c_int, c_uint};

use crate::files::streamed;
use crate::hook;
use crate::input;
use crate::state;
use crate::sys::{self, Any, Path};

// The numbers are in the same record as those of limits, which are small.
const USER: u8 = 200;
const MACHINE: u8 = 201;
const PROCESSORS: u8 = 202;
const PRIORITY: u8 = 203;
const TERMINALS: u8 = 204;
const INPUT: u8 = 205;
const PASSING: u8 = 206;
const NAMED_INPUT: u8 = 207;

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
    fn ttyname(file: c_int) -> Any, NONE, |r, e| terminal_name(file, !r.is_null());
    fn ttyname_r(file: c_int, to: Any, size: usize) -> c_int, -1, |r, e| terminal_name(file, r == 0);
    fn tcgetattr(file: c_int, to: Any) -> c_int, -1, |r, e| stream(file);
    fn fstat(file: c_int, to: Any) -> c_int, -1, |r, e| looked_at_open(file);
    fn fstat64(file: c_int, to: Any) -> c_int, -1, |r, e| looked_at_open(file);
    fn __fxstat(v: c_int, file: c_int, to: Any) -> c_int, -1, |r, e| looked_at_open(file);
    fn __fxstat64(v: c_int, file: c_int, to: Any) -> c_int, -1, |r, e| looked_at_open(file);

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
        1 | 2 => asked(TERMINALS),
        _ => looked_at_open(file),
    }
}

/// Logs that the program asked for the name of a stream's terminal, which is warpcc's if there is one.
fn terminal_name(file: c_int, is_there: bool) {
    match file {
        _ if is_there && input::is_input(file) => input::read(),
        1 | 2 if is_there => state::path(b'q', b"it asked for the name of its terminal"),
        _ => stream(file),
    }
}

/// Logs that the program asked what an open file is, if that is standard input. Interpreters ask this of descriptor 0 whenever
/// they start.
pub(crate) fn looked_at_open(file: c_int) {
    if input::is_input(file) {
        asked(if file == 0 { INPUT } else { NAMED_INPUT });
    }
}

/// Logs that the program asked about standard input by a name.
pub(crate) fn looked_at_input() {
    asked(NAMED_INPUT);
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
