//! Ready-made kernels over arrays: read and checked, their result's shape and type found, then run.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use warpcc_rtc::kernels::dtype::{DType, Family};
use warpcc_rtc::kernels::elementwise::{self, Value};
use warpcc_rtc::kernels::expression::{Expr, Number};
use warpcc_rtc::kernels::known::{function_of, parsed};
use warpcc_rtc::kernels::plan::{PlanError, Request, Tensor};
use warpcc_rtc::kernels::reduce;

use crate::arrays::{self, Array};
use crate::cache::KernelCache;
use crate::{driver, errors, interrupt};

/// Something to be computed.
#[pyclass(frozen, module = "warpcc_rtc")]
pub struct Work {
    kind: Kind,
    inputs: Vec<(String, Input)>,
    stream: u64,
    shape: Vec<u64>,
    dtype: DType,
    device: Option<usize>,
}

enum Kind {
    Expression(Expr),
    Reduction(String, Option<Vec<i64>>),
}

enum Input {
    Array(Array),
    Number(Number),
}

#[pymethods]
impl Work {
    /// An expression over the named values; or a function of them, in order.
    #[staticmethod]
    fn expression(
        py: Python<'_>,
        text: &str,
        is_function: bool,
        values: &Bound<'_, PyDict>,
        out: Option<Bound<'_, PyAny>>,
        stream: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let stream = stream_of(py, stream.as_ref(), values.values().iter().chain(out))?;
        let mut inputs = Vec::new();
        for (name, value) in values.iter() {
            let name: String = name.extract()?;
            let input = match arrays::number(&name, &value)? {
                Some(number) => Input::Number(number),
                None => Input::Array(arrays::read(&name, &value, stream)?),
            };
            inputs.push((name, input));
        }
        let plan = |error: PlanError| errors::of_plan(py, &error);
        let expr = match is_function {
            false => parsed(text).map_err(|error| plan(error.into()))?,
            true => {
                let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
                function_of(text, &names).map_err(|error| plan(error.into()))?
            }
        };
        let shape = broadcast(py, &inputs)?;
        let dtype = elementwise::result_type(&expr, &values_of(&inputs)).map_err(plan)?;
        let device = one_device(py, &inputs)?;
        Ok(Self {
            kind: Kind::Expression(expr),
            inputs,
            stream,
            shape,
            dtype,
            device,
        })
    }

    /// A reduction over axes of `x`; over all of them with None.
    #[staticmethod]
    fn reduction(
        py: Python<'_>,
        name: &str,
        x: &Bound<'_, PyAny>,
        axes: Option<Vec<i64>>,
        keepdims: bool,
        out: Option<Bound<'_, PyAny>>,
        stream: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let given = [x.clone()].into_iter().chain(out);
        let stream = stream_of(py, stream.as_ref(), given)?;
        let array = arrays::read("x", x, stream)?;
        let (shape, dtype) = (&array.tensor.shape, array.tensor.dtype);
        let reduced = reduced(py, shape.len(), axes.as_deref())?;
        let left = shape
            .iter()
            .zip(&reduced)
            .filter_map(|(size, reduced)| match reduced {
                false => Some(*size),
                true => keepdims.then_some(1),
            });
        let (shape, dtype) = (left.collect(), reduced_type(name, dtype));
        let inputs = vec![("x".to_owned(), Input::Array(array))];
        let device = one_device(py, &inputs)?;
        Ok(Self {
            kind: Kind::Reduction(name.to_owned(), axes),
            inputs,
            stream,
            shape,
            dtype,
            device,
        })
    }

    /// The result's sizes.
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.shape.clone()
    }

    /// The result's type, as NumPy calls it.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The arrays' GPU, where they say.
    #[getter]
    fn device(&self) -> Option<usize> {
        self.device
    }

    /// Computes it into `out`, or adds it to what is there, and does not wait for that.
    fn run(
        &self,
        py: Python<'_>,
        cache: &Bound<'_, KernelCache>,
        out: &Bound<'_, PyAny>,
        add: bool,
    ) -> PyResult<()> {
        let output = arrays::read("out", out, self.stream)?;
        if output.readonly {
            return Err(errors::argument(py, "out: it is read-only"));
        }
        if output.copied {
            let text =
                "out: its __dlpack__ gave a copy of it: one that shares its memory was expected";
            return Err(errors::argument(py, text));
        }
        let request = match add {
            true => Request::Add,
            false => Request::Write,
        };
        let plan = match &self.kind {
            Kind::Expression(expr) => {
                elementwise::fused(expr, &values_of(&self.inputs), &output.tensor, request)
            }
            Kind::Reduction(name, axes) => {
                let input = self.inputs.iter().find_map(|(_, input)| input.tensor());
                match input {
                    Some(input) => {
                        reduce::reduce(name, input, axes.as_deref(), &output.tensor, request)
                    }
                    None => return Ok(()),
                }
            }
        };
        let plan = plan.map_err(|error| errors::of_plan(py, &error))?;
        let arrays = self.inputs.iter().filter_map(|(_, input)| match input {
            Input::Array(array) => Some(array),
            Input::Number(_) => None,
        });
        let waits: Vec<u64> = arrays
            .chain([&output])
            .filter_map(|array| array.wait)
            .collect();
        let theirs = ordinal(&output);
        if let (Some(ours), Some(theirs)) = (self.device, theirs)
            && ours != theirs
        {
            let text = format!("out: it is on GPU {theirs}, and the inputs on GPU {ours}");
            return Err(errors::argument(py, text));
        }
        if plan.launches.is_empty() {
            return Ok(());
        }
        let cache = cache.get();
        let address = output.tensor.address;
        interrupt::run(py, None, |limits| {
            let known = self
                .device
                .or(theirs)
                .or_else(|| driver::device_of(address));
            let device = known.unwrap_or_else(driver::current);
            let launcher = cache.launcher(device).map_err(Failed::Library)?;
            let device = launcher.device();
            driver::with(device, || {
                driver::wait_for(device, self.stream, &waits)?;
                let stream = driver::stream(device, self.stream);
                Ok(launcher.run(&plan, &stream, limits))
            })
            .map_err(Failed::Driver)?
            .map_err(Failed::Launch)
        })?
        .map_err(|failed| match failed {
            Failed::Library(error) => errors::of(py, &error),
            Failed::Driver(text) => errors::launch(py, text),
            Failed::Launch(error) => errors::of_launch(py, &error),
        })
    }
}

