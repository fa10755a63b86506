//! NVRTC's own functions, loaded at run time: one program in, one image out.
//!
//! cudarc has NVRTC too, but not the calls of 12.8 (a callback that ends a compilation), and it panics where the
//! library is missing; so all of NVRTC is here, and nothing else.
#![expect(
    unsafe_code,
    reason = "a C library that is found at run time has no safe interface; each call below gives the types that \
              NVIDIA's nvrtc.h declares"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::Library;

use crate::environment::Environment;
use crate::error::LibraryError;
use crate::ffi::{self, Handle, Output, function};
use crate::library::{self, Opened, Wanted};
use crate::version::{OLDEST, Version};

const WANTED: Wanted = Wanted {
    name: "NVRTC (libnvrtc.so)",
    file: "libnvrtc.so",
    variable: crate::environment::NVRTC,
    wheels: &["cu13/lib", "cuda_nvrtc/lib"],
    advice: "install it (`pip install nvidia-cuda-nvrtc`, or a CUDA toolkit of 12.0 or later), or name it in \
             WARPCC_NVRTC",
};

/// `NVRTC_ERROR_CANCELLED` of nvrtc.h.
const CANCELLED: c_int = 16;

type Strings = *const *const c_char;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    Strings,
    Strings,
) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
type AddName = unsafe extern "C" fn(Handle, *const c_char) -> c_int;
type Compile = unsafe extern "C" fn(Handle, c_int, Strings) -> c_int;
type LoweredName = unsafe extern "C" fn(Handle, *const c_char, *mut *const c_char) -> c_int;
type GetInts = unsafe extern "C" fn(*mut c_int) -> c_int;
type Flow = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type SetFlow = unsafe extern "C" fn(Handle, Flow, *mut c_void) -> c_int;
type HeadersInfo = unsafe extern "C" fn(*mut RawHeaders, *mut *const c_char) -> c_int;
type InstallHeaders = unsafe extern "C" fn(*const c_char, c_uint, *mut *const c_char) -> c_int;

/// `nvrtcBundledHeadersInfo` of nvrtc.h.
#[repr(C)]
#[derive(Default)]
struct RawHeaders {
    available: c_int,
    compressed_size: usize,
    uncompressed_size: usize,
    major: c_int,
    minor: c_int,
    files: c_uint,
}

/// The headers of a toolkit and of CCCL that NVRTC carries with it, from 13.3 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundledHeaders {
    /// The toolkit they are of.
    pub version: Version,
    /// The number of files.
    pub files: u32,
    /// Their bytes, about, once they are written out.
    pub bytes: u64,
}

/// NVRTC, loaded for as long as the process lives. Any number of threads may use it.
#[derive(Debug)]
pub struct Nvrtc {
    version: Version,
    architectures: Vec<u32>,
    path: PathBuf,
    /// The device library that NVRTC opens when it compiles, where it is next to NVRTC.
    builtins: Option<PathBuf>,
    functions: Functions,
}

#[derive(Debug)]
struct Functions {
    error_string: ErrorString,
    create: Create,
    destroy: Destroy,
    add_name: AddName,
    compile: Compile,
    lowered_name: LoweredName,
    log: Output,
    ptx: Output,
    cubin: Output,
    lto_ir: Output,
    /// From 12.8 on.
    set_flow: Option<SetFlow>,
    /// From 13.3 on.
    headers: Option<(HeadersInfo, InstallHeaders)>,
}

/// Which image to take out of a compiled program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    Ptx,
    Cubin,
    LtoIr,
}

/// The input of a compilation, in NVRTC's terms.
pub(crate) struct Job<'j> {
    pub source: &'j CStr,
    pub name: &'j CStr,
    /// Name and text.
    pub headers: &'j [(CString, CString)],
    pub expressions: &'j [CString],
    pub options: &'j [CString],
    pub take: Take,
    /// Asked now and then by the compiler's threads: whether to give up.
    pub stop: Option<&'j (dyn Fn() -> bool + Sync)>,
}

/// The result of a job.
pub(crate) struct Made {
    pub image: Vec<u8>,
    /// In the order of the expressions.
    pub lowered: Vec<String>,
    pub log: String,
}

