//! The functions of real numbers, in double.

use warpcc_kernels::dtype::DType;

use super::backward::{backward, crossing};
use super::compute_type::in_type;
use super::special::*;

/// The value, and where terms cancel the size of what cancels.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn real(name: &str, v: &[f64], work: DType) -> (f64, f64) {
    let x = v[0];
    let y = v.get(1).copied().unwrap_or(0.0);
    let z = v.get(2).copied().unwrap_or(0.0);
    let plain = |value: f64| (value, 0.0);
    if let Some(of) = name.strip_prefix("backward_") {
        // The size of terms that cancel where a slope crosses zero. Only a part of it: `units` allows for terms that
        // grow far from there.
        return (backward(of, x, y, work), x * crossing(of, y) / 64.0);
    }
    plain(match name {
        "identity" => x,
        "negative" => -x,
        "abs" => x.abs(),
        "sign" => sign(x),
        "square" => x * x,
        "zero" => 0.0,
        "one" => 1.0,
        "negone" => -1.0,
        "round_away" => x.round(),
        "rint" => x.round_ties_even(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "trunc" | "fix" => x.trunc(),
        "relu" => {
            if x > 0.0 || x.is_nan() {
                x
            } else {
                0.0
            }
        }
        "reciprocal" => 1.0 / x,
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "expm1" => x.exp_m1(),
        "log" => x.ln(),
        "log10" => x.log10(),
        "log2" => x.log2(),
        "log1p" => x.ln_1p(),
        "degrees" => x * (180.0 / PI),
        "radians" => x * (PI / 180.0),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "arcsin" => x.asin(),
        "arccos" => x.acos(),
        "arctan" => x.atan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "arcsinh" => libm::asinh(x),
        "arccosh" => {
            if x < 1.0 {
                f64::NAN
            } else {
                libm::acosh(x)
            }
        }
        "arctanh" => libm::atanh(x),
        "sqrt" => x.sqrt(),
        "rsqrt" => 1.0 / x.sqrt(),
        "cbrt" => x.cbrt(),
        "rcbrt" => 1.0 / x.cbrt(),
        "erf" => libm::erf(x),
        "erfc" => libm::erfc(x),
        "erfinv" => erfinv(x),
        "gamma" => {
            if x < 0.0 && x == x.floor() {
                f64::NAN
            } else {
                libm::tgamma(x)
            }
        }
        // Around its zeros at 1 and 2 an absolute error is meant; below 0 it has zeros, too.
        "gammaln" => {
            return (
                libm::lgamma(x),
                if x < 0.0 {
                    4.0 + x.abs().min(1e30)
                } else {
                    0.0
                },
            );
        }
        // Around its zeros what cancels counts: below 0 all of it, around the one above what the device's series leaves.
        "digamma" => {
            let close = if work == DType::F64 {
                (8.0 * (x - ROOT.0).abs()).min(0.25)
            } else {
                0.0
            };
            let size = match x {
                ..0.0 => 4.0,
                1.0..2.0 => close,
                _ => 0.0,
            };
            return (digamma(x), size);
        }
        "trigamma" => trigamma(x),
        "sigmoid" => sigmoid(x),
        "log_sigmoid" => {
            if x < -40.0 {
                x
            } else {
                -softplus(-x)
            }
        }
        "softrelu" => softplus(x),
        "softsign" => {
            if x.is_infinite() {
                x.signum()
            } else {
                x / (1.0 + x.abs())
            }
        }
        "mish" => {
            if x == f64::NEG_INFINITY {
                0.0
            } else {
                x * softplus(x).tanh()
            }
        }
        "silu" => vanishing(x, sigmoid(x)),
        "gelu" => vanishing(x, normal(x)),
        "gelu_tanh" => vanishing(
            x,
            sigmoid(2.0 * (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)),
        ),
        "selu" => {
            1.050_700_987_355_480_5
                * if x > 0.0 {
                    x
                } else {
                    1.673_263_242_354_377_2 * x.exp_m1()
                }
        }
        "add" => x + y,
        "sub" => x - y,
        "rsub" => y - x,
        "mul" => x * y,
        "div" => x / y,
        "rdiv" => y / x,
        "floor_divide" => return (floor_divide(x, y), 0.0),
        "rfloor_divide" => return (floor_divide(y, x), 0.0),
        "mod" => return (python_mod(x, y), y),
        "rmod" => return (python_mod(y, x), x),
        "fmod" => x % y,
        "rfmod" => y % x,
        "power" => x.powf(y),
        "rpower" => y.powf(x),
        "max" => {
            if x.is_nan() || y.is_nan() {
                f64::NAN
            } else {
                x.max(y)
            }
        }
        "min" => {
            if x.is_nan() || y.is_nan() {
                f64::NAN
            } else {
                x.min(y)
            }
        }
        "fmax" => x.max(y),
        "fmin" => x.min(y),
        "hypot" => x.hypot(y),
        "arctan2" => x.atan2(y),
        "rarctan2" => y.atan2(x),
        "copysign" => x.copysign(y),
        "rcopysign" => y.copysign(x),
        "ldexp" => return scaled(x, y, work),
        "rldexp" => return scaled(y, x, work),
        "logaddexp" => {
            let (high, low) = (x.max(y), x.min(y));
            if x.is_nan() || y.is_nan() {
                f64::NAN
            } else if x == y {
                x + LN_2
            } else {
                return (high + (low - high).exp().ln_1p(), high);
            }
        }
        "smooth_l1" => {
            let bound = in_type(1.0 / in_type(y * y, work), work);
            if x.abs() > bound {
                return (x.abs() - 0.5 * bound, x.abs());
            }
            0.5 * in_type(x * y, work).powi(2)
        }
        "xelu" | "prelu" => {
            if x > 0.0 {
                x
            } else {
                x * y
            }
        }
        "elu" => {
            if x > 0.0 {
                x
            } else {
                y * x.exp_m1()
            }
        }
        "clip" => {
            if x < y {
                y
            } else if x > z {
                z
            } else {
                x
            }
        }
        "fma" => return (x.mul_add(y, z), (x * y).abs().max(z.abs())),
        "lerp" => {
            return (
                x + z * in_type(y - x, work),
                (z * (y - x)).abs().max(x.abs()),
            );
        }
        "hard_sigmoid" => {
            let inner = x.mul_add(y, z);
            let scale = if inner.abs() < 2.0 {
                (x * y).abs().max(z.abs())
            } else {
                0.0
            };
            return (
                if inner.is_nan() {
                    inner
                } else {
                    inner.clamp(0.0, 1.0)
                },
                scale,
            );
        }
        "div_grad" => 1.0 / y,
        "div_rgrad" => -in_type(x / y, work) / y,
        "rdiv_grad" => -in_type(y / x, work) / x,
        "mod_grad" => 1.0,
        "mod_rgrad" => return (-floor_divide(x, y), 0.0),
        "rmod_grad" => return (-floor_divide(y, x), 0.0),
        "power_grad" => {
            if y == 0.0 {
                0.0
            } else {
                y * in_type(x.powf(in_type(y - 1.0, work)), work)
            }
        }
        "power_rgrad" => {
            if x == 0.0 && y >= 0.0 {
                0.0
            } else {
                in_type(x.powf(y), work) * x.ln()
            }
        }
        "rpower_grad" => x * y.ln(),
        "hypot_grad_left" => x / in_type(x.hypot(y), work),
        "hypot_grad_right" => y / in_type(x.hypot(y), work),
        "copysign_grad" => {
            if x.is_sign_negative() == y.is_sign_negative() {
                1.0
            } else {
                -1.0
            }
        }
        "arctan2_grad" => y / in_type(x.hypot(y), work) / in_type(x.hypot(y), work),
        "arctan2_rgrad" => -x / in_type(x.hypot(y), work) / in_type(x.hypot(y), work),
        "rarctan2_grad" => x / in_type(x.hypot(y), work) / in_type(x.hypot(y), work),
        "ldexp_grad" => return scaled(1.0, y, work),
        "ldexp_rgrad" => {
            let (value, scale) = scaled(x, y, work);
            return (in_type(value, work) * LN_2, scale);
        }
        "rldexp_grad" => {
            let (value, scale) = scaled(y, x, work);
            return (in_type(value, work) * LN_2, scale);
        }
        "smooth_l1_grad" => {
            let bound = in_type(1.0 / in_type(y * y, work), work);
            if x.abs() > bound {
                sign(x)
            } else {
                in_type(x * y, work) * y
            }
        }
        "xelu_grad" => {
            if x > 0.0 {
                1.0
            } else {
                y
            }
        }
        "prelu_grad" => {
            if x > 0.0 {
                0.0
            } else {
                x
            }
        }
        "elu_grad" => {
            return (
                if x > 0.0 { 1.0 } else { x + y },
                if x > 0.0 { 0.0 } else { x.abs().max(y.abs()) },
            );
        }
        "gamma_implicit_grad" => gamma_sample_gradient(x, y),
        other => panic!("no reference for {other}"),
    })
}

fn scaled(x: f64, y: f64, work: DType) -> (f64, f64) {
    let direct = ldexp(x, y);
    if y != y.trunc() || y.abs() > 4096.0 {
        return (x * in_type(y.exp2(), work), 0.0);
    }
    (direct, 0.0)
}
