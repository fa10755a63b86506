//! What every function must give: in double and in 128-bit integers, written apart from the device text.
//!
//! Used by the test that runs the device text on the host, and by `rtc-verify` on a GPU.
// tidy: long because every function's formula stands here once, beside the tolerances and types that it is judged by

use warpcc_rtc::kernels::dtype::{DType, Family};
use warpcc_rtc::kernels::functions::{Function, Gives};

/// An element's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum {
    /// Floating.
    F(f64),
    /// Whole, or a truth as 0 or 1.
    I(i128),
}

impl Datum {
    /// As double.
    pub fn real(self) -> f64 {
        match self {
            Self::F(value) => value,
            Self::I(value) => value as f64,
        }
    }

    /// As a whole number.
    pub fn real_or_whole(self) -> i128 {
        match self {
            Self::F(value) => value as i128,
            Self::I(value) => value,
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Self::F(value) => value == 0.0,
            Self::I(value) => value == 0,
        }
    }
}

/// A value and how far from it a result may be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The value in the compute type.
    pub value: Datum,
    /// The distance, on either side.
    pub error: f64,
    /// The compute type.
    pub dtype: DType,
}

/// The values of a floating type of 8 or 16 bits by their bits, the positive ones.
fn table(dtype: DType) -> &'static [f64] {
    use std::sync::OnceLock;
    static TABLES: [OnceLock<Vec<f64>>; 4] = [
        OnceLock::new(),
        OnceLock::new(),
        OnceLock::new(),
        OnceLock::new(),
    ];
    let (index, exponent, mantissa, last) = match dtype {
        DType::F16 => (0, 5, 10, 0x7bff),
        DType::BF16 => (1, 8, 7, 0x7f7f),
        DType::F8E4M3 => (2, 4, 3, 0x7e),
        _ => (3, 5, 2, 0x7b),
    };
    TABLES[index].get_or_init(|| {
        let bias = (1 << (exponent - 1)) - 1;
        (0..=last)
            .map(|bits: i32| {
                let (field, rest) = (bits >> mantissa, bits & ((1 << mantissa) - 1));
                let fraction = f64::from(rest) / f64::from(1 << mantissa);
                if field == 0 {
                    fraction * 2f64.powi(1 - bias)
                } else {
                    (1.0 + fraction) * 2f64.powi(field - bias)
                }
            })
            .collect()
    })
}

/// The element in `bytes`.
pub fn read(dtype: DType, bytes: &[u8]) -> Datum {
    macro_rules! int {
        ($t:ty) => {
            Datum::I(<$t>::from_ne_bytes(bytes.try_into().expect("its size")) as i128)
        };
    }
    match dtype {
        DType::Bool => Datum::I(i128::from(bytes[0] != 0)),
        DType::I8 => int!(i8),
        DType::U8 => int!(u8),
        DType::I16 => int!(i16),
        DType::U16 => int!(u16),
        DType::I32 => int!(i32),
        DType::U32 => int!(u32),
        DType::I64 => int!(i64),
        DType::U64 => int!(u64),
        DType::F32 => Datum::F(f64::from(f32::from_ne_bytes(
            bytes.try_into().expect("4 bytes"),
        ))),
        DType::F64 => Datum::F(f64::from_ne_bytes(bytes.try_into().expect("8 bytes"))),
        small => {
            let (bits, sign) = match bytes {
                [one] => (usize::from(*one & 0x7f), *one & 0x80 != 0),
                [low, high] => (
                    usize::from(u16::from_ne_bytes([*low, *high]) & 0x7fff),
                    high & 0x80 != 0,
                ),
                _ => unreachable!("one or two bytes"),
            };
            let table = table(small);
            let beyond = bits - table.len().min(bits);
            let infinite = !matches!(small, DType::F8E4M3) && bits == table.len();
            let magnitude = match table.get(bits) {
                Some(value) => *value,
                None if infinite && beyond == 0 => f64::INFINITY,
                None => f64::NAN,
            };
            Datum::F(if sign { -magnitude } else { magnitude })
        }
    }
}

/// A value as an element of a type, as double (exact, but for 64-bit integers, see `convert`).
fn to_float(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(value as f32),
        DType::F64 => value,
        small => {
            if value.is_nan() {
                return value;
            }
            let table = table(small);
            let magnitude = value.abs();
            let above = table.partition_point(|known| *known < magnitude);
            let last = *table.last().expect("not empty");
            let saturates = matches!(small, DType::F8E4M3 | DType::F8E5M2);
            let rounded = if above == 0 {
                0.0
            } else if above == table.len() {
                let step = last - table[table.len() - 2];
                if saturates || magnitude < last + step / 2.0 {
                    last
                } else {
                    f64::INFINITY
                }
            } else {
                let (low, high) = (table[above - 1], table[above]);
                let middle = low + (high - low) / 2.0;
                if magnitude < middle || (magnitude == middle && (above - 1) % 2 == 0) {
                    low
                } else {
                    high
                }
            };
            rounded.copysign(value)
        }
    }
}

