//! Element types: how each is stored, in which type it is computed, and the result of two of them.

use std::fmt;
use std::str::FromStr;

/// A type of stored elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// One byte: 0 is false, all else true; written as 0 or 1.
    Bool,
    /// 8 bits with a sign.
    I8,
    /// 8 bits without.
    U8,
    /// 16 bits with a sign.
    I16,
    /// 16 bits without.
    U16,
    /// 32 bits with a sign.
    I32,
    /// 32 bits without.
    U32,
    /// 64 bits with a sign.
    I64,
    /// 64 bits without.
    U64,
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// OCP 8-bit, 4 bits of exponent: no infinity, largest 448.
    F8E4M3,
    /// OCP 8-bit, 5 bits of exponent: largest finite 57344.
    F8E5M2,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

/// The families of types. When types are mixed, a later family wins over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// True or false.
    Bool,
    /// Whole numbers that wrap.
    Integer,
    /// Floating point.
    Float,
}

impl DType {
    /// Every type.
    pub const ALL: [Self; 15] = [
        Self::Bool,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F16,
        Self::BF16,
        Self::F8E4M3,
        Self::F8E5M2,
        Self::F32,
        Self::F64,
    ];

    /// Its bytes: 1, 2, 4 or 8.
    #[must_use]
    pub fn size(self) -> u64 {
        match self {
            Self::Bool | Self::I8 | Self::U8 | Self::F8E4M3 | Self::F8E5M2 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Its name, as NumPy and `ml_dtypes` say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F8E4M3 => "float8_e4m3",
            Self::F8E5M2 => "float8_e5m2",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// The device text's name of the type as it is stored.
    #[must_use]
    pub fn device(self) -> &'static str {
        match self {
            Self::Bool => "warpcc::boolean",
            Self::I8 => "warpcc::int8",
            Self::U8 => "warpcc::uint8",
            Self::I16 => "warpcc::int16",
            Self::U16 => "warpcc::uint16",
            Self::I32 => "warpcc::int32",
            Self::U32 => "warpcc::uint32",
            Self::I64 => "warpcc::int64",
            Self::U64 => "warpcc::uint64",
            Self::F16 => "warpcc::half",
            Self::BF16 => "warpcc::bfloat16",
            Self::F8E4M3 => "warpcc::float8_e4m3",
            Self::F8E5M2 => "warpcc::float8_e5m2",
            Self::F32 => "float",
            Self::F64 => "double",
        }
    }

    /// Its family.
    #[must_use]
    pub fn family(self) -> Family {
        match self {
            Self::Bool => Family::Bool,
            Self::I8
            | Self::U8
            | Self::I16
            | Self::U16
            | Self::I32
            | Self::U32
            | Self::I64
            | Self::U64 => Family::Integer,
            _ => Family::Float,
        }
    }

    /// Whether it has a sign. Bool has none.
    #[must_use]
    pub fn is_signed(self) -> bool {
        !matches!(
            self,
            Self::Bool | Self::U8 | Self::U16 | Self::U32 | Self::U64
        )
    }

    fn integer(bits: u64, signed: bool) -> Self {
        match (bits, signed) {
            (8, true) => Self::I8,
            (8, false) => Self::U8,
            (16, true) => Self::I16,
            (16, false) => Self::U16,
            (32, true) => Self::I32,
            (32, false) => Self::U32,
            (_, true) => Self::I64,
            (_, false) => Self::U64,
        }
    }

    /// The type in which it is computed: half, bfloat16 and fp8 in float, all others in their own type.
    #[must_use]
    pub fn compute(self) -> Self {
        match self {
            Self::F16 | Self::BF16 | Self::F8E4M3 | Self::F8E5M2 => Self::F32,
            other => other,
        }
    }

    /// The compute type of functions whose values are not whole: float for what float holds
    /// exactly, double for integers of 32 bits and more.
    #[must_use]
    pub fn real(self) -> Self {
        match self.family() {
            Family::Float => self.compute(),
            _ if self.size() <= 2 => Self::F32,
            _ => Self::F64,
        }
    }

    /// The compute type of arithmetic: bool counts as int32.
    #[must_use]
    pub fn number(self) -> Self {
        match self {
            Self::Bool => Self::I32,
            other => other.compute(),
        }
    }

    /// The type of a sum over many values: integers in 64 bits.
    #[must_use]
    pub fn accumulate(self) -> Self {
        match self.family() {
            Family::Float => self.compute(),
            _ if self.is_signed() => Self::I64,
            _ => Self::U64,
        }
    }

    /// The type of a mix of two: floating before integer before bool, and the wider of two in one family. If neither
    /// holds all values of the other, the next wider one that does (int64 and float at most).
    #[must_use]
    pub fn mixed(self, other: Self) -> Self {
        let (a, b) = (self.family(), other.family());
        if a != b {
            return if a > b { self } else { other };
        }
        let (wide, narrow) = if self.size() >= other.size() {
            (self, other)
        } else {
            (other, self)
        };
        match a {
            Family::Bool => Self::Bool,
            Family::Float if self == other => self,
            Family::Float if wide.size() == narrow.size() => Self::F32,
            Family::Float => wide,
            Family::Integer => {
                let (signs, bits) = (wide.is_signed() != narrow.is_signed(), 8 * wide.size());
                let fits = !signs || (wide.is_signed() && wide.size() > narrow.size());
                let signed = wide.is_signed() || narrow.is_signed();
                Self::integer(if fits { bits } else { (2 * bits).min(64) }, signed)
            }
        }
    }

    /// Whether it can hold a whole number. Floating types round, so they hold any.
    #[must_use]
    pub fn holds(self, value: i64) -> bool {
        match self {
            Self::Bool => value == 0 || value == 1,
            Self::I8 => i8::try_from(value).is_ok(),
            Self::U8 => u8::try_from(value).is_ok(),
            Self::I16 => i16::try_from(value).is_ok(),
            Self::U16 => u16::try_from(value).is_ok(),
            Self::I32 => i32::try_from(value).is_ok(),
            Self::U32 => u32::try_from(value).is_ok(),
            Self::U64 => value >= 0,
            _ => true,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no type has.
#[derive(Debug, thiserror::Error)]
#[error(
    "unknown type {0:?}; known types are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float8_e4m3, float8_e5m2, float32 and float64"
)]
pub struct UnknownType(String);

impl FromStr for DType {
    type Err = UnknownType;

    fn from_str(name: &str) -> Result<Self, UnknownType> {
        Self::ALL
            .into_iter()
            .find(|known| known.name() == name)
            .ok_or_else(|| UnknownType(name.to_owned()))
    }
}
