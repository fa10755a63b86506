//! Status codes, and the text of a thread's last error.
#![expect(
    unsafe_code,
    reason = "names that C finds must not be taken twice in one program, which only the linker sees"
)]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};

use warpcc_kernels::LaunchError;
use warpcc_kernels::plan::PlanError;
use warpcc_rtc::{Error, ErrorKind, NotATarget};

/// The status that a function returns. The numbers do not change; later versions may add more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// The function succeeded.
    Ok = 0,
    /// A library of NVIDIA's was not found, or does not load; the text lists the places that were tried.
    Library = 1,
    /// An argument is wrong; the text names it.
    Invalid = 2,
    /// This version of a library, or this GPU, cannot do it.
    Unsupported = 3,
    /// The source does not compile; the text has the place, the log, the options and the file with the whole source.
    Compile = 4,
    /// The images do not link.
    Link = 5,
    /// It was cancelled.
    Cancelled = 6,
    /// It took longer than allowed.
    Deadline = 7,
    /// A call of a library of NVIDIA's failed for a reason other than the text.
    Call = 8,
    /// The driver returned an error: `warpcc_rtc_error_driver` has its number.
    Driver = 9,
    /// A file or folder could not be used.
    File = 10,
    /// An image cannot be put into a fat binary.
    Fatbin = 11,
    /// A bug in this library, which stays usable.
    Internal = 100,
}

/// The error of a function.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    text: String,
    /// The driver's number.
    driver: u32,
}

impl Failure {
    /// An argument that is wrong.
    pub(crate) fn invalid(argument: &str, problem: impl AsRef<str>) -> Self {
        Self::new(Status::Invalid, format!("{argument}: {}", problem.as_ref()))
    }

    /// An argument that is null.
    pub(crate) fn null(argument: &str) -> Self {
        Self::invalid(argument, "it is a null pointer")
    }

    /// A request for a feature that this build of the library lacks.
    #[cfg(not(feature = "remote"))]
    pub(crate) fn unsupported(argument: &str, problem: &str) -> Self {
        Self::new(Status::Unsupported, format!("{argument}: {problem}"))
    }

    /// The driver's refusal.
    pub(crate) fn driver(call: &str, error: cudarc::driver::DriverError) -> Self {
        Self {
            status: Status::Driver,
            text: format!("{call}: {error:?}"),
            driver: error.0 as u32,
        }
    }

    /// A panic.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let said = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no details are given");
        Self::new(
            Status::Internal,
            format!("a bug in warpcc-rtc; please report it: {said}"),
        )
    }

    /// The status to return.
    pub(crate) fn status(&self) -> Status {
        self.status
    }

    fn new(status: Status, text: String) -> Self {
        Self {
            status,
            text,
            driver: 0,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Library => Status::Library,
            ErrorKind::Invalid => Status::Invalid,
            ErrorKind::Unsupported => Status::Unsupported,
            ErrorKind::Compile => Status::Compile,
            ErrorKind::Link => Status::Link,
            ErrorKind::Cancelled => Status::Cancelled,
            ErrorKind::Deadline => Status::Deadline,
            ErrorKind::Call => Status::Call,
            ErrorKind::Driver => Status::Driver,
            ErrorKind::File => Status::File,
            ErrorKind::Fatbin => Status::Fatbin,
            _ => Status::Internal,
        };
        let driver = match &error {
            Error::Driver(error) => error.number,
            _ => 0,
        };
        Self {
            status,
            text: error.to_string(),
            driver,
        }
    }
}

impl From<NotATarget> for Failure {
    fn from(error: NotATarget) -> Self {
        Self::new(Status::Invalid, format!("target: {error}"))
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(Status::Invalid, error.to_string())
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Kernel(error) => error.into(),
            LaunchError::Address { .. } => Self::new(Status::Invalid, error.to_string()),
            LaunchError::Driver { call, error } => Self::driver(call, error),
        }
    }
}

struct Last {
    text: CString,
    driver: u32,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last { text: CString::default(), driver: 0 });
}

/// Stores an error for the next query of this thread.
pub(crate) fn keep(failure: Failure) -> Status {
    // A source that is quoted in a log may contain any byte.
    let text = CString::new(failure.text.replace('\0', "\u{fffd}")).unwrap_or_default();
    // A thread that is ending cannot store it any more; it still has the status.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Last {
                text,
                driver: failure.driver,
            };
        }
    });
    failure.status
}

/// The text of the last error, for tests.
#[cfg(test)]
pub(crate) fn last() -> String {
    LAST.with(|last| last.borrow().text.to_string_lossy().into_owned())
}

/// The text of this thread's last error, UTF-8 with a NUL at its end; empty if there was none. It is valid until the next
/// error on this thread. Functions that succeed do not change it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_error_text() -> *const c_char {
    let text = LAST.try_with(|last| last.try_borrow().map(|last| last.text.as_ptr()));
    text.ok().and_then(Result::ok).unwrap_or(c"".as_ptr())
}

/// The length of the last error's text in bytes, without the NUL.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_error_length() -> usize {
    let length = LAST.try_with(|last| last.try_borrow().map(|last| last.text.as_bytes().len()));
    length.ok().and_then(Result::ok).unwrap_or(0)
}

/// The driver's number (`CUresult`) of this thread's last error; 0 if it was not the driver's.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_error_driver() -> u32 {
    let driver = LAST.try_with(|last| last.try_borrow().map(|last| last.driver));
    driver.ok().and_then(Result::ok).unwrap_or(0)
}

/// The name of a status: "invalid".
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_status_name(status: i32) -> *const c_char {
    let named = [
        (Status::Ok, c"ok"),
        (Status::Library, c"library"),
        (Status::Invalid, c"invalid"),
        (Status::Unsupported, c"unsupported"),
        (Status::Compile, c"compile"),
        (Status::Link, c"link"),
        (Status::Cancelled, c"cancelled"),
        (Status::Deadline, c"deadline"),
        (Status::Call, c"call"),
        (Status::Driver, c"driver"),
        (Status::File, c"file"),
        (Status::Fatbin, c"fatbin"),
        (Status::Internal, c"internal"),
    ];
    let found = named.iter().find(|(known, _)| *known as i32 == status);
    found.map_or(c"unknown", |(_, name)| name).as_ptr()
}
