//! Kernels that are there already, as C sees them: plans of element-wise functions, expressions and reductions, and what
//! runs them.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through border.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;

use warpcc_kernels::Launcher as RustLauncher;
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{Value as RustValue, binary, fused, unary};
use warpcc_kernels::plan::{Plan as RustPlan, Tensor as RustTensor, WriteMode};
use warpcc_kernels::plan_cache::parsed;
use warpcc_kernels::reduce::reduce;
use warpcc_rtc::KernelCache;

use crate::cache::{Cache, Counts};
use crate::device::{CUstream_st, Device};
use crate::error::{Failure, Status};
use crate::ffi::{copy_text, enter, free, given, given_mut, list, make, text};
use crate::request::{CallLimits, limits};

/// An element's type. docs/kernels.md says in what each is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Dtype {
    /// One byte: 0 is false, all else true.
    Bool = 0,
    /// 8 bits with a sign.
    Int8 = 1,
    /// 8 bits without.
    Uint8 = 2,
    /// 16 bits with a sign.
    Int16 = 3,
    /// 16 bits without.
    Uint16 = 4,
    /// 32 bits with a sign.
    Int32 = 5,
    /// 32 bits without.
    Uint32 = 6,
    /// 64 bits with a sign.
    Int64 = 7,
    /// 64 bits without.
    Uint64 = 8,
    /// IEEE binary16.
    Float16 = 9,
    /// The upper half of a binary32.
    Bfloat16 = 10,
    /// OCP 8-bit, 4 bits of exponent.
    Float8E4m3 = 11,
    /// OCP 8-bit, 5 bits of exponent.
    Float8E5m2 = 12,
    /// IEEE binary32.
    Float32 = 13,
    /// IEEE binary64.
    Float64 = 14,
}

/// What becomes of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Write {
    /// It replaces what the output holds.
    Replace = 0,
    /// It is added to what the output holds.
    Add = 1,
}

/// An array on the device.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Tensor {
    /// The device address of element 0, 0, …
    pub address: u64,
    /// Its sizes, outermost first.
    pub shape: *const u64,
    /// Steps between neighbours in each dimension, in elements; null: rows one after another.
    pub strides: *const i64,
    /// How many sizes, and steps, there are; 0 for a single element.
    pub dimensions: u32,
    /// `warpcc_rtc_dtype`
    pub dtype: i32,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ValueKind {
    /// An array.
    Tensor = 0,
    /// A number with a point.
    Float = 1,
    /// A whole number.
    Int = 2,
}

/// What a name in an expression refers to. A number is an argument of the kernel: another value needs no other kernel.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Value {
    /// Its name in the expression; not looked at by `warpcc_rtc_plan_binary`.
    pub name: *const c_char,
    /// The array, for `WARPCC_RTC_VALUE_KIND_TENSOR`.
    pub tensor: *const Tensor,
    /// The number, for `WARPCC_RTC_VALUE_KIND_FLOAT`.
    pub number: f64,
    /// The number, for `WARPCC_RTC_VALUE_KIND_INT`.
    pub integer: i64,
    /// `warpcc_rtc_value_kind`
    pub kind: i32,
}

/// Kernels to start one after another: checked, and ready to run any number of times.
#[derive(Debug)]
pub struct Plan(RustPlan);

/// Starts plans on a GPU.
#[derive(Debug)]
pub struct Launcher(RustLauncher);

/// # Safety
/// As [`list`], of shape and steps.
unsafe fn tensor_of(
    tensor: Option<&Tensor>,
    argument: &'static str,
) -> Result<RustTensor, Failure> {
    let tensor = given(tensor, argument)?;
    let known = usize::try_from(tensor.dtype).ok();
    let dtype = known.and_then(|index| DType::ALL.get(index)).copied();
    let dtype = dtype.ok_or_else(|| {
        let problem = format!("dtype {} is not a warpcc_rtc_dtype", tensor.dtype);
        Failure::invalid(argument, problem)
    })?;
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or(usize::MAX);
    if dimensions > 64 {
        return Err(Failure::invalid(
            argument,
            format!("{dimensions} dimensions: at most 64 were expected"),
        ));
    }
    if dimensions > 0 && tensor.shape.is_null() {
        return Err(Failure::invalid(argument, "its shape is a null pointer"));
    }
    // SAFETY: as the caller says.
    let shape = unsafe { list(tensor.shape, dimensions, argument) }?;
    let made = RustTensor::new(dtype, shape, tensor.address);
    if tensor.strides.is_null() {
        return Ok(made);
    }
    // SAFETY: likewise.
    let strides = unsafe { list(tensor.strides, dimensions, argument) }?;
    Ok(made.with_strides(strides))
}

/// A value with its array next to it, which must outlive it.
enum Held {
    Tensor(RustTensor),
    Float(f64),
    Int(i64),
}

