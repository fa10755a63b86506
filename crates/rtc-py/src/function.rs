//! A kernel on a GPU: `f[grid, block](x, y, 3)`.

use std::fmt;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use warpcc_rtc::{Device, Function as Kernel};

use crate::exchange::ArrayUse;
use crate::parameter::parameter;
use crate::stream::stream_of;
use crate::{arrays, driver, errors};

/// Limits that no GPU of today exceeds.
const MOST_THREADS: u64 = 1024;
const MOST_BLOCKS: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
const MOST_IN_BLOCK: [u64; 3] = [1024, 1024, 64];

/// A loaded kernel, and its properties.
pub struct Loaded {
    pub kernel: Arc<Kernel>,
    pub device: Device,
    pub ordinal: usize,
    facts: OnceLock<Facts>,
}

struct Facts {
    sizes: Option<Vec<usize>>,
    most_threads: u32,
}

impl Loaded {
    pub fn new(kernel: Arc<Kernel>, device: Device, ordinal: usize) -> Self {
        Self {
            kernel,
            device,
            ordinal,
            facts: OnceLock::new(),
        }
    }

    fn facts(&self) -> &Facts {
        self.facts.get_or_init(|| {
            let asked = driver::with(&self.device, || {
                Ok(Facts {
                    sizes: self.kernel.parameter_sizes().map(<[usize]>::to_vec),
                    most_threads: driver::most_threads(&self.kernel),
                })
            });
            // The launch will tell what is wrong with the context.
            asked.unwrap_or(Facts {
                sizes: None,
                most_threads: 1024,
            })
        })
    }
}

/// A kernel on a GPU, ready to launch.
#[pyclass(frozen, module = "warpcc_rtc")]
pub struct Function {
    pub loaded: Arc<Loaded>,
}

#[pymethods]
impl Function {
    /// Its name in the image.
    #[getter]
    fn name(&self) -> &str {
        self.loaded.kernel.name()
    }

    /// The number of its GPU.
    #[getter]
    fn device(&self) -> usize {
        self.loaded.ordinal
    }

    /// `f[grid, block]`: to be called with the kernel's arguments.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Configured> {
        let py = key.py();
        let wrong = || {
            errors::argument(
                py,
                "f[grid, block] was expected, each an int or a tuple of up to three",
            )
        };
        let pair = key.cast::<PyTuple>().map_err(|_| wrong())?;
        if pair.len() != 2 {
            return Err(wrong());
        }
        Ok(Configured {
            loaded: self.loaded.clone(),
            grid: dimensions("grid", &pair.get_item(0)?, MOST_BLOCKS)?,
            block: block(&pair.get_item(1)?)?,
        })
    }

    /// Starts it and does not wait for it.
    #[pyo3(signature = (grid, block, args = None, *, shared = 0, stream = None))]
    fn launch(
        &self,
        py: Python<'_>,
        grid: &Bound<'_, PyAny>,
        block: &Bound<'_, PyAny>,
        args: Option<&Bound<'_, PyAny>>,
        shared: u32,
        stream: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let args = match args {
            Some(args) => PyTuple::new(py, args.try_iter()?.collect::<PyResult<Vec<_>>>()?)?,
            None => PyTuple::empty(py),
        };
        let configured = Configured {
            loaded: self.loaded.clone(),
            grid: dimensions("grid", grid, MOST_BLOCKS)?,
            block: self::block(block)?,
        };
        configured.__call__(py, &args, shared, stream)
    }

    fn __repr__(&self) -> String {
        let (name, device) = (self.name(), self.device());
        format!("<warpcc_rtc.Function {name} on GPU {device}>")
    }
}

/// A kernel with its grid and block.
#[pyclass(frozen, module = "warpcc_rtc")]
pub struct Configured {
    loaded: Arc<Loaded>,
    grid: (u32, u32, u32),
    block: (u32, u32, u32),
}

