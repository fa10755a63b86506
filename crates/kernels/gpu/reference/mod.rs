//! Computes the expected result of every function: in double and in 128-bit integers, written apart from the device
//! text.
//!
//! Used by the tests that run the device text on the host, and by `rtc-verify` on a GPU. A function without a formula
//! here is a panic, so that no function goes unchecked.

mod backward;
mod compute_type;
mod datum;
mod integer;
mod judge;
mod random;
mod real;
mod special;

pub use datum::{Datum, convert, read, write};
pub use judge::{Expected, is_right};
pub use random::Random;

use warpcc_kernels::dtype::{DType, Family};
use warpcc_kernels::functions::{DeviceFunction, Gives};

use backward::may_be_lost;
use datum::wrap;
use integer::integer;
use judge::units;
use real::real;

/// The expected result of the function for arguments of these types.
pub fn expected(function: &DeviceFunction, types: &[DType], values: &[Datum]) -> Expected {
    let mixed = types.iter().copied().reduce(DType::mixed).expect("some");
    let dtype = function.value_of(types).expect("it takes them");
    let name = function.name;
    let exact = |value| Expected {
        value,
        error: 0.0,
        dtype,
    };
    if let Some(value) = chosen(name, types, values, dtype) {
        return exact(value);
    }
    let work = match function.gives {
        Gives::Truth => mixed.compute(),
        _ => dtype,
    };
    let given: Vec<Datum> = values.iter().map(|each| convert(work, *each)).collect();
    if let Gives::Truth = function.gives {
        return exact(Datum::I(i128::from(truth(name, &given))));
    }
    if work.family() == Family::Float {
        if mixed.family() != Family::Float && matches!(name, "mod_grad" | "mod_rgrad" | "rmod_grad")
        {
            return exact(Datum::F(0.0));
        }
        let reals: Vec<f64> = given.iter().map(|each| each.real()).collect();
        let (value, scale) = real(name, &reals, work);
        return Expected {
            value: Datum::F(value),
            error: room(name, &reals, work, (value, scale)),
            dtype,
        };
    }
    let whole = |datum: &Datum| match datum {
        Datum::I(value) => *value,
        Datum::F(_) => unreachable!("an integer compute type"),
    };
    let wholes: Vec<i128> = given.iter().map(whole).collect();
    exact(Datum::I(wrap(work, integer(name, work, &wholes))))
}

/// The value of a function that gives one of its arguments, or the truth of some, which are looked at in their own types.
fn chosen(name: &str, types: &[DType], values: &[Datum], dtype: DType) -> Option<Datum> {
    let truth = |pick: fn(bool, bool) -> bool| {
        Datum::I(i128::from(pick(!values[0].is_zero(), !values[1].is_zero())))
    };
    Some(match name {
        "left" => values[0],
        "right" => values[1],
        "where" => convert(dtype, values[if values[0].is_zero() { 2 } else { 1 }]),
        "logical_and" => truth(|x, y| x && y),
        "logical_or" => truth(|x, y| x || y),
        "logical_xor" => truth(|x, y| x != y),
        "backward_clip" => {
            let inner = types[1..].iter().copied().reduce(DType::mixed).expect("3");
            let v: Vec<Datum> = values[1..]
                .iter()
                .map(|each| convert(inner.compute(), *each))
                .collect();
            let is_out = match (v[0], v[1], v[2]) {
                (Datum::I(x), Datum::I(low), Datum::I(high)) => x < low || x > high,
                _ => v[0].real() < v[1].real() || v[0].real() > v[2].real(),
            };
            match is_out {
                true => Datum::F(0.0),
                false => convert(dtype, values[0]),
            }
        }
        _ => return None,
    })
}

/// How far a floating result may be off.
fn room(name: &str, given: &[f64], work: DType, (value, scale): (f64, f64)) -> f64 {
    let (unit, least) = match work {
        DType::F32 => (f64::from(f32::EPSILON), 1.5e-45),
        _ => (f64::EPSILON, 5e-324),
    };
    let size = value.abs().max(scale.abs());
    if may_be_lost(name, given, work) {
        return f64::NAN;
    }
    if size.is_finite() {
        // A subnormal intermediate value has lost digits, which a later factor makes visible.
        let finite = given.iter().filter(|v| v.is_finite());
        let factor = finite.fold(1.0, |m: f64, v| m.max(v.abs()));
        return units(name, given, work) * (unit * size + least * factor);
    }
    match value.is_infinite() && given.iter().all(|v| v.is_finite()) {
        // Finite, but beyond double.
        true => f64::INFINITY,
        false => 0.0,
    }
}

fn truth(name: &str, v: &[Datum]) -> bool {
    let order = |v: &[Datum]| match (v[0], v[1]) {
        (Datum::I(x), Datum::I(y)) => Some(x.cmp(&y)),
        (x, y) => x.real().partial_cmp(&y.real()),
    };
    use std::cmp::Ordering::{Equal, Greater, Less};
    match name {
        "logical_not" => v[0].is_zero(),
        "nonzero" => !v[0].is_zero(),
        "isnan" => v[0].real().is_nan(),
        "isinf" => matches!(v[0], Datum::F(x) if x.is_infinite()),
        "isposinf" => matches!(v[0], Datum::F(x) if x == f64::INFINITY),
        "isneginf" => matches!(v[0], Datum::F(x) if x == f64::NEG_INFINITY),
        "isfinite" => v[0].real().is_finite(),
        "equal" => order(v) == Some(Equal),
        "not_equal" => order(v) != Some(Equal),
        "greater" => order(v) == Some(Greater),
        "greater_equal" => matches!(order(v), Some(Greater | Equal)),
        "less" => order(v) == Some(Less),
        "less_equal" => matches!(order(v), Some(Less | Equal)),
        other => panic!("no reference for {other}"),
    }
}
