//! One compilation: an NVRTC program from its text to its image.

#![expect(
    unsafe_code,
    reason = "a C library that is found at run time has no safe interface; each call gives the types that NVIDIA's \
              nvrtc.h declares"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ffi::{Handle, Output};

use super::functions::{Functions, NvrtcError};

/// `NVRTC_ERROR_CANCELLED` of nvrtc.h.
const CANCELLED: c_int = 16;

/// The image to take from a compiled program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    Ptx,
    Cubin,
    LtoIr,
}

/// The input of a compilation, in NVRTC's terms.
pub(crate) struct CompileJob<'j> {
    pub source: &'j CStr,
    pub name: &'j CStr,
    /// Name and text.
    pub headers: &'j [(CString, CString)],
    pub expressions: &'j [CString],
    pub options: &'j [CString],
    pub take: Take,
    /// The compiler's threads call this from time to time: true stops the compilation.
    pub stop: Option<&'j (dyn Fn() -> bool + Sync)>,
}

/// The result of a job.
pub(crate) struct CompileOutput {
    pub image: Vec<u8>,
    /// The names in the order of the expressions.
    pub lowered: Vec<String>,
    pub log: String,
}

/// Compiles.
pub(super) fn compile(
    functions: &Functions,
    job: &CompileJob<'_>,
) -> Result<CompileOutput, NvrtcError> {
    let program = Program::create(functions, job)?;
    for expression in job.expressions {
        // SAFETY: a live program and a text that ends with a zero.
        let code = unsafe { (functions.add_name)(program.handle, expression.as_ptr()) };
        functions.check("nvrtcAddNameExpression", code)?;
    }
    let asked = job.stop.map(|stop| CancelQuestion {
        stop,
        said_yes: AtomicBool::new(false),
    });
    if let (Some(set_flow), Some(asked)) = (functions.set_flow, &asked) {
        let payload = ptr::from_ref(asked).cast_mut().cast::<c_void>();
        // SAFETY: `ask` reads `asked` as what it is, from any thread, and `asked` outlives the program's
        // compilation, after which the callback is not called: it is asked in nvrtcCompileProgram only.
        let code = unsafe { set_flow(program.handle, ask, payload) };
        functions.check("nvrtcSetFlowCallback", code)?;
    }
    let options = pointers(job.options);
    // SAFETY: as many options as are said, each ending with a zero.
    let code =
        unsafe { (functions.compile)(program.handle, count(options.len()), options.as_ptr()) };
    let log = program.text("nvrtcGetProgramLog", functions.log)?;
    if code == CANCELLED {
        return Err(NvrtcError::Stopped);
    }
    if code != 0 {
        return Err(NvrtcError::Refused {
            code: functions.name_of(code),
            log,
        });
    }
    let (call, take) = match job.take {
        Take::Ptx => ("nvrtcGetPTX", functions.ptx),
        Take::Cubin => ("nvrtcGetCUBIN", functions.cubin),
        Take::LtoIr => ("nvrtcGetLTOIR", functions.lto_ir),
    };
    let mut image = program.bytes(call, take)?;
    if job.take == Take::Ptx {
        image = without_zeros(image);
    }
    let lowered = job
        .expressions
        .iter()
        .map(|expression| program.lowered(expression))
        .collect::<Result<_, _>>()?;
    Ok(CompileOutput {
        image,
        lowered,
        log,
    })
}

struct CancelQuestion<'a> {
    stop: &'a (dyn Fn() -> bool + Sync),
    said_yes: AtomicBool,
}

/// NVRTC's callback. After it has returned 1 once it always does, as nvrtc.h requires.
unsafe extern "C" fn ask(payload: *mut c_void, _reserved: *mut c_void) -> c_int {
    // SAFETY: `compile` gives a `CancelQuestion` that lives until the compilation has returned, and it is shared only.
    let asked = unsafe { &*payload.cast::<CancelQuestion<'_>>() };
    let yes = asked.said_yes.load(Ordering::Relaxed) || (asked.stop)();
    if yes {
        asked.said_yes.store(true, Ordering::Relaxed);
    }
    c_int::from(yes)
}

/// A program of NVRTC, destroyed when it is dropped.
struct Program<'f> {
    functions: &'f Functions,
    handle: Handle,
}

impl<'f> Program<'f> {
    fn create(functions: &'f Functions, job: &CompileJob<'_>) -> Result<Self, NvrtcError> {
        let names: Vec<_> = job.headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let texts: Vec<_> = job.headers.iter().map(|(_, text)| text.as_ptr()).collect();
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: both lists have as many texts as are said, each ending with a zero; NVRTC copies what it keeps.
        let code = unsafe {
            (functions.create)(
                &raw mut handle,
                job.source.as_ptr(),
                job.name.as_ptr(),
                count(names.len()),
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        functions.check("nvrtcCreateProgram", code)?;
        Ok(Self { functions, handle })
    }

    fn bytes(&self, call: &'static str, output: Output) -> Result<Vec<u8>, NvrtcError> {
        // SAFETY: a live program.
        let bytes = unsafe { output.bytes(self.handle) };
        bytes.map_err(|code| self.functions.fault(call, code))
    }

    fn text(&self, call: &'static str, output: Output) -> Result<String, NvrtcError> {
        // SAFETY: a live program.
        let text = unsafe { output.text(self.handle) };
        text.map_err(|code| self.functions.fault(call, code))
    }

    fn lowered(&self, expression: &CStr) -> Result<String, NvrtcError> {
        let mut name: *const c_char = ptr::null();
        let get = self.functions.lowered_name;
        // SAFETY: a live program, a text that ends with a zero, and a live pointer for the answer.
        let code = unsafe { get(self.handle, expression.as_ptr(), &raw mut name) };
        self.functions.check("nvrtcGetLoweredName", code)?;
        if name.is_null() {
            return Err(NvrtcError::Call {
                call: "nvrtcGetLoweredName",
                code: "no name and no error".to_owned(),
            });
        }
        // SAFETY: NVRTC's text ends with a zero and lives as long as the program.
        let name = unsafe { CStr::from_ptr(name) };
        Ok(name.to_string_lossy().into_owned())
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is NVRTC's and is not used again. An error here leaves nothing to do.
        unsafe { (self.functions.destroy)(&raw mut self.handle) };
    }
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

fn count(length: usize) -> c_int {
    // More than two thousand million texts do not fit into memory.
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

/// Removes the zero that ends a text, which NVRTC counts as part of it.
fn without_zeros(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}
