//! Ready-made kernels over arrays: read and checked, their result's shape and type found, then run.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise;
use warpcc_kernels::expression::Expr;
use warpcc_kernels::functions;
use warpcc_kernels::names;
use warpcc_kernels::plan::{Plan, PlanError, WriteMode};
use warpcc_kernels::plan_cache::{function_of, parsed};
use warpcc_kernels::reduce::reduce as plan_reduction;
use warpcc_kernels::reductions;
use warpcc_kernels::shape;

use crate::arrays::{self, Array};
use crate::cache::KernelCache;
use crate::exchange::{self, ArrayUse, Described, frameworks};
use crate::inputs::{Input, InputContent, broadcast, one_device, ordinal, values_of};
use crate::stream::stream_of;
use crate::{driver, errors, interrupt};

/// The names of a function's arguments.
const NAMES: [&str; 3] = ["x", "y", "z"];

/// Every function and name, each with its arguments and the number that is taken where one is not given.
#[pyfunction]
pub fn known_functions() -> Vec<(&'static str, Vec<KnownArgument>)> {
    let functions = functions::ALL
        .iter()
        .filter(|each| each.arity <= NAMES.len());
    let functions = functions.map(|each| {
        let arguments = NAMES[..each.arity].iter().map(|name| (*name, None));
        (each.name, arguments.collect())
    });
    // Where both have a name, the entry of the name has the numbers too.
    let named = names::ALL
        .iter()
        .map(|each| (each.name, each.arguments.to_vec()));
    functions.chain(named).collect()
}

/// An argument's name, and the number that is taken where it is not given.
type KnownArgument = (&'static str, Option<&'static str>);

/// A function of values, in order. `dtype` is the type of a new result.
#[pyfunction]
#[pyo3(signature = (cache, name, values, out, add, stream, dtype = None))]
pub fn function<'py>(
    cache: &Bound<'py, KernelCache>,
    name: &str,
    values: &Bound<'py, PyTuple>,
    out: Option<Bound<'py, PyAny>>,
    add: bool,
    stream: Option<Bound<'py, PyAny>>,
    dtype: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let given: Vec<_> = NAMES.into_iter().zip(values.iter()).collect();
    let mut call = Call::read(cache, &given, out, stream)?;
    call.dtype = dtype
        .map(|dtype| known_type(cache.py(), dtype))
        .transpose()?;
    let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    let expr = function_of(name, &names);
    let expr = expr.map_err(|error| errors::of_plan(cache.py(), &error.into()))?;
    call.expression(&expr, add)
}

/// An expression over named values. With `exact`, `out` must be of the type that it gives: it is also one of the values, and
/// what it holds is to stay as it is.
#[pyfunction]
#[pyo3(signature = (cache, text, values, out, add, stream, exact = false))]
pub fn fused<'py>(
    cache: &Bound<'py, KernelCache>,
    text: &str,
    values: &Bound<'py, PyDict>,
    out: Option<Bound<'py, PyAny>>,
    add: bool,
    stream: Option<Bound<'py, PyAny>>,
    exact: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (names, values): (Vec<_>, Vec<_>) = values.iter().unzip();
    let names: Vec<String> = names
        .iter()
        .map(|name| name.extract())
        .collect::<PyResult<_>>()?;
    let given: Vec<_> = names.iter().map(String::as_str).zip(values).collect();
    let mut call = Call::read(cache, &given, out, stream)?;
    call.exact = exact;
    let expr = parsed(text).map_err(|error| errors::of_plan(cache.py(), &error.into()))?;
    call.expression(&expr, add)
}

/// A reduction over axes of `x`; over all of them with None.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "those of the function that Python programs call"
)]
pub fn reduce<'py>(
    cache: &Bound<'py, KernelCache>,
    name: &str,
    x: Bound<'py, PyAny>,
    axes: Option<Vec<i64>>,
    keepdims: bool,
    out: Option<Bound<'py, PyAny>>,
    add: bool,
    stream: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = [("x", x)];
    Call::read(cache, &given, out, stream)?.reduction(name, axes.as_deref(), keepdims, add)
}

