//! The cache of compiled kernels, for Python.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpcc_kernels::Launcher;
use warpcc_remote::SharedCache;
use warpcc_rtc::{
    CacheSettings, CallLimits, CompileRequest, Compiler, Error, Image as Compiled, Kernel,
    KernelCache as Cache, LinkRequest, Piece, RealArch, Target,
};

use crate::arguments::{bytes_of, capability, deadline, piece, real, seconds, target, texts};
use crate::events::Callback;
use crate::function::{Function, Loaded};
use crate::image::Image;
use crate::open::{Keywords, Opened, upstream};
use crate::{driver, errors, gpu, interrupt};

/// Compiled kernels in memory, in folders and in shared caches. Any thread may use it.
#[pyclass(frozen, module = "warpcc_rtc", subclass)]
pub struct KernelCache {
    pub(crate) cache: Cache,
    /// The compiler and settings, for making another cache like this one.
    compiler: Compiler,
    settings: CacheSettings,
    shared: Option<SharedCache>,
    /// Remarks about the shared cache: odd settings, and why something is not uploaded.
    remarks: Mutex<Vec<String>>,
    on_event: Callback,
    launchers: Mutex<HashMap<usize, Arc<Launcher>>>,
    /// By the address of the loaded kernel, which each holds.
    functions: Mutex<HashMap<usize, Arc<Loaded>>>,
}