impl Held {
    /// # Safety
    /// As [`tensor_of`].
    unsafe fn from_value(value: Option<&Value>, argument: &'static str) -> Result<Self, Failure> {
        let value = given(value, argument)?;
        match value.kind {
            kind if kind == ValueKind::Tensor as i32 => {
                // SAFETY: as the caller says.
                let tensor = unsafe { list(value.tensor, 1, argument) }?;
                // SAFETY: likewise.
                Ok(Self::Tensor(unsafe {
                    tensor_of(tensor.first(), argument)
                }?))
            }
            kind if kind == ValueKind::Float as i32 => Ok(Self::Float(value.number)),
            kind if kind == ValueKind::Int as i32 => Ok(Self::Int(value.integer)),
            kind => Err(Failure::invalid(
                argument,
                format!("kind {kind} is not a warpcc_rtc_value_kind"),
            )),
        }
    }

    fn value(&self) -> RustValue<'_> {
        match self {
            Self::Tensor(tensor) => tensor.into(),
            Self::Float(number) => (*number).into(),
            Self::Int(number) => (*number).into(),
        }
    }
}

fn output_of(write: i32) -> Result<WriteMode, Failure> {
    match write {
        write if write == Write::Replace as i32 => Ok(WriteMode::Write),
        write if write == Write::Add as i32 => Ok(WriteMode::Add),
        write => Err(Failure::invalid(
            "write",
            format!("{write} is not a warpcc_rtc_write"),
        )),
    }
}

/// Plans a function of one array ("relu"; docs/kernels.md has them all). `write` is of `warpcc_rtc_write`. No GPU is needed;
/// the arrays themselves are not looked at.
///
/// # Safety
/// The text and the arrays are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_plan_unary(
    function: *const c_char,
    x: Option<&Tensor>,
    output: Option<&Tensor>,
    write: i32,
    plan: Option<&mut MaybeUninit<*mut Plan>>,
) -> Status {
    make(plan, "plan", || {
        // SAFETY: as the caller says.
        let (function, x, output) = unsafe {
            let function = text(function, "function")?;
            (function, tensor_of(x, "x")?, tensor_of(output, "output")?)
        };
        Ok(Plan(unary(function, &x, &output, output_of(write)?)?))
    })
}

/// Plans a function of two arrays, or of an array and a number, broadcast to the output ("add", "power").
///
/// # Safety
/// The text and the arrays are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_plan_binary(
    function: *const c_char,
    x: Option<&Value>,
    y: Option<&Value>,
    output: Option<&Tensor>,
    write: i32,
    plan: Option<&mut MaybeUninit<*mut Plan>>,
) -> Status {
    make(plan, "plan", || {
        // SAFETY: as the caller says.
        let (function, x, y, output) = unsafe {
            let function = text(function, "function")?;
            let (x, y) = (Held::from_value(x, "x")?, Held::from_value(y, "y")?);
            (function, x, y, tensor_of(output, "output")?)
        };
        let write = output_of(write)?;
        Ok(Plan(binary(
            function,
            x.value(),
            y.value(),
            &output,
            write,
        )?))
    })
}

/// Plans an expression over arrays and numbers as one kernel: "relu(a * x + b)", with `count` values by name.
///
/// # Safety
/// The texts and the arrays are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_plan_fused(
    expression: *const c_char,
    values: *const Value,
    count: usize,
    output: Option<&Tensor>,
    write: i32,
    plan: Option<&mut MaybeUninit<*mut Plan>>,
) -> Status {
    make(plan, "plan", || {
        // SAFETY: as the caller says.
        let (expression, values, output) = unsafe {
            let expression = text(expression, "expression")?;
            let values = list(values, count, "values")?;
            (expression, values, tensor_of(output, "output")?)
        };
        let expression = parsed(expression)
            .map_err(|error| Failure::invalid("expression", error.to_string()))?;
        let mut held = Vec::with_capacity(values.len());
        for value in values {
            // SAFETY: likewise.
            held.push(unsafe {
                (
                    text(value.name, "name of a value")?,
                    Held::from_value(Some(value), "value")?,
                )
            });
        }
        let values: Vec<_> = held
            .iter()
            .map(|(name, value)| (*name, value.value()))
            .collect();
        Ok(Plan(fused(
            &expression,
            &values,
            &output,
            output_of(write)?,
        )?))
    })
}

/// Plans a reduction ("sum", "max", "norm2") over `count` axes of `x` (negative ones count from the last; null: over all).
/// The output has the axes that are left, or all with the reduced ones of size 1.
///
/// # Safety
/// The text and the arrays are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_plan_reduce(
    reduction: *const c_char,
    x: Option<&Tensor>,
    axes: *const i64,
    count: usize,
    output: Option<&Tensor>,
    write: i32,
    plan: Option<&mut MaybeUninit<*mut Plan>>,
) -> Status {
    make(plan, "plan", || {
        // SAFETY: as the caller says.
        let (reduction, x, output) = unsafe {
            let reduction = text(reduction, "reduction")?;
            (reduction, tensor_of(x, "x")?, tensor_of(output, "output")?)
        };
        let axes = match axes.is_null() {
            true if count > 0 => return Err(Failure::null("axes")),
            true => None,
            // SAFETY: likewise.
            false => Some(unsafe { list(axes, count, "axes") }?),
        };
        Ok(Plan(reduce(
            reduction,
            &x,
            axes,
            &output,
            output_of(write)?,
        )?))
    })
}