/// The arguments of an operation, each examined once.
struct Call<'a, 'py> {
    cache: &'a Bound<'py, KernelCache>,
    inputs: Vec<Input<'a, 'py>>,
    out: Option<(Bound<'py, PyAny>, Option<Described>)>,
    stream: u64,
    device: Option<usize>,
    /// The type of a new result, in place of the usual one.
    dtype: Option<DType>,
    /// Whether the output that was given must be of the usual type.
    exact: bool,
}

/// The type of a name, in NumPy's way of writing or this library's.
fn known_type(py: Python<'_>, name: &str) -> PyResult<DType> {
    let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    found.ok_or_else(|| {
        let known = DType::ALL.map(DType::name).join(", ");
        errors::argument(py, format!("dtype: {name} is none of {known}"))
    })
}

impl<'a, 'py> Call<'a, 'py> {
    fn read(
        cache: &'a Bound<'py, KernelCache>,
        given: &'a [(&'a str, Bound<'py, PyAny>)],
        out: Option<Bound<'py, PyAny>>,
        stream: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let py = cache.py();
        let described: Vec<_> = given
            .iter()
            .map(|(_, value)| arrays::describe(value, ArrayUse::Read))
            .collect();
        let out = out.map(|out| {
            let described = arrays::describe(&out, ArrayUse::Write);
            (out, described)
        });
        let values = given.iter().map(|(_, value)| value).zip(&described);
        let written = out.iter().map(|(out, described)| (out, described));
        let stream = stream_of(py, stream.as_ref(), values.chain(written))?;
        let mut inputs = Vec::with_capacity(given.len());
        for ((name, object), described) in given.iter().zip(described) {
            let number = match described {
                None => arrays::number(name, object)?,
                Some(_) => None,
            };
            let content = match number {
                Some(number) => InputContent::Number(number),
                None => InputContent::Array(arrays::read(name, object, described, stream)?),
            };
            inputs.push(Input {
                name,
                object,
                content,
            });
        }
        Ok(Self {
            cache,
            device: one_device(py, &inputs)?,
            inputs,
            out,
            stream,
            dtype: None,
            exact: false,
        })
    }

    fn expression(mut self, expr: &Expr, add: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = self.cache.py();
        let failed = |error: PlanError| errors::of_plan(py, &error);
        let shape = broadcast(py, &self.inputs)?;
        let values = values_of(&self.inputs);
        let (out, output) = match self.out.take() {
            Some(given) => {
                let (out, output) = self.given(given)?;
                let usual = elementwise::result_type(expr, &values).map_err(failed)?;
                if self.exact && usual != output.tensor.dtype {
                    let (usual, other) = (usual.name(), output.tensor.dtype.name());
                    let text = format!("where: out is {other}, and the function gives {usual}");
                    return Err(errors::argument(py, text));
                }
                (out, output)
            }
            None => {
                let usual = elementwise::result_type(expr, &values).map_err(failed)?;
                self.made(shape, self.dtype.unwrap_or(usual), add)?
            }
        };
        let plan = elementwise::fused(expr, &values, &output.tensor, mode(add));
        self.run(&plan.map_err(failed)?, &output)?;
        Ok(out)
    }

    fn reduction(
        mut self,
        name: &str,
        axes: Option<&[i64]>,
        keepdims: bool,
        add: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.cache.py();
        let x = self.inputs.iter().find_map(Input::tensor);
        let Some(x) = x else {
            let text = "x: a number: an array on a CUDA GPU was expected";
            return Err(errors::wrong_type(text));
        };
        let failed = |error: PlanError| errors::of_plan(py, &error);
        let reduced = shape::reduced_axes(axes, x.shape.len()).map_err(failed)?;
        let (out, output) = match self.out.take() {
            Some(given) => self.given(given)?,
            None => {
                let left = shape::reduced_shape(&x.shape, &reduced, keepdims);
                self.made(left, reductions::output_type(name, x.dtype), add)?
            }
        };
        let plan = plan_reduction(name, x, axes, &output.tensor, mode(add));
        self.run(&plan.map_err(failed)?, &output)?;
        Ok(out)
    }