/// The bytes of an element; the value is one of the type's.
pub fn write(dtype: DType, value: Datum, bytes: &mut Vec<u8>) {
    match (dtype, convert(dtype, value)) {
        (DType::F32, Datum::F(value)) => bytes.extend_from_slice(&(value as f32).to_ne_bytes()),
        (DType::F64, Datum::F(value)) => bytes.extend_from_slice(&value.to_ne_bytes()),
        (small, Datum::F(value)) => {
            let table = table(small);
            let last = match small {
                DType::F8E4M3 => 0x7f,
                DType::F8E5M2 => 0x7c,
                DType::F16 => 0x7c00,
                _ => 0x7f80,
            };
            let magnitude = if value.is_nan() {
                // Quiet: what a signalling one gives is each library's own affair.
                last | match small {
                    DType::F16 => 0x200,
                    DType::BF16 => 0x40,
                    DType::F8E5M2 => 2,
                    _ => 0,
                }
            } else if value.is_infinite() {
                last
            } else {
                table.partition_point(|known| *known < value.abs())
            };
            let sign = usize::from(value.is_sign_negative());
            if small.size() == 1 {
                bytes.push((magnitude | sign << 7) as u8);
            } else {
                bytes.extend_from_slice(&((magnitude | sign << 15) as u16).to_ne_bytes());
            }
        }
        (_, Datum::I(value)) => {
            bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size() as usize]);
        }
    }
}

/// Whether a result stands where it may, given what the output held before if it was added to.
pub fn is_right(result: Datum, expected: &Expected, output: DType, before: Option<Datum>) -> bool {
    let added = |value: Datum, direction: f64| -> Datum {
        let Some(before) = before else {
            return value;
        };
        let sum = output.compute().mixed(expected.dtype).number();
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
    };
    let (low, high) = match expected.value {
        Datum::F(value) if value.is_finite() => (
            convert(expected.dtype, Datum::F(value - expected.error)),
            convert(expected.dtype, Datum::F(value + expected.error)),
        ),
        other => (other, other),
    };
    let (low, high) = (added(low, -1.0), added(high, 1.0));
    let (least, most) = (convert(output, low), convert(output, high));
    if output == DType::Bool && low.real() <= 0.0 && high.real() >= 0.0 && low != high {
        return true;
    }
    match (result, least, most) {
        (Datum::F(result), Datum::F(least), Datum::F(most)) => {
            (result.is_nan() && (least.is_nan() || most.is_nan()))
                || (least <= result && result <= most)
        }
        (Datum::I(result), Datum::I(least), Datum::I(most)) => least <= result && result <= most,
        _ => false,
    }
}

/// Numbers that look random and are the same for one seed.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits (splitmix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// From 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Elements for a function: where it is only meant for some, these.
    pub fn elements(&mut self, name: &str, types: &[DType]) -> Vec<Datum> {
        let float = types.iter().all(|each| each.family() == Family::Float);
        if name == "gamma_implicit_grad" && float {
            let shape = (self.unit() * 12.0 - 6.0).exp2();
            let shape = convert(types[0], Datum::F(shape));
            let sample = shape.real() * (self.unit() * 4.0 - 2.0).exp();
            return vec![shape, convert(types[1], Datum::F(sample))];
        }
        if name == "gamma_implicit_grad" {
            let small = |value: u64, dtype| convert(dtype, Datum::I(i128::from(value)));
            return vec![
                small(1 + self.below(99), types[0]),
                small(self.below(100), types[1]),
            ];
        }
        let mut elements: Vec<Datum> = types.iter().map(|each| self.element(*each)).collect();
        if name.contains("copysign") {
            // Widening a NaN loses its sign on a GPU (PTX ISA, cvt), and nothing is promised of it.
            for (element, dtype) in elements.iter_mut().zip(types) {
                if element.real().is_nan() {
                    *element = convert(*dtype, Datum::F(-1.0));
                }
            }
        }
        elements
    }

    /// An element: special values often, and all magnitudes.
    pub fn element(&mut self, dtype: DType) -> Datum {
        const SPECIAL: [f64; 24] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.0,
            -2.0,
            0.5,
            -0.5,
            3.0,
            -3.0,
            1e-7,
            -1e-7,
            20.0,
            -20.0,
            88.0,
            -88.0,
            700.0,
            -700.0,
            1e-40,
            1e30,
            -1e30,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        if dtype.family() != Family::Float {
            let value = match self.below(4) {
                0 => self.bits() as i128,
                1 => self.below(17) as i128 - 8,
                2 => self.below(200) as i128 - 100,
                _ => [
                    i128::from(i64::MIN),
                    i128::from(i64::MAX),
                    127,
                    128,
                    -1,
                    32768,
                ][self.below(6) as usize],
            };
            return convert(dtype, Datum::I(value));
        }
        let value = match self.below(8) {
            0 => SPECIAL[self.below(24) as usize],
            1 => self.unit() * 2.0 - 1.0,
            2 | 3 => self.unit() * 8.0 - 4.0,
            4 => self.unit() * 200.0 - 100.0,
            5 => (self.below(41) as f64) - 20.0,
            6 => (self.unit() * 160.0 - 80.0).exp2() * if self.below(2) == 0 { 1.0 } else { -1.0 },
            _ => {
                let bytes = self.bits().to_ne_bytes();
                return read(dtype, &bytes[..dtype.size() as usize]);
            }
        };
        convert(dtype, Datum::F(value))
    }
}