#[pymethods]
impl Configured {
    /// Starts the kernel and does not wait for it.
    #[pyo3(signature = (*args, shared = 0, stream = None))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        shared: u32,
        stream: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let loaded = &self.loaded;
        let facts = loaded.facts();
        let (x, y, z) = self.block;
        let threads = x * y * z;
        if threads > facts.most_threads {
            let (name, most) = (loaded.kernel.name(), facts.most_threads);
            let text = format!("block: {threads} threads; {name} takes at most {most}");
            return Err(errors::argument(py, text));
        }
        if let Some(sizes) = &facts.sizes
            && sizes.len() != args.len()
        {
            let (name, takes, given) = (loaded.kernel.name(), sizes.len(), args.len());
            let text = format!("{name} takes {takes} argument(s), but {given} were given");
            return Err(errors::argument(py, text));
        }
        let args: Vec<_> = args.iter().collect();
        let described: Vec<_> = args
            .iter()
            .map(|value| arrays::describe(value, ArrayUse::Read))
            .collect();
        let stream = stream_of(py, stream.as_ref(), args.iter().zip(&described))?;
        let mut values = Vec::with_capacity(args.len());
        let mut waits = Vec::new();
        // The arrays stay until the kernel is under way.
        let mut held = Vec::new();
        for (index, (value, described)) in args.iter().zip(described).enumerate() {
            let who = &Nth(index);
            let size = facts
                .sizes
                .as_ref()
                .and_then(|sizes| sizes.get(index))
                .copied();
            let is_array =
                described.is_some() || !arrays::is_plain(value) && arrays::is_array(value)?;
            if is_array {
                let array = arrays::read(who, value, described, stream)?;
                if let Some(size) = size
                    && size != 8
                {
                    let text =
                        format!("{who}: an array, and the kernel's parameter has {size} byte(s)");
                    return Err(errors::argument(py, text));
                }
                let device = array.device.and_then(|device| usize::try_from(device).ok());
                if let Some(device) = device
                    && device != loaded.ordinal
                {
                    let ours = loaded.ordinal;
                    let text =
                        format!("{who}: it is on GPU {device}, and the kernel on GPU {ours}");
                    return Err(errors::argument(py, text));
                }
                waits.extend(array.wait);
                values.push(array.tensor.address.to_ne_bytes().to_vec());
                held.push(array);
            } else {
                values.push(parameter(who, value, size)?);
            }
        }
        let launch = driver::Launch {
            grid: self.grid,
            block: self.block,
            shared,
            stream,
            values,
            waits,
        };
        let done = py.detach(|| driver::launch(&loaded.kernel, &loaded.device, launch));
        drop(held);
        done.map_err(|text| errors::launch(py, text))
    }
}

/// An argument by its place.
struct Nth(usize);

impl fmt::Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "argument {}", self.0)
    }
}

fn block(given: &Bound<'_, PyAny>) -> PyResult<(u32, u32, u32)> {
    let (x, y, z) = dimensions("block", given, MOST_IN_BLOCK)?;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if threads > MOST_THREADS {
        let text = format!("block: {threads} threads; a block has at most {MOST_THREADS}");
        return Err(errors::argument(given.py(), text));
    }
    Ok((x, y, z))
}

/// One to three sizes.
fn dimensions(who: &str, given: &Bound<'_, PyAny>, most: [u64; 3]) -> PyResult<(u32, u32, u32)> {
    let py = given.py();
    let wrong = || {
        let kind = arrays::type_of(given);
        let text = format!("{who}: an int or a tuple of up to three was expected, not {kind}");
        errors::argument(py, text)
    };
    let sizes: Vec<i64> = match given.extract::<i64>() {
        Ok(one) => vec![one],
        Err(_) => given.extract().map_err(|_| wrong())?,
    };
    if sizes.is_empty() || sizes.len() > 3 {
        return Err(wrong());
    }
    let mut all = [1u32; 3];
    for (index, (size, most)) in sizes.iter().zip(most).enumerate() {
        let fits = u64::try_from(*size)
            .ok()
            .filter(|size| (1..=most).contains(size));
        let fits = fits.and_then(|size| u32::try_from(size).ok());
        match (fits, all.get_mut(index)) {
            (Some(size), Some(place)) => *place = size,
            _ => {
                let text = format!("{who}: {size} in dimension {index}; 1 to {most} were expected");
                return Err(errors::argument(py, text));
            }
        }
    }
    Ok((all[0], all[1], all[2]))
}
