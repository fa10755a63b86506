//! Whether a result is right: how far it may be off, and what adding it to an output does to that.

use warpcc_kernels::dtype::DType;

use super::datum::{Datum, convert, wrap};

/// A value and how far from it a result may be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The value in the compute type.
    pub value: Datum,
    /// The distance, on either side; infinite where finite arguments gave what double does not hold; NaN where infinity may
    /// have met a zero.
    pub error: f64,
    /// The compute type.
    pub dtype: DType,
}

/// Whether a result stands where it may, given what the output held before if it was added to.
pub fn is_right(result: Datum, expected: &Expected, output: DType, before: Option<Datum>) -> bool {
    if expected.error.is_nan() {
        return is_an_end(result, expected.value.real(), output);
    }
    if before.is_some_and(|before| is_fused(result, expected, output, before)) {
        return true;
    }
    let (low, high) = match expected.value {
        Datum::F(value) if value.is_finite() => (
            convert(expected.dtype, Datum::F(value - expected.error)),
            convert(expected.dtype, Datum::F(value + expected.error)),
        ),
        other => (other, other),
    };
    let sum = output.compute().mixed(expected.dtype).number();
    let with = |value: Datum, direction: f64| {
        before.map_or(value, |before| added(sum, value, before, direction))
    };
    let (low, high) = (with(low, -1.0), with(high, 1.0));
    if output == DType::Bool && low.real() <= 0.0 && high.real() >= 0.0 && low != high {
        return true;
    }
    match (result, convert(output, low), convert(output, high)) {
        (Datum::F(result), Datum::F(least), Datum::F(most)) => {
            (result.is_nan() && (least.is_nan() || most.is_nan()))
                || (least <= result && result <= most)
        }
        (Datum::I(result), Datum::I(least), Datum::I(most)) => least <= result && result <= most,
        _ => false,
    }
}

/// The sum of a value and the previous value in type `sum`, off by a rounding in one direction.
fn added(sum: DType, value: Datum, before: Datum, direction: f64) -> Datum {
    match (convert(sum, value), convert(sum, before)) {
        (Datum::I(a), Datum::I(b)) => Datum::I(wrap(sum, a + b)),
        (a, b) => {
            let exact = a.real() + b.real();
            let unit = if sum == DType::F32 { 1.2e-7 } else { 2.3e-16 };
            let room = if exact.is_finite() {
                unit * exact.abs()
            } else {
                0.0
            };
            convert(sum, Datum::F(exact + direction * room))
        }
    }
}

/// Whether a result is NaN or infinite. Which infinity is known where one was found.
fn is_an_end(result: Datum, value: f64, output: DType) -> bool {
    let ends = match value.is_infinite() {
        true => [value, value],
        false => [f64::INFINITY, f64::NEG_INFINITY],
    };
    let mut all = [f64::NAN]
        .into_iter()
        .chain(ends)
        .map(|value| convert(output, Datum::F(value)));
    all.any(|each| each == result || each.real().is_nan() && result.real().is_nan())
}

/// Beyond what the compute type holds, a multiplication may be fused with the addition to what was there: then it does not
/// overflow on the way. So it does not where even double overflowed: what was there, infinite the other way, stays.
fn is_fused(result: Datum, expected: &Expected, output: DType, before: Datum) -> bool {
    let Datum::F(value) = expected.value else {
        return false;
    };
    if value.is_infinite() {
        return expected.error.is_infinite()
            && before.real() == -value
            && result == convert(output, before);
    }
    let overflows = |end: f64| convert(expected.dtype, Datum::F(end)).real().is_infinite();
    if !value.is_finite()
        || !(overflows(value - expected.error) || overflows(value + expected.error))
    {
        return false;
    }
    let sum = output.compute().mixed(expected.dtype).number();
    let before = convert(sum, before).real();
    let end = |direction: f64| {
        let exact = value + direction * expected.error + before;
        convert(output, convert(sum, Datum::F(exact))).real()
    };
    matches!(result, Datum::F(result) if end(-1.0) <= result && result <= end(1.0))
}

/// How many units in the last place a result may be off, besides what is stated in CUDA's guide for
/// the functions it is made of.
pub(super) fn units(name: &str, v: &[f64], work: DType) -> f64 {
    let x = v[0].abs();
    let small = work == DType::F32;
    match name {
        "add" | "sub" | "rsub" | "mul" | "identity" | "square" | "negative" | "abs" | "clip" => 1.0,
        "gamma" => 64.0,
        "backward_gamma" | "backward_gammaln" if !small => 4096.0,
        "backward_gamma" => 64.0,
        // The reference rounds the square.
        "backward_erf" if !small => 32.0 + 2.0 * v[1].abs().min(30.0).powi(2),
        "gammaln" | "backward_gammaln" | "backward_digamma" | "digamma" | "trigamma" => 32.0,
        "power" | "rpower" | "power_grad" | "power_rgrad" => 16.0,
        // A rounding error before an exponential grows with the argument.
        "gelu" => 16.0 + 2.0 * x.min(40.0) * x.min(40.0),
        "backward_gelu" => 1024.0,
        "gelu_tanh" => 32.0 + 8.0 * x.min(10.0).powi(3),
        "backward_gelu_tanh" | "backward_mish" | "backward_silu" => 4096.0,
        "backward_erfinv" => 16.0 + 2.0 * v[1].abs().min(30.0).powi(2),
        "erfinv" => {
            if small {
                8.0
            } else {
                1e4
            }
        }
        "gamma_implicit_grad" => {
            if small {
                64.0
            } else {
                5e9
            }
        }
        _ if small => 8.0,
        // The reference itself is in double.
        _ => 32.0,
    }
}
