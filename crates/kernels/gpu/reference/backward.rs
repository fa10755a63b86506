//! The gradients of functions of real numbers, in double.

use warpcc_kernels::dtype::DType;

use super::compute_type::in_type;
use super::special::*;

pub(super) fn backward(of: &str, g: f64, x: f64, work: DType) -> f64 {
    // Values that are infinite or zero in the compute type become so before they are multiplied by the gradient.
    let t = |value: f64| in_type(value, work);
    match of {
        "relu" => {
            if x.is_nan() {
                x
            } else if x > 0.0 {
                g
            } else {
                0.0
            }
        }
        "sigmoid" => t(g * x) * t(1.0 - x),
        "log_sigmoid" => g * t(sigmoid(-x)),
        "softrelu" => g * t(sigmoid(x)),
        "softsign" => g / t((1.0 + x.abs()).powi(2)),
        "abs" => g * sign(x),
        "exp" | "expm1" => g * t(x.exp()),
        "exp2" => t(g * t(x.exp2())) * LN_2,
        "log" => g / x,
        "log10" => g / t(x * std::f64::consts::LN_10),
        "log2" => g / t(x * LN_2),
        "log1p" => g / (1.0 + x),
        "sin" => g * x.cos(),
        "cos" => -g * x.sin(),
        "tan" => g * t(x * x + 1.0),
        "arcsin" => g / t((1.0 - x) * (1.0 + x)).sqrt(),
        "arccos" => -g / t((1.0 - x) * (1.0 + x)).sqrt(),
        "arctan" => g / t(1.0 + x * x),
        "degrees" => g * (180.0 / PI),
        "radians" => g * (PI / 180.0),
        "sinh" => g * t(x.cosh()),
        "cosh" => g * t(x.sinh()),
        "tanh" => t(g * (1.0 - x)) * (1.0 + x),
        "arcsinh" => g / x.hypot(1.0),
        "arccosh" => g / ((x - 1.0).sqrt() * (x + 1.0).sqrt()),
        "arctanh" => g / t((1.0 - x) * (1.0 + x)),
        "sqrt" => 0.5 * g / x,
        "rsqrt" => t(-0.5 * g / x.sqrt()) / x,
        "cbrt" => g / t(3.0 * x * x),
        "rcbrt" => t(g / x.cbrt()) / t(-3.0 * x),
        "square" => t(2.0 * x) * g,
        "reciprocal" => -t(g / x) / x,
        "erf" => g * t(2.0 / PI.sqrt() * (-x * x).exp()),
        "erfinv" => g * t(PI.sqrt() / 2.0 * t((x * x).exp())),
        "gamma" => {
            g * t(t(if x < 0.0 && x == x.floor() {
                f64::NAN
            } else {
                libm::tgamma(x)
            }) * t(digamma(x)))
        }
        "gammaln" => g * t(digamma(x)),
        "digamma" => g * t(trigamma(x)),
        "mish" => {
            let t = softplus(x).tanh();
            g * in_type(t + vanishing(x, sigmoid(x) * (1.0 - t) * (1.0 + t)), work)
        }
        "silu" => g * t(sigmoid(x) + vanishing(x, sigmoid(x) * sigmoid(-x))),
        "gelu" => g * t(normal(x) + vanishing(x, density(x))),
        "gelu_tanh" => {
            let u = 2.0 * (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x);
            let slope = 2.0 * (2.0 / PI).sqrt() * (1.0 + 3.0 * 0.044715 * x * x);
            let d = sigmoid(u) * sigmoid(-u);
            g * t(sigmoid(u) + if d == 0.0 { 0.0 } else { x * slope * d })
        }
        "selu" if x > 0.0 => g * 1.050_700_987_355_480_5,
        "selu" => g * t(1.050_700_987_355_480_5 * 1.673_263_242_354_377_2 * x.exp()),
        other => panic!("no reference for backward_{other}"),
    }
}

/// Whether an infinite gradient meets a slope so small that it may be lost on the way: infinite is right then, and NaN.
pub(super) fn may_be_lost(name: &str, v: &[f64], work: DType) -> bool {
    let (Some(of), &[g, x]) = (name.strip_prefix("backward_"), v) else {
        return false;
    };
    let smallest = if work == DType::F32 { 1e-36 } else { 1e-306 };
    g.is_infinite() && {
        let slope = backward(of, 1.0, x, DType::F64).abs();
        slope != 0.0 && slope < smallest
    }
}

/// One of the two terms that cancel where a slope crosses zero; of slopes that do not, 0.
pub(super) fn crossing(of: &str, x: f64) -> f64 {
    match of {
        "mish" => softplus(x).tanh(),
        "silu" => sigmoid(x),
        "gelu" => normal(x),
        "gelu_tanh" => sigmoid(2.0 * (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)),
        // Digamma, which below 0 is that of 1 - x less a cotangent.
        "gamma" if x < 0.0 => (libm::tgamma(x) * digamma(1.0 - x)).abs(),
        "gammaln" if x < 0.0 => digamma(1.0 - x).abs(),
        _ => 0.0,
    }
}