/// Why nothing came of a job.
pub(crate) enum Fault {
    /// `stop` said so.
    Stopped,
    /// NVRTC refused the program; its name for that, and its log.
    Refused { code: String, log: String },
    /// A call failed that does not depend on the program's text.
    Call { call: &'static str, code: String },
}

impl Nvrtc {
    /// Finds and loads it, in the order that `library.rs` and docs/rtc.md give.
    ///
    /// # Errors
    /// None was found that loads and is 12.0 or newer; with everything that was tried.
    pub fn find(explicit: Option<&Path>, environment: &Environment) -> Result<Self, LibraryError> {
        let Opened { library, tried } = library::open(&WANTED, explicit, None, environment)?;
        let refused = |problem: String| library::failure(&WANTED, &problem, tried.clone());
        // SAFETY: it is the type that nvrtc.h declares.
        let create: Create = unsafe { function(library, "nvrtcCreateProgram") }
            .map_err(|error| refused(error.clone()))?;
        let path = library::file_at(create as usize).unwrap_or_default();
        // SAFETY: it takes two numbers.
        let version = unsafe { ffi::version(library, "nvrtcVersion") }
            .map_err(|error| refused(format!("{}: {error}", path.display())))?;
        if version < OLDEST {
            return Err(refused(format!(
                "{} is {version}, and {OLDEST} or newer is needed",
                path.display()
            )));
        }
        let functions = Functions::load(library).map_err(|error| refused(error.clone()))?;
        let architectures = architectures(library).map_err(|error| refused(error.clone()))?;
        // The wheels of 13.0 and before look for it only where the dynamic linker does.
        let builtins = path.with_file_name(format!("libnvrtc-builtins.so.{version}"));
        let builtins = library::load_ahead(&builtins).then_some(builtins);
        Ok(Self {
            version,
            architectures,
            path,
            builtins,
            functions,
        })
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The architectures it compiles for, ten times major plus minor, oldest first.
    pub fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// The library's file, as the kernel names it; empty where it does not.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files whose content decides what comes of a program.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let library = Some(self.path.as_path()).filter(|path| !path.as_os_str().is_empty());
        library.into_iter().chain(self.builtins.as_deref())
    }

    /// The headers it carries; none before 13.3, or where its builtins have none.
    pub(crate) fn bundled_headers(&self) -> Option<BundledHeaders> {
        let (info, _) = self.functions.headers?;
        let mut raw = RawHeaders::default();
        let mut why: *const c_char = ptr::null();
        // SAFETY: a live record of the layout in nvrtc.h, and a live pointer.
        let code = unsafe { info(&raw mut raw, &raw mut why) };
        (code == 0 && raw.available != 0).then(|| BundledHeaders {
            version: Version::new(small(raw.major), small(raw.minor)),
            files: raw.files,
            bytes: raw.uncompressed_size as u64,
        })
    }

    /// Writes them into a folder, unless they are there; NVRTC sees to it that processes do not get in each other's way.
    pub(crate) fn install_headers(&self, folder: &CStr) -> Result<(), Fault> {
        /// `NVRTC_INSTALL_HEADERS_SKIP_IF_EXISTS` of nvrtc.h.
        const SKIP_IF_THERE: c_uint = 0;
        let call = "nvrtcInstallBundledHeaders";
        let Some((_, install)) = self.functions.headers else {
            let code = "this version has none".to_owned();
            return Err(Fault::Call { call, code });
        };
        let mut why: *const c_char = ptr::null();
        // SAFETY: a text that ends with a zero, and a live pointer.
        let code = unsafe { install(folder.as_ptr(), SKIP_IF_THERE, &raw mut why) };
        if code == 0 {
            return Ok(());
        }
        // SAFETY: null, or NVRTC's text, which stays until this thread calls again.
        let why = (!why.is_null()).then(|| unsafe { CStr::from_ptr(why) }.to_string_lossy());
        let name = self.functions.name_of(code);
        let code = why.map_or_else(|| name.clone(), |why| format!("{name}: {why}"));
        Err(Fault::Call { call, code })
    }

    /// Whether a compilation can be ended before it is done (12.8).
    pub fn can_be_stopped(&self) -> bool {
        self.functions.set_flow.is_some()
    }

