//! DLPack's exchange table (`DLPackExchangeAPI`, dlpack.h 1.3): a framework's own functions that describe its arrays and
//! name the stream it works on.
//!
//! `__dlpack__` and the question for the current stream are Python's calls, some 20 us an array with PyTorch 2.11; these
//! are C's. They do no waiting: the stream of the array's framework comes with the array. An array that is only read is
//! described by what its framework lends; one that is written is handed over, since only then its flags are known.
#![expect(
    unsafe_code,
    reason = "a table of C functions, whose layout its capsule's name states"
)]

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyType};

use crate::dlpack::{Borrowed, CapsuleContent, Managed};

#[repr(C)]
struct Table {
    major: u32,
    minor: u32,
    /// An earlier version's table.
    previous: *const Table,
    allocate: *const c_void,
    managed_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int>,
    managed_to_object: *const c_void,
    borrow_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut Borrowed) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int>,
}

/// `warpcc_rtc._frameworks`, Python's part of this.
pub fn frameworks(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static FRAMEWORKS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = FRAMEWORKS.get_or_try_init(py, || {
        py.import("warpcc_rtc._frameworks").map(Bound::unbind)
    });
    module.map(|module| module.bind(py))
}

/// The table of an array's type.
#[derive(Clone, Copy)]
pub struct Exchange(NonNull<Table>);

// The table is constant, and stays as long as the process (dlpack.h).
unsafe impl Send for Exchange {}

/// The known types, by address. Each is kept alive, so that no other type gets its address.
static KNOWN: Mutex<Option<HashMap<usize, KnownType>>> = Mutex::new(None);

struct KnownType {
    _kind: Py<PyType>,
    exchange: Option<Exchange>,
    empty_like: Option<Py<PyAny>>,
}

/// The function of an array's framework that makes an array of its shape and type, where that is plainly known.
pub fn empty_like<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    known(object, |known| {
        let function = known.empty_like.as_ref()?;
        Some(function.bind(object.py()).clone())
    })
}

/// Looks up an object's type; the type is examined the first time.
fn known<'py, T>(object: &Bound<'py, PyAny>, of: impl Fn(&KnownType) -> Option<T>) -> Option<T> {
    let kind = object.get_type();
    let address = kind.as_ptr() as usize;
    let held = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = held().get_or_insert_default().get(&address) {
        return of(known);
    }
    // Not under the lock: Python may run another thread meanwhile.
    let found = KnownType {
        exchange: Exchange::found(&kind).ok().flatten(),
        empty_like: maker(&kind).ok().flatten(),
        _kind: kind.unbind(),
    };
    let answer = of(&found);
    held().get_or_insert_default().insert(address, found);
    answer
}

fn maker(kind: &Bound<'_, PyType>) -> PyResult<Option<Py<PyAny>>> {
    let found = frameworks(kind.py())?.call_method1("empty_like_of", (kind,))?;
    Ok((!found.is_none()).then(|| found.unbind()))
}

impl Exchange {
    /// That of `object`'s type, where it has one that holds for it.
    pub fn find(object: &Bound<'_, PyAny>) -> Option<Self> {
        known(object, |known| known.exchange)
    }

    fn found(kind: &Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let found = frameworks(kind.py())?.call_method1("exchange_of", (kind,))?;
        // A draft of the format had a number here, of an earlier layout.
        let Ok(capsule) = found.cast::<PyCapsule>() else {
            return Ok(None);
        };
        let table = capsule.pointer_checked(Some(c"dlpack_exchange_api"))?;
        let mut next = Some(table.cast::<Table>());
        // Versions have these three numbers first, whatever follows.
        while let Some(table) = next {
            let (major, previous) =
                unsafe { ((*table.as_ptr()).major, (*table.as_ptr()).previous) };
            if major == 1 {
                return Ok(Some(Self(table)));
            }
            next = NonNull::new(previous.cast_mut());
        }
        Ok(None)
    }

    /// Describes `object`, which has this table's type; `None` where the framework cannot describe it in this way.
    pub fn describe(self, object: &Bound<'_, PyAny>, purpose: ArrayUse) -> Option<Described> {
        let py = object.py();
        // A PyTorch tensor that records gradients: its `__dlpack__` refuses with its own words what this would give.
        let records = object.getattr_opt(intern!(py, "requires_grad")).ok()?;
        if records.is_some_and(|records| records.is_truthy().unwrap_or(true)) {
            return None;
        }
        let table = unsafe { self.0.as_ref() };
        if let (ArrayUse::Read, Some(borrow)) = (purpose, table.borrow_from_object) {
            let mut lent = Borrowed::default();
            if unsafe { borrow(object.as_ptr().cast(), &raw mut lent) } != 0 {
                drop(PyErr::take(py));
                return None;
            }
            // Good while the array is not changed: Python cannot do that before this is copied.
            let content = lent.content()?;
            let stream = self.stream(py, content.device)?;
            return Some(Described {
                managed: None,
                content,
                stream,
            });
        }
        let mut made = ptr::null_mut();
        let answer = unsafe { (table.managed_from_object?)(object.as_ptr().cast(), &raw mut made) };
        let made = NonNull::new(made);
        if answer != 0 {
            // It is asked in the other way, which may say why.
            drop(PyErr::take(py));
            return None;
        }
        // Table and tensor are of one version, by the format.
        let managed = unsafe { Managed::owned(made?) };
        let content = managed.content()?;
        let stream = self.stream(py, content.device)?;
        Some(Described {
            managed: Some(managed),
            content,
            stream,
        })
    }

    /// The stream that the framework works on now, on a device.
    fn stream(self, py: Python<'_>, (kind, number): (i32, i32)) -> Option<u64> {
        let table = unsafe { self.0.as_ref() };
        let mut stream = ptr::null_mut();
        let answer = unsafe { (table.current_stream?)(kind, number, &raw mut stream) };
        if answer != 0 {
            drop(PyErr::take(py));
            return None;
        }
        Some(stream as u64)
    }
}

/// The use of an array.
#[derive(Clone, Copy)]
pub enum ArrayUse {
    Read,
    Write,
}

/// An array, and its framework's stream.
pub struct Described {
    /// Keeps the array alive, where ownership was handed over.
    pub managed: Option<Managed>,
    pub content: CapsuleContent,
    /// The stream of the work that writes the array; 0 is the default stream.
    pub stream: u64,
}
