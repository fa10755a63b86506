//! The functions of whole numbers, in 128 bits.

use warpcc_kernels::dtype::DType;

use super::datum::wrap;

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn integer(name: &str, dtype: DType, v: &[i128]) -> i128 {
    let x = v[0];
    let y = v.get(1).copied().unwrap_or(0);
    let bits = 8 * dtype.size() as i128;
    match name {
        "identity" | "round_away" | "rint" | "floor" | "ceil" | "trunc" | "fix" => x,
        "negative" => -x,
        "abs" => x.abs(),
        "sign" => x.signum(),
        "square" => x.wrapping_mul(x),
        "zero" => 0,
        "one" => 1,
        "negone" => -1,
        "relu" => x.max(0),
        "bitwise_not" if dtype == DType::Bool => i128::from(x == 0),
        "bitwise_not" => !x,
        "add" => x + y,
        "sub" => x - y,
        "rsub" => y - x,
        "mul" => x.wrapping_mul(y),
        "floor_divide" | "mod" | "rfloor_divide" | "rmod" => {
            let (a, b) = if name.starts_with('r') {
                (y, x)
            } else {
                (x, y)
            };
            if b == 0 {
                return 0;
            }
            let down = a % b != 0 && (a < 0) != (b < 0);
            let floor = a / b - i128::from(down);
            if name.ends_with("mod") {
                a - floor * b
            } else {
                floor
            }
        }
        "fmod" | "rfmod" => {
            let (a, b) = if name == "fmod" { (x, y) } else { (y, x) };
            if b == 0 { 0 } else { a % b }
        }
        "power" | "rpower" => {
            let (base, exponent) = if name == "power" { (x, y) } else { (y, x) };
            if exponent < 0 {
                return match base {
                    1 => 1,
                    -1 if exponent % 2 == 0 => 1,
                    -1 => -1,
                    _ => 0,
                };
            }
            let (mut result, mut base, mut left) = (1i128, wrap(dtype, base), exponent);
            while left > 0 {
                if left & 1 == 1 {
                    result = wrap(dtype, result.wrapping_mul(base));
                }
                base = wrap(dtype, base.wrapping_mul(base));
                left >>= 1;
            }
            result
        }
        "max" | "fmax" => x.max(y),
        "min" | "fmin" => x.min(y),
        "copysign" => {
            if (x < 0) == (y < 0) {
                x
            } else {
                -x
            }
        }
        "rcopysign" => {
            if (x < 0) == (y < 0) {
                y
            } else {
                -y
            }
        }
        "bitwise_and" => x & y,
        "bitwise_or" => x | y,
        "bitwise_xor" => x ^ y,
        "left_shift" => {
            if (0..bits).contains(&y) {
                x << y
            } else {
                0
            }
        }
        "right_shift" => {
            if (0..bits).contains(&y) {
                x >> y
            } else {
                -i128::from(x < 0)
            }
        }
        "gcd" => gcd(x.abs(), y.abs()),
        "lcm" => {
            if x == 0 || y == 0 {
                0
            } else {
                (x.abs() / gcd(x.abs(), y.abs())).wrapping_mul(y.abs())
            }
        }
        "clip" => {
            if x < y {
                y
            } else if x > v[2] {
                v[2]
            } else {
                x
            }
        }
        "fma" => x.wrapping_mul(y).wrapping_add(v[2]),
        other => panic!("no integer reference for {other}"),
    }
}