    pub(crate) fn run(&self, job: &Job<'_>) -> Result<Made, Fault> {
        let functions = &self.functions;
        let program = Program::create(functions, job)?;
        for expression in job.expressions {
            // SAFETY: a live program and a text that ends with a zero.
            let code = unsafe { (functions.add_name)(program.handle, expression.as_ptr()) };
            functions.check("nvrtcAddNameExpression", code)?;
        }
        let asked = job.stop.map(|stop| Asked {
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
            return Err(Fault::Stopped);
        }
        if code != 0 {
            return Err(Fault::Refused {
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
        Ok(Made {
            image,
            lowered,
            log,
        })
    }
}

struct Asked<'a> {
    stop: &'a (dyn Fn() -> bool + Sync),
    said_yes: AtomicBool,
}

/// The callback of NVRTC. After its first yes it always says yes, as nvrtc.h demands.
unsafe extern "C" fn ask(payload: *mut c_void, _reserved: *mut c_void) -> c_int {
    // SAFETY: `Nvrtc::run` gives an `Asked` that lives until the compilation has returned, and it is shared only.
    let asked = unsafe { &*payload.cast::<Asked<'_>>() };
    let yes = asked.said_yes.load(Ordering::Relaxed) || (asked.stop)();
    if yes {
        asked.said_yes.store(true, Ordering::Relaxed);
    }
    c_int::from(yes)
}

/// A program of NVRTC's, destroyed when it is dropped.
struct Program<'f> {
    functions: &'f Functions,
    handle: Handle,
}

impl<'f> Program<'f> {
    fn create(functions: &'f Functions, job: &Job<'_>) -> Result<Self, Fault> {
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

    fn bytes(&self, call: &'static str, output: Output) -> Result<Vec<u8>, Fault> {
        // SAFETY: a live program.
        let bytes = unsafe { output.bytes(self.handle) };
        bytes.map_err(|code| self.functions.fault(call, code))
    }

    fn text(&self, call: &'static str, output: Output) -> Result<String, Fault> {
        // SAFETY: a live program.
        let text = unsafe { output.text(self.handle) };
        text.map_err(|code| self.functions.fault(call, code))
    }

    fn lowered(&self, expression: &CStr) -> Result<String, Fault> {
        let mut name: *const c_char = ptr::null();
        let get = self.functions.lowered_name;
        // SAFETY: a live program, a text that ends with a zero, and a live pointer for the answer.
        let code = unsafe { get(self.handle, expression.as_ptr(), &raw mut name) };
        self.functions.check("nvrtcGetLoweredName", code)?;
        if name.is_null() {
            return Err(Fault::Call {
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

impl Functions {
    fn load(library: &'static Library) -> Result<Self, String> {
        // SAFETY: each has the type that nvrtc.h declares; all types are listed above.
        unsafe {
            let info = function(library, "nvrtcGetBundledHeadersInfo").ok();
            let install = function(library, "nvrtcInstallBundledHeaders").ok();
            Ok(Self {
                error_string: function(library, "nvrtcGetErrorString")?,
                create: function(library, "nvrtcCreateProgram")?,
                destroy: function(library, "nvrtcDestroyProgram")?,
                add_name: function(library, "nvrtcAddNameExpression")?,
                compile: function(library, "nvrtcCompileProgram")?,
                lowered_name: function(library, "nvrtcGetLoweredName")?,
                log: Output::find(library, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?,
                ptx: Output::find(library, "nvrtcGetPTXSize", "nvrtcGetPTX")?,
                cubin: Output::find(library, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")?,
                lto_ir: Output::find(library, "nvrtcGetLTOIRSize", "nvrtcGetLTOIR")?,
                set_flow: function(library, "nvrtcSetFlowCallback").ok(),
                headers: info.zip(install),
            })
        }
    }

    fn fault(&self, call: &'static str, code: c_int) -> Fault {
        Fault::Call {
            call,
            code: self.name_of(code),
        }
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), Fault> {
        match code {
            0 => Ok(()),
            code => Err(self.fault(call, code)),
        }
    }

    fn name_of(&self, code: c_int) -> String {
        // SAFETY: any number is allowed; the answer is a text of NVRTC's own, or null.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: as above; it ends with a zero and stays.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

fn architectures(library: &'static Library) -> Result<Vec<u32>, String> {
    // SAFETY: each has the type that nvrtc.h declares.
    let number: GetInts = unsafe { function(library, "nvrtcGetNumSupportedArchs") }?;
    // SAFETY: likewise.
    let list: GetInts = unsafe { function(library, "nvrtcGetSupportedArchs") }?;
    let mut length = 0;
    // SAFETY: a live number is given.
    let failed = unsafe { number(&raw mut length) } != 0;
    let mut all: Vec<c_int> = vec![0; usize::try_from(length).unwrap_or(0)];
    // SAFETY: the room is what NVRTC has just asked for.
    if failed || unsafe { list(all.as_mut_ptr()) } != 0 {
        return Err("it does not report which architectures it supports".to_owned());
    }
    let mut all: Vec<u32> = all.into_iter().map(small).collect();
    all.sort_unstable();
    Ok(all)
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

fn count(length: usize) -> c_int {
    // More than two thousand million texts do not fit into memory.
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

fn small(number: c_int) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// NVRTC counts the zero that ends a text as part of it.
fn without_zeros(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}
