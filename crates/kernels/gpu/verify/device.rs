//! The driver's functions that the checks need: one context, memory, kernels, times.
#![expect(
    unsafe_code,
    reason = "cudarc's calls into the driver; each one's result is looked at"
)]

use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};
use warpcc_kernels::plan::{Argument, Launch};

/// Where plans think that memory begins; the real place is put in when a kernel starts.
pub const BASE: u64 = 1 << 40;

pub type Failure = String;

fn checked<T>(what: &str, answer: Result<T, result::DriverError>) -> Result<T, Failure> {
    answer.map_err(|error| format!("{what}: {error:?}"))
}

/// A GPU with one block of memory that every check uses anew.
pub struct Device {
    base: u64,
    size: u64,
    stream: sys::CUstream,
    pub name: String,
    pub number: u32,
    pub driver: i32,
}

#[derive(Clone, Copy)]
pub struct Kernel(sys::CUfunction);

impl Device {
    /// The first GPU, with this many bytes, or as many as there are less 4 GiB.
    pub fn open(bytes: u64) -> Result<Self, Failure> {
        if !unsafe { sys::is_culib_present() } {
            return Err("there is no driver (libcuda.so.1) on this machine".to_owned());
        }
        checked("cuInit", result::init())?;
        let device = checked("cuDeviceGet", result::device::get(0))?;
        let context = checked("context", unsafe { result::primary_ctx::retain(device) })?;
        checked("context", unsafe { result::ctx::set_current(context) })?;
        let major = checked("capability", unsafe {
            result::device::get_attribute(
                device,
                sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            )
        })?;
        let minor = checked("capability", unsafe {
            result::device::get_attribute(
                device,
                sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        })?;
        let (free, _) = checked("memory", result::mem_get_info())?;
        let size = bytes.min((free as u64).saturating_sub(4 << 30));
        let base = checked("cuMemAlloc", unsafe { result::malloc_sync(size as usize) })?;
        let stream = checked(
            "stream",
            result::stream::create(result::stream::StreamKind::NonBlocking),
        )?;
        let mut driver = 0;
        unsafe { sys::cuDriverGetVersion(&raw mut driver) };
        Ok(Self {
            base,
            size,
            stream,
            name: checked("name", result::device::get_name(device))?,
            number: (10 * major + minor) as u32,
            driver,
        })
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    fn real(&self, address: u64) -> u64 {
        address.wrapping_sub(BASE).wrapping_add(self.base)
    }

    /// Loads an image and finds its kernels.
    pub fn load(&self, image: &[u8], names: &[String]) -> Result<Vec<Kernel>, Failure> {
        let module = checked("cuModuleLoadData", unsafe {
            result::module::load_data(image.as_ptr().cast())
        })?;
        names
            .iter()
            .map(|name| {
                let name = CString::new(name.as_str()).map_err(|_| "a name with NUL".to_owned())?;
                checked("cuModuleGetFunction", unsafe {
                    result::module::get_function(module, name)
                })
                .map(Kernel)
            })
            .collect()
    }

    pub fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        // In the stream of the kernels, which waits for no other: a small copy outside it comes back before its bytes are there.
        checked("upload", unsafe {
            result::memcpy_htod_async(self.real(address), bytes, self.stream)
        })?;
        self.wait()
    }

    pub fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        checked("download", unsafe {
            result::memcpy_dtoh_sync(bytes, self.real(address))
        })
    }

    pub fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Failure> {
        checked("fill", unsafe {
            result::memset_d8_async(self.real(address), byte, bytes as usize, self.stream)
        })
    }

    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Failure> {
        checked("copy", unsafe {
            sys::cuMemcpyDtoDAsync_v2(self.real(to), self.real(from), bytes as usize, self.stream)
                .result()
        })
    }

    /// Starts a kernel and does not wait.
    pub fn start(&self, kernel: &Kernel, launch: &Launch, workspace: u64) -> Result<(), Failure> {
        let mut values: Vec<Vec<u8>> = launch
            .arguments
            .iter()
            .map(|argument| match argument {
                Argument::Address(address) => self.real(*address).to_ne_bytes().to_vec(),
                Argument::Workspace(offset) => self.real(workspace + offset).to_ne_bytes().to_vec(),
                Argument::Bytes(bytes) => bytes.to_vec(),
            })
            .collect();
        let mut pointers: Vec<*mut c_void> = values
            .iter_mut()
            .map(|value| value.as_mut_ptr().cast())
            .collect();
        checked("cuLaunchKernel", unsafe {
            result::launch_kernel(
                kernel.0,
                (launch.grid.0, launch.grid.1, 1),
                (launch.block, 1, 1),
                0,
                self.stream,
                &mut pointers,
            )
        })
    }

    pub fn wait(&self) -> Result<(), Failure> {
        checked("cuStreamSynchronize", unsafe {
            result::stream::synchronize(self.stream)
        })
    }

    /// Milliseconds of each of `rounds` runs of what `work` starts, after `warm` unmeasured ones.
    pub fn times(
        &self,
        warm: usize,
        rounds: usize,
        work: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Vec<f64>, Failure> {
        let event = || {
            checked(
                "event",
                result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT),
            )
        };
        let (start, end) = (event()?, event()?);
        let mut times = Vec::new();
        for round in 0..warm + rounds {
            checked("event", unsafe {
                result::event::record(start, self.stream)
            })?;
            work()?;
            checked("event", unsafe { result::event::record(end, self.stream) })?;
            self.wait()?;
            let time = checked("event", unsafe { result::event::elapsed(start, end) })?;
            if round >= warm {
                times.push(f64::from(time));
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}