    /// The output that was given.
    fn given(
        &self,
        (out, described): (Bound<'py, PyAny>, Option<Described>),
    ) -> PyResult<(Bound<'py, PyAny>, Array)> {
        let py = self.cache.py();
        let output = arrays::read(&"out", &out, described, self.stream)?;
        if output.readonly {
            return Err(errors::argument(py, "out: it is read-only"));
        }
        if output.copied {
            let text =
                "out: its __dlpack__ gave a copy of it: one that shares its memory was expected";
            return Err(errors::argument(py, text));
        }
        Ok((out, output))
    }

    /// A new output, of the first array's framework.
    fn made(
        &self,
        sizes: Vec<u64>,
        dtype: DType,
        add: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Array)> {
        let py = self.cache.py();
        if add {
            let text = "out: adding needs an array to add to";
            return Err(errors::argument(py, text));
        }
        let like = self
            .inputs
            .iter()
            .find_map(|input| Some((input, input.tensor()?)));
        let Some((like, tensor)) = like else {
            let text = "out: an expression of numbers alone needs an array to write to";
            return Err(errors::argument(py, text));
        };
        let strides = tensor.strides.as_deref();
        let is_dense = strides.is_none_or(|strides| shape::is_dense(&tensor.shape, strides));
        let is_alike = tensor.dtype == dtype && tensor.shape == sizes && is_dense;
        let empty_like = is_alike.then(|| exchange::empty_like(like.object));
        let made = match empty_like.flatten() {
            Some(empty_like) => empty_like.call1((like.object,))?,
            None => {
                let shape = PyTuple::new(py, sizes)?;
                let given = (like.object, shape, dtype.name(), self.device);
                frameworks(py)?.call_method1(intern!(py, "empty"), given)?
            }
        };
        let described = arrays::describe(&made, ArrayUse::Write);
        self.given((made, described))
    }

    fn run(&self, plan: &Plan, output: &Array) -> PyResult<()> {
        let py = self.cache.py();
        let arrays = self.inputs.iter().filter_map(|input| match &input.content {
            InputContent::Array(array) => Some(array),
            InputContent::Number(_) => None,
        });
        let waits: Vec<u64> = arrays
            .chain([output])
            .filter_map(|array| array.wait)
            .collect();
        let theirs = ordinal(output);
        if let (Some(ours), Some(theirs)) = (self.device, theirs)
            && ours != theirs
        {
            let text = format!("out: it is on GPU {theirs}, and the inputs on GPU {ours}");
            return Err(errors::argument(py, text));
        }
        if plan.launches.is_empty() {
            return Ok(());
        }
        let (cache, stream) = (self.cache.get(), self.stream);
        let (address, known) = (output.tensor.address, self.device.or(theirs));
        interrupt::run(py, None, |limits| {
            let known = known.or_else(|| driver::device_of(address));
            let device = known.unwrap_or_else(driver::current);
            let launcher = cache.launcher(device).map_err(Failed::Library)?;
            let device = launcher.device();
            driver::with(device, || {
                driver::wait_for(device, stream, &waits)?;
                let stream = driver::stream(device, stream);
                Ok(launcher.run(plan, &stream, limits))
            })
            .map_err(Failed::Driver)?
            .map_err(Failed::Launch)
        })?
        .map_err(|failed| match failed {
            Failed::Library(error) => errors::to_python(py, &error),
            Failed::Driver(text) => errors::launch(py, text),
            Failed::Launch(error) => errors::of_launch(py, &error),
        })
    }
}

enum Failed {
    Library(warpcc_rtc::Error),
    Driver(String),
    Launch(warpcc_kernels::LaunchError),
}

fn mode(add: bool) -> WriteMode {
    match add {
        true => WriteMode::Add,
        false => WriteMode::Write,
    }
}