/// How many kernels a plan starts (0 where there is nothing to do), and the bytes of device memory that they share
/// meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_plan_size(
    plan: Option<&Plan>,
    kernels: Option<&mut MaybeUninit<usize>>,
    workspace: Option<&mut MaybeUninit<u64>>,
) -> Status {
    enter(|| {
        let plan = &given(plan, "plan")?.0;
        given_mut(kernels, "kernels")?.write(plan.launches.len());
        given_mut(workspace, "workspace")?.write(plan.workspace);
        Ok(())
    })
}

/// Compiles a plan's kernels for `target` ("sm_90") into a cache's folders, where a launcher of the same settings finds
/// them. No GPU is needed.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_plan_warm(
    plan: Option<&Plan>,
    cache: Option<&Cache>,
    target: *const c_char,
    limits: Option<&CallLimits<'_>>,
) -> Status {
    enter(|| {
        let plan = &given(plan, "plan")?.0;
        let cache = &given(cache, "cache")?.0;
        // SAFETY: as the caller says.
        let target = unsafe { text(target, "target") }?.parse()?;
        let limits = self::limits(limits);
        for request in warpcc_kernels::requests(plan, target) {
            cache.get(&request, &limits)?;
        }
        Ok(())
    })
}

/// Frees it; what was started goes on.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_plan_free(plan: Option<Box<Plan>>) {
    free(plan);
}

/// Makes a launcher for a GPU. It compiles with the cache's compiler, keeps by its settings and shares with its shared caches, with
/// counts of its own.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_launcher_new(
    cache: Option<&Cache>,
    device: Option<&Device>,
    launcher: Option<&mut MaybeUninit<*mut Launcher>>,
) -> Status {
    make(launcher, "launcher", || {
        let Cache(cache, attached) = given(cache, "cache")?;
        let device = given(device, "device")?;
        let (compiler, settings) = (cache.compiler().clone(), cache.settings().clone());
        let own = KernelCache::with(compiler, settings, attached.upstream());
        Ok(Launcher(RustLauncher::new(own, device.0.clone())))
    })
}

/// Starts a plan's kernels on `stream` (null: the default stream) and does not wait for them. The driver is asked first
/// whether it knows the arrays' addresses; that they are as large as was said, and stay until the stream is done, is for the
/// caller to see to. The GPU's context becomes the thread's.
///
/// # Safety
/// The stream is of the launcher's context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_launcher_run(
    launcher: Option<&Launcher>,
    plan: Option<&Plan>,
    stream: *mut CUstream_st,
    limits: Option<&CallLimits<'_>>,
) -> Status {
    enter(|| {
        let launcher = &given(launcher, "launcher")?.0;
        let plan = &given(plan, "plan")?.0;
        // SAFETY: as the caller says.
        let stream = unsafe { Device(launcher.device().clone()).stream(stream) };
        launcher.run(plan, &stream, &self::limits(limits))?;
        Ok(())
    })
}

/// How often images were found, and where.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_launcher_counts(
    launcher: Option<&Launcher>,
    counts: Option<&mut MaybeUninit<Counts>>,
) -> Status {
    enter(|| {
        let counted = given(launcher, "launcher")?.0.cache().counts();
        given_mut(counts, "counts")?.write(counted.into());
        Ok(())
    })
}

/// Copies the launcher's remarks, as `warpcc_rtc_cache_remarks` does a cache's.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_launcher_remarks(
    launcher: Option<&Launcher>,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    enter(|| {
        let remarks = given(launcher, "launcher")?.0.cache().remarks().join("\n");
        // SAFETY: as the caller says.
        unsafe { copy_text(&remarks, buffer, size, length) }
    })
}

/// Frees it; what was started goes on.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_launcher_free(launcher: Option<Box<Launcher>>) {
    free(launcher);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_types_are_those_of_the_library() {
        assert_eq!(DType::ALL[Dtype::Bool as usize], DType::Bool);
        assert_eq!(DType::ALL[Dtype::Int64 as usize], DType::I64);
        assert_eq!(DType::ALL[Dtype::Float16 as usize], DType::F16);
        assert_eq!(DType::ALL[Dtype::Float8E5m2 as usize], DType::F8E5M2);
        assert_eq!(DType::ALL[Dtype::Float64 as usize], DType::F64);
        assert_eq!(DType::ALL.len(), Dtype::Float64 as usize + 1);
    }
}