/// Wraps to an integer type.
fn wrap(dtype: DType, value: i128) -> i128 {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool => i128::from(value != 0),
        _ if dtype.is_signed() => (value << (128 - bits)) >> (128 - bits),
        _ => value & ((1i128 << bits) - 1),
    }
}

/// A value in another type, as the device text's `convert` says.
pub fn convert(dtype: DType, value: Datum) -> Datum {
    match (dtype.family(), value) {
        (Family::Bool, value) => Datum::I(i128::from(!value.is_zero())),
        (Family::Integer, Datum::I(value)) => Datum::I(wrap(dtype, value)),
        (Family::Integer, Datum::F(value)) => {
            let (low, high) = if dtype.is_signed() {
                let half = 1i128 << (8 * dtype.size() - 1);
                (-half, half - 1)
            } else {
                (0, (1i128 << (8 * dtype.size())) - 1)
            };
            Datum::I((value as i128).clamp(low, high))
        }
        (Family::Float, Datum::F(value)) => Datum::F(to_float(dtype, value)),
        (Family::Float, Datum::I(value)) => Datum::F(match dtype {
            DType::F32 => f64::from(value as f32),
            DType::F64 => value as f64,
            // A double that is not exact could become a tie: its last bit says that it is not.
            _ => {
                let near = value as f64;
                let bits = near.to_bits();
                let sticky = near as i128 != value && bits & 1 == 0;
                let away = (near as i128).abs() > value.abs();
                let odd = match (sticky, away) {
                    (false, _) => near,
                    (true, true) => f64::from_bits(bits - 1),
                    (true, false) => f64::from_bits(bits + 1),
                };
                to_float(dtype, odd)
            }
        }),
    }
}

/// What the function gives for arguments of these types.
pub fn expected(function: &Function, types: &[DType], values: &[Datum]) -> Expected {
    let mixed = types.iter().copied().reduce(DType::mixed).expect("some");
    let dtype = function.value_of(types).expect("it takes them");
    let name = function.name;
    let exact = |value| Expected {
        value,
        error: 0.0,
        dtype,
    };
    let work = match function.gives {
        Gives::Truth => mixed.compute(),
        _ => dtype,
    };
    match name {
        "left" => return exact(values[0]),
        "right" => return exact(values[1]),
        "where" => {
            let chosen = if values[0].is_zero() { 2 } else { 1 };
            return exact(convert(dtype, values[chosen]));
        }
        "logical_and" | "logical_or" | "logical_xor" => {
            let (x, y) = (!values[0].is_zero(), !values[1].is_zero());
            let value = match name {
                "logical_and" => x && y,
                "logical_or" => x || y,
                _ => x != y,
            };
            return exact(Datum::I(i128::from(value)));
        }
        "backward_clip" => {
            let inner = types[1..].iter().copied().reduce(DType::mixed).expect("3");
            let v: Vec<Datum> = values[1..]
                .iter()
                .map(|each| convert(inner.compute(), *each))
                .collect();
            let out = match (v[0], v[1], v[2]) {
                (Datum::I(x), Datum::I(low), Datum::I(high)) => x < low || x > high,
                _ => v[0].real() < v[1].real() || v[0].real() > v[2].real(),
            };
            return exact(if out {
                Datum::F(0.0)
            } else {
                convert(dtype, values[0])
            });
        }
        _ => {}
    }
    let given: Vec<Datum> = values.iter().map(|each| convert(work, *each)).collect();
    if let Gives::Truth = function.gives {
        return exact(Datum::I(i128::from(truth(name, &given))));
    }
    let whole = |datum: &Datum| match datum {
        Datum::I(value) => *value,
        Datum::F(_) => unreachable!("an integer compute type"),
    };
    if work.family() == Family::Float {
        let reals: Vec<f64> = given.iter().map(|each| each.real()).collect();
        if mixed.family() != Family::Float && matches!(name, "mod_grad" | "mod_rgrad" | "rmod_grad")
        {
            return exact(Datum::F(0.0));
        }
        let (value, scale) = real(name, &reals, work);
        let unit = if work == DType::F32 {
            f64::from(f32::EPSILON)
        } else {
            f64::EPSILON
        };
        let least = if work == DType::F32 { 1.5e-45 } else { 5e-324 };
        let size = value.abs().max(scale.abs());
        let error = if size.is_finite() {
            // What is subnormal on the way has lost digits that a factor brings to light.
            let factor = reals
                .iter()
                .filter(|v| v.is_finite())
                .fold(1.0, |m: f64, v| m.max(v.abs()));
            units(name, &reals, work) * (unit * size + least * factor)
        } else {
            0.0
        };
        return Expected {
            value: Datum::F(value),
            error,
            dtype,
        };
    }
    let wholes: Vec<i128> = given.iter().map(whole).collect();
    exact(Datum::I(wrap(work, integer(name, work, &wholes))))
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

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn integer(name: &str, dtype: DType, v: &[i128]) -> i128 {
    let x = v[0];
    let y = v.get(1).copied().unwrap_or(0);
    let bits = 8 * dtype.size() as i128;
    match name {
        "identity" | "round" | "rint" | "floor" | "ceil" | "trunc" | "fix" => x,
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

const LN_2: f64 = std::f64::consts::LN_2;
const PI: f64 = std::f64::consts::PI;

fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        x.exp() / (1.0 + x.exp())
    }
}

fn softplus(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp().ln_1p() }
}

fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / 2f64.sqrt())
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// 0 times anything is 0 here: what vanishes wins.
fn vanishing(x: f64, factor: f64) -> f64 {
    if factor == 0.0 { 0.0 } else { x * factor }
}

fn digamma(x: f64) -> f64 {
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

fn trigamma(x: f64) -> f64 {
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

fn erfinv(x: f64) -> f64 {
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
fn gamma_sample_gradient(a: f64, x: f64) -> f64 {
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

fn python_mod(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

fn floor_divide(a: f64, b: f64) -> f64 {
    if b == 0.0 || a.is_infinite() || a.is_nan() || b.is_nan() {
        // What is left of an infinite a is NaN, and so is the quotient.
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

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}

fn ldexp(x: f64, y: f64) -> f64 {
    if y == y.trunc() && y.abs() <= 4096.0 {
        libm::scalbn(x, y as i32)
    } else {
        x * y.exp2()
    }
}

/// The value, and where terms cancel the size of what cancels.
fn real(name: &str, v: &[f64], work: DType) -> (f64, f64) {
    let x = v[0];
    let y = v.get(1).copied().unwrap_or(0.0);
    let z = v.get(2).copied().unwrap_or(0.0);
    let plain = |value: f64| (value, 0.0);
    if let Some(of) = name.strip_prefix("backward_") {
        return plain(backward(of, x, y, work));
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
        "round" => x.round(),
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
        // Around its zeros what cancels counts; the reference has no series of its own there.
        "digamma" => {
            let close = (1.0..2.0).contains(&x) && work == DType::F64;
            return (digamma(x), if x < 0.0 || close { 4.0 } else { 0.0 });
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
        "fma" => return (in_type_if_far(x * y, work) + z, (x * y).abs().max(z.abs())),
        "lerp" => {
            return (
                x + z * in_type(y - x, work),
                (z * (y - x)).abs().max(x.abs()),
            );
        }
        "hard_sigmoid" => {
            let inner = in_type_if_far(x * y, work) + z;
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

/// What a step in between becomes in the compute type: infinite, or zero, sooner than in double.
fn in_type(value: f64, work: DType) -> f64 {
    if work == DType::F32 {
        f64::from(value as f32)
    } else {
        value
    }
}

/// A product that may stay unrounded (a fused multiply and add), but for what overflows.
fn in_type_if_far(value: f64, work: DType) -> f64 {
    if work == DType::F32 && (value.abs() as f32).is_infinite() {
        in_type(value, work)
    } else {
        value
    }
}

fn scaled(x: f64, y: f64, work: DType) -> (f64, f64) {
    let direct = ldexp(x, y);
    if y != y.trunc() || y.abs() > 4096.0 {
        return (x * in_type(y.exp2(), work), 0.0);
    }
    (direct, 0.0)
}

fn backward(of: &str, g: f64, x: f64, work: DType) -> f64 {
    // What is infinite or zero in the compute type is so before the gradient meets it.
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

/// How many units in the last place a result may be off, beside what is stated in CUDA's guide for
/// the functions it is made of.
fn units(name: &str, v: &[f64], work: DType) -> f64 {
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
        // What is rounded before an exponential grows with its argument.
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
