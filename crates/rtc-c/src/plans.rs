//! Ready-made kernels for C: plans of element-wise functions, expressions and reductions.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;

use warpcc_kernels::elementwise::{binary, fused, unary};
use warpcc_kernels::plan::Plan as RustPlan;
use warpcc_kernels::plan_cache::parsed;
use warpcc_kernels::reduce::reduce;

use crate::cache::Cache;
use crate::error::{Failure, Status};
use crate::ffi::{enter, free, given, given_mut, list, make, text};
use crate::request::{CallLimits, limits};
use crate::tensors::{OwnedValue, Tensor, Value, output_of, tensor_of};

/// Kernels to start one after another: checked, and ready to run any number of times.
#[derive(Debug)]
pub struct Plan(pub(crate) RustPlan);

/// Plans a function of one array ("relu"; docs/kernels.md lists all). `write` is a `warpcc_rtc_write`. This needs no GPU and
/// does not read the arrays.
///
/// # Safety
/// Each pointer to a text or array is null, or valid during the call.
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
/// Each pointer to a text or array is null, or valid during the call.
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
            let (x, y) = (
                OwnedValue::from_value(x, "x")?,
                OwnedValue::from_value(y, "y")?,
            );
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
/// Each pointer to a text or array is null, or valid during the call.
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
                    OwnedValue::from_value(Some(value), "value")?,
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

/// Plans a reduction ("sum", "max", "norm2") over `count` axes of `x` (negative ones count from the last; null: all axes).
/// The output has the remaining axes, or all, with the reduced ones of size 1.
///
/// # Safety
/// Each pointer to a text or array is null, or valid during the call.
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

/// The number of kernels that a plan starts (0 if there is nothing to do), and the bytes of device memory that they share
/// while they run.
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

/// Compiles a plan's kernels for `target` ("sm_90") into a cache's folders, where a launcher with the same settings finds
/// them. This needs no GPU.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
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

/// Frees the plan; kernels that it started go on.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_plan_free(plan: Option<Box<Plan>>) {
    free(plan);
}