enum Failed {
    Library(warpcc_rtc::Error),
    Driver(String),
    Launch(warpcc_rtc::kernels::LaunchError),
}

impl Input {
    fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Array(array) => Some(&array.tensor),
            Self::Number(_) => None,
        }
    }
}

fn values_of(inputs: &[(String, Input)]) -> Vec<(&str, Value<'_>)> {
    let all = inputs.iter().map(|(name, input)| {
        let value = match input {
            Input::Array(array) => Value::Tensor(&array.tensor),
            Input::Number(number) => Value::Number(*number),
        };
        (name.as_str(), value)
    });
    all.collect()
}

fn ordinal(array: &Array) -> Option<usize> {
    array.device.and_then(|device| usize::try_from(device).ok())
}

/// The GPU that all arrays are on.
fn one_device(py: Python<'_>, inputs: &[(String, Input)]) -> PyResult<Option<usize>> {
    let mut first: Option<(&str, usize)> = None;
    for (name, input) in inputs {
        let Input::Array(array) = input else { continue };
        let Some(device) = ordinal(array) else {
            continue;
        };
        match first {
            None => first = Some((name, device)),
            Some((other, other_device)) if other_device != device => {
                let text = format!("{name} is on GPU {device}, and {other} on GPU {other_device}");
                return Err(errors::argument(py, text));
            }
            Some(_) => {}
        }
    }
    Ok(first.map(|(_, device)| device))
}

/// The shape that all arrays broadcast to, by NumPy's rules.
fn broadcast(py: Python<'_>, inputs: &[(String, Input)]) -> PyResult<Vec<u64>> {
    let mut all: Vec<u64> = Vec::new();
    for (name, input) in inputs {
        let Some(tensor) = input.tensor() else {
            continue;
        };
        let shape = &tensor.shape;
        if shape.len() > all.len() {
            let missing = shape.len() - all.len();
            all.splice(0..0, std::iter::repeat_n(1, missing));
        }
        let skipped = all.len() - shape.len();
        let before = all.clone();
        for (place, size) in all.iter_mut().skip(skipped).zip(shape) {
            match (*place, *size) {
                (ours, theirs) if ours == theirs || theirs == 1 => {}
                (1, theirs) => *place = theirs,
                _ => {
                    let text = format!(
                        "{name} has shape {shape:?}, which does not broadcast with {before:?}, that of what stands before it"
                    );
                    return Err(errors::argument(py, text));
                }
            }
        }
    }
    Ok(all)
}

/// Which of an array's axes are reduced.
fn reduced(py: Python<'_>, dimensions: usize, axes: Option<&[i64]>) -> PyResult<Vec<bool>> {
    let Some(axes) = axes else {
        return Ok(vec![true; dimensions]);
    };
    let mut reduced = vec![false; dimensions];
    for axis in axes {
        let count = i64::try_from(dimensions).unwrap_or(i64::MAX);
        let place = if *axis < 0 { axis + count } else { *axis };
        let found = usize::try_from(place)
            .ok()
            .and_then(|place| reduced.get_mut(place));
        match found {
            Some(reduced) if !*reduced => *reduced = true,
            _ => {
                let error = PlanError::Axis {
                    axis: *axis,
                    dimensions,
                    twice: found.is_some(),
                };
                return Err(errors::of_plan(py, &error));
            }
        }
    }
    Ok(reduced)
}

/// What a reduction of `dtype` is kept in where nothing else is asked for.
fn reduced_type(name: &str, dtype: DType) -> DType {
    match (name, dtype.family()) {
        ("any" | "all", _) => DType::Bool,
        ("count_nonzero", _) => DType::I64,
        ("max" | "min", _) | (_, Family::Float) => dtype,
        ("mean" | "norm1" | "norm2" | "norm_inf", _) => dtype.real(),
        _ => dtype.accumulate(),
    }
}

/// The address of the stream to use: the one given, else the current one of the first array's framework.
pub fn stream_of<'py>(
    py: Python<'py>,
    stream: Option<&Bound<'py, PyAny>>,
    values: impl IntoIterator<Item = Bound<'py, PyAny>>,
) -> PyResult<u64> {
    static FRAMEWORKS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = || {
        let module = FRAMEWORKS.get_or_try_init(py, || {
            py.import("warpcc_rtc._frameworks").map(Bound::unbind)
        });
        module.map(|module| module.bind(py))
    };
    if let Some(stream) = stream {
        return module()?
            .call_method1(intern!(py, "address_of"), (stream,))?
            .extract();
    }
    for value in values {
        if arrays::is_plain(&value) {
            continue;
        }
        if let Some(stream) = arrays::stream_of(&value) {
            return Ok(stream);
        }
        let current = module()?.call_method1(intern!(py, "current_stream"), (value,))?;
        if !current.is_none() {
            return current.extract();
        }
    }
    Ok(0)
}