#[pymethods]
impl KernelCache {
    #[new]
    #[pyo3(signature = (folders = None, *, max_size = None, memory = None, remote = None, nvrtc = None, nvjitlink = None,
                        options = Vec::new(), include = Vec::new(), headers = None, preamble = None, packs = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keywords, of which a caller names the few that matter"
    )]
    fn new(
        py: Python<'_>,
        folders: Option<Vec<PathBuf>>,
        max_size: Option<u64>,
        memory: Option<u64>,
        remote: Option<String>,
        nvrtc: Option<PathBuf>,
        nvjitlink: Option<PathBuf>,
        options: Vec<String>,
        include: Vec<PathBuf>,
        headers: Option<&Bound<'_, PyDict>>,
        preamble: Option<&Bound<'_, PyDict>>,
        packs: Option<Vec<PathBuf>>,
    ) -> PyResult<Self> {
        let mut common = CompileRequest::new("", "", Target::Cubin(RealArch::new(0)));
        common.options = options.into_iter().map(Into::into).collect();
        common.include_folders = include;
        common.headers = texts("headers", headers)?;
        common.preamble = texts("preamble", preamble)?;
        let keywords = Keywords {
            folders,
            max_size,
            memory,
            remote,
            nvrtc,
            nvjitlink,
            packs: packs.unwrap_or_default(),
        };
        if let Some(relative) = keywords.relative_folder() {
            let text = format!("folders: {} is not an absolute path", relative.display());
            return Err(errors::argument(py, text));
        }
        let on_event = Callback::default();
        let opened = py.detach(|| keywords.open(common, on_event.observer()));
        let Opened {
            cache,
            compiler,
            settings,
            shared,
            remarks,
        } = opened.map_err(|error| errors::to_python(py, &error))?;
        Ok(Self {
            cache,
            compiler,
            settings,
            shared,
            remarks: Mutex::new(remarks),
            on_event,
            launchers: Mutex::default(),
            functions: Mutex::default(),
        })
    }

    /// Compiles `source`, or finds what it compiles to.
    #[pyo3(signature = (source, name, arch = None, *, names = Vec::new(), parameters = "", options = Vec::new(),
                        include = Vec::new(), headers = None, timeout = None, file = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keywords, of which a caller names the few that matter"
    )]
    fn compile(
        &self,
        py: Python<'_>,
        source: &str,
        name: &str,
        arch: Option<&str>,
        names: Vec<String>,
        parameters: &str,
        options: Vec<String>,
        include: Vec<PathBuf>,
        headers: Option<&Bound<'_, PyDict>>,
        timeout: Option<f64>,
        file: Option<String>,
    ) -> PyResult<Image> {
        let target = match arch {
            Some(arch) => target(py, arch)?,
            None => self.target_for(py, None)?,
        };
        let mut request = self.cache.request(parameters, name, source, target);
        request
            .name_expressions
            .extend(names.into_iter().map(Into::into));
        request.options.extend(options.into_iter().map(Into::into));
        request.include_folders.extend(include);
        request.headers.extend(texts("headers", headers)?);
        request.file = file.map(Into::into);
        let deadline = deadline(py, timeout)?;
        let image = interrupt::run(py, deadline, |limits| self.cache.get(&request, limits))?;
        made(py, name, image)
    }

    /// The kernel `name` of `source` on a GPU: from memory where it was asked for before.
    #[pyo3(signature = (parameters, name, source, device = None, *, timeout = None, file = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keywords, of which a caller names the few that matter"
    )]
    fn get_function(
        &self,
        py: Python<'_>,
        parameters: &str,
        name: &str,
        source: &str,
        device: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        file: Option<&str>,
    ) -> PyResult<Function> {
        let ordinal = gpu::ordinal(device)?;
        let deadline = deadline(py, timeout)?;
        let loaded = interrupt::run(py, deadline, |limits| {
            let device = driver::device(ordinal)?;
            let cache = &self.cache;
            let kernel = match file {
                None => cache.get_function(parameters, name, source, &device, limits)?,
                Some(file) => {
                    let kernel = Kernel::new(parameters, name, source).in_file(file);
                    cache.get_function_of(&kernel, &device, limits)?
                }
            };
            let mut known = lock(&self.functions);
            let place = Arc::as_ptr(&kernel) as usize;
            let make = || Arc::new(Loaded::new(kernel, device, ordinal));
            Ok(known.entry(place).or_insert_with(make).clone())
        })?;
        let loaded = loaded.map_err(|error| errors::to_python(py, &error))?;
        Ok(Function { loaded })
    }

    /// Links images, LTO-IR and PTX to one cubin.
    #[pyo3(signature = (pieces, arch, *, name = "linked", options = Vec::new()))]
    fn link(
        &self,
        py: Python<'_>,
        pieces: Vec<Bound<'_, PyAny>>,
        arch: &str,
        name: &str,
        options: Vec<String>,
    ) -> PyResult<Image> {
        let pieces: PyResult<Vec<Piece>> = pieces
            .iter()
            .enumerate()
            .map(|(index, given)| piece(index, given))
            .collect();
        let request = LinkRequest {
            name: name.into(),
            pieces: pieces?,
            target: real(py, arch)?,
            options: options.into_iter().map(Into::into).collect(),
        };
        let link = |limits: &CallLimits| self.cache.get_linked(&request, limits);
        let image = interrupt::run(py, None, link)?;
        made(py, name, image)
    }

    /// PTX to machine code, as the driver's JIT would, but kept.
    #[pyo3(signature = (ptx, arch = None, *, name = "ptx"))]
    fn load_ptx(
        &self,
        py: Python<'_>,
        ptx: &Bound<'_, PyAny>,
        arch: Option<&str>,
        name: &str,
    ) -> PyResult<Image> {
        let bytes = bytes_of("ptx", ptx)?;
        let target = match arch {
            Some(arch) => real(py, arch)?,
            None => RealArch::new(capability(py)?),
        };
        let load = |limits: &CallLimits| self.cache.load_ptx(name, &bytes, target, limits);
        let image = interrupt::run(py, None, load)?;
        made(py, name, image)
    }

    /// The best target for a GPU: `sm_90`, say.
    #[pyo3(signature = (capability = None))]
    fn best_arch(&self, py: Python<'_>, capability: Option<u32>) -> PyResult<String> {
        self.target_for(py, capability)
            .map(|target| target.to_string())
    }

    /// How often images were found, and where.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut sum = self.cache.counts();
        for launcher in lock(&self.launchers).values() {
            let more = launcher.cache().counts();
            sum.memory += more.memory;
            sum.disk += more.disk;
            sum.shared += more.shared;
            sum.made += more.made;
        }
        let counts = PyDict::new(py);
        counts.set_item("memory", sum.memory)?;
        counts.set_item("disk", sum.disk)?;
        counts.set_item("shared", sum.shared)?;
        counts.set_item("made", sum.made)?;
        Ok(counts)
    }

    /// The function that is called after each request, with an Event.
    #[getter]
    fn on_event(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.on_event.get(py)
    }

    #[setter(on_event)]
    fn set_on_event(&self, function: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        if let Some(other) = function.as_ref().filter(|given| !given.is_callable()) {
            let text = format!(
                "on_event: a function was expected, not {}",
                other.get_type()
            );
            return Err(errors::wrong_type(&text));
        }
        self.on_event.set(function.map(Bound::unbind));
        Ok(())
    }

    /// What went wrong so far without being an error, and what is odd about the settings.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        let mut all = lock(&self.remarks).clone();
        all.extend(self.cache.remarks());
        for launcher in lock(&self.launchers).values() {
            all.extend(launcher.cache().remarks());
        }
        let mut seen = std::collections::HashSet::new();
        all.retain(|remark| seen.insert(remark.clone()));
        all
    }

    /// The folders, nearest first.
    #[getter]
    fn folders(&self) -> Vec<PathBuf> {
        self.settings
            .tiers
            .iter()
            .map(|tier| tier.path.clone())
            .collect()
    }

    /// NVRTC's version.
    #[getter]
    fn nvrtc_version(&self) -> String {
        self.compiler.version().to_string()
    }

    /// Where NVRTC is.
    #[getter]
    fn nvrtc_path(&self) -> PathBuf {
        self.compiler.library().to_path_buf()
    }

    /// Removes everything from memory and from the folders that may be written to.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.cache.clear())
            .map_err(|error| errors::to_python(py, &error))
    }

    /// How many images are stored in the nearest folder that may be written to.
    fn stored(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.cache.stored())
            .map_err(|error| errors::to_python(py, &error))
    }

    /// Adds a remark to those that `remarks` lists.
    fn _remark(&self, remark: String) {
        lock(&self.remarks).push(remark);
    }

    /// Waits until nothing waits to be uploaded; True if that is so.
    #[pyo3(signature = (timeout = 300.0))]
    fn flush(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let limit = seconds(py, timeout)?;
        let Some(shared) = self.shared.clone() else {
            return Ok(true);
        };
        let (unfinished, waits) =
            interrupt::run_on_own_thread(py, move || (shared.flush(limit), shared.waits()))?;
        lock(&self.remarks).extend(unfinished);
        Ok(!waits)
    }

    /// Waits for an upload that is under way.
    fn _settle(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let limit = seconds(py, timeout)?;
        let settled = |shared: &SharedCache| shared.settle(limit);
        Ok(py.detach(|| self.shared.as_ref().is_none_or(settled)))
    }

    /// Forgets every loaded kernel that nobody holds.
    fn unload(&self) {
        lock(&self.functions).clear();
        self.cache.unload_functions();
        for launcher in lock(&self.launchers).values() {
            launcher.cache().unload_functions();
        }
    }

    fn __repr__(&self) -> String {
        let version = self.compiler.version();
        let folders: Vec<_> = self
            .folders()
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        format!(
            "<warpcc_rtc.KernelCache in [{}], NVRTC {version}>",
            folders.join(", ")
        )
    }
}

impl KernelCache {
    /// The launcher of ready-made kernels on a GPU.
    pub fn launcher(&self, ordinal: usize) -> Result<Arc<Launcher>, Error> {
        if let Some(launcher) = lock(&self.launchers).get(&ordinal) {
            return Ok(launcher.clone());
        }
        let device = driver::device(ordinal)?;
        let upstream = upstream(self.shared.as_ref());
        let cache = Cache::with(self.compiler.clone(), self.settings.clone(), upstream);
        let made = Arc::new(Launcher::new(cache, device));
        Ok(lock(&self.launchers).entry(ordinal).or_insert(made).clone())
    }

    pub(crate) fn target_for(&self, py: Python<'_>, known: Option<u32>) -> PyResult<Target> {
        let capability = known.map_or_else(|| capability(py), Ok)?;
        self.cache
            .target_for(capability)
            .map_err(|error| errors::to_python(py, &error))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn made(py: Python<'_>, name: &str, image: Result<Compiled, Error>) -> PyResult<Image> {
    Ok(Image {
        image: image.map_err(|error| errors::to_python(py, &error))?,
        name: name.to_owned(),
    })
}
