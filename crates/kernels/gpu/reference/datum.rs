//! An element's value apart from its type: read from bytes, written to them, and converted as the device text does.

use warpcc_kernels::dtype::{DType, Family};

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

    pub(super) fn is_zero(self) -> bool {
        match self {
            Self::F(value) => value == 0.0,
            Self::I(value) => value == 0,
        }
    }
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

/// Wraps to an integer type.
pub(super) fn wrap(dtype: DType, value: i128) -> i128 {
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
