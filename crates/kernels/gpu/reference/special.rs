//! Functions that neither std nor libm has, in double.

pub(super) const LN_2: f64 = std::f64::consts::LN_2;
pub(super) const PI: f64 = std::f64::consts::PI;

pub(super) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        x.exp() / (1.0 + x.exp())
    }
}

pub(super) fn softplus(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp().ln_1p() }
}

pub(super) fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / 2f64.sqrt())
}

pub(super) fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// 0 times anything is 0 here: what vanishes wins.
pub(super) fn vanishing(x: f64, factor: f64) -> f64 {
    if factor == 0.0 { 0.0 } else { x * factor }
}

pub(super) fn digamma(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x == f64::INFINITY {
        return x;
    }
    if x < 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / (PI * (x - x.round())).tan();
    }
    if (1.0..2.0).contains(&x) {
        return digamma_by_its_root(x);
    }
    // Recurrence up to 40, added from the small end, then the asymptotic series.
    let steps = (40.0 - x).max(0.0).ceil();
    let far = x + steps;
    let below: f64 = (0..steps as i32)
        .rev()
        .map(|k| 1.0 / (x + f64::from(k)))
        .sum();
    let s = 1.0 / (far * far);
    far.ln()
        - 0.5 / far
        - s * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s / 240.0)))
        - below
}

/// The only positive root of digamma, in two parts.
pub(super) const ROOT: (f64, f64) = (1.4616321449683622, 9.549995429965697e-17);

/// Nothing cancels: digamma(x) - digamma(r) = (x - r) times the sum of 1 / ((k + x) (k + r)) over k from 0 (DLMF 5.7.6), its
/// far part by Euler and Maclaurin (DLMF 2.10.1).
fn digamma_by_its_root(x: f64) -> f64 {
    const NEAR: u32 = 200;
    let (root, beyond) = ROOT;
    let apart = (x - root) - beyond;
    let term = |k: u32| 1.0 / ((f64::from(k) + x) * (f64::from(k) + root));
    let near: f64 = (0..NEAR).rev().map(term).sum();
    let (from, middle) = (f64::from(NEAR) + root, f64::from(NEAR) + 0.5 * (x + root));
    let integral = if apart == 0.0 {
        1.0 / from
    } else {
        (apart / from).ln_1p() / apart
    };
    let last = term(NEAR);
    let (first, third) = (-2.0 * middle * last.powi(2), -24.0 / middle.powi(5));
    apart * (near + (integral + 0.5 * last - first / 12.0 + third / 720.0))
}

pub(super) fn trigamma(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    if x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x <= 0.0 {
        if x == x.floor() {
            return f64::INFINITY;
        }
        let sine = (PI * (x - x.round())).sin();
        return (PI / sine).powi(2) - trigamma(1.0 - x);
    }
    let steps = (40.0 - x).max(0.0).ceil();
    let far = x + steps;
    let below: f64 = (0..steps as i32)
        .rev()
        .map(|k| (x + f64::from(k)).powi(-2))
        .sum();
    let i = 1.0 / far;
    let s = i * i;
    i + 0.5 * s + i * s * (1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0 - s / 30.0))) + below
}

pub(super) fn erfinv(x: f64) -> f64 {
    if !(-1.0..=1.0).contains(&x) {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    if x == 0.0 {
        return x;
    }
    // Winitzki's start, then Newton's steps on the small side.
    let (sign, q) = (x.signum(), 1.0 - x.abs());
    let l = ((1.0 - x) * (1.0 + x)).ln();
    let a = 2.0 / (PI * 0.147) + l / 2.0;
    let mut y = ((a * a - l / 0.147).sqrt() - a).sqrt();
    if x.abs() < 1e-8 {
        return x * PI.sqrt() / 2.0;
    }
    for _ in 0..6 {
        let slope = 2.0 / PI.sqrt() * (-y * y).exp();
        let miss = if y < 0.5 {
            libm::erf(y) - x.abs()
        } else {
            q - libm::erfc(y)
        };
        y -= miss / slope / (1.0 + y * miss / slope);
    }
    sign * y
}

/// The lower incomplete gamma function's derivative by its shape, by differences of high order.
pub(super) fn gamma_sample_gradient(a: f64, x: f64) -> f64 {
    if !(a > 0.0 && x >= 0.0) || a.is_infinite() || x.is_infinite() {
        return f64::NAN;
    }
    if x == 0.0 {
        return 0.0;
    }
    // ln of P, or of Q where that is the small one.
    let upper = x >= a + 1.0;
    let log_of = |a: f64| -> f64 {
        if upper {
            // From the far end of the continued fraction, forwards to its head.
            let mut tail = 0.0;
            for i in (1..400).rev() {
                let i = f64::from(i);
                tail = i * (i - a) / (x + 2.0 * i + 1.0 - a - tail);
            }
            a * x.ln() - x - libm::lgamma(a) - (x + 1.0 - a - tail).ln()
        } else {
            let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, 1.0);
            while term > sum * 1e-18 {
                term *= x / (a + n);
                sum += term;
                n += 1.0;
            }
            a * x.ln() - x - libm::lgamma(a) + sum.ln()
        }
    };
    let h = 1e-3 * a;
    let slope = (8.0 * (log_of(a + h) - log_of(a - h))
        - (log_of(a + 2.0 * h) - log_of(a - 2.0 * h)))
        / (12.0 * h);
    let log_density = (a - 1.0) * x.ln() - x - libm::lgamma(a);
    let ratio = (log_of(a) - log_density).exp();
    if upper { slope * ratio } else { -slope * ratio }
}

pub(super) fn python_mod(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

pub(super) fn floor_divide(a: f64, b: f64) -> f64 {
    if b == 0.0 || a.is_infinite() || a.is_nan() || b.is_nan() {
        // The remainder of an infinite a is NaN, and so is the quotient.
        return if a.is_infinite() && b != 0.0 {
            f64::NAN
        } else {
            a / b
        };
    }
    if b.is_infinite() {
        return if a == 0.0 || (a < 0.0) == (b < 0.0) {
            0.0
        } else {
            -1.0
        };
    }
    let rest = a % b;
    let quotient = ((a - rest) / b).round();
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        quotient - 1.0
    } else {
        quotient
    }
}

pub(super) fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}

pub(super) fn ldexp(x: f64, y: f64) -> f64 {
    if y == y.trunc() && y.abs() <= 4096.0 {
        libm::scalbn(x, y as i32)
    } else {
        x * y.exp2()
    }
}
