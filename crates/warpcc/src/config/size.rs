//! Sizes as people write and read them.

use std::fmt;
use std::str::FromStr;

/// How large the cache may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxSize(Option<u64>);

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl MaxSize {
    /// 20 GiB: a few builds of a large CUDA project for all its architectures.
    pub const DEFAULT: Self = Self(Some(20 << 30));

    /// A limit of this many bytes; 0 is no limit.
    pub fn from_bytes(bytes: u64) -> Self {
        Self((bytes != 0).then_some(bytes))
    }

    /// The limit, or `None` for no limit.
    pub fn bytes(self) -> Option<u64> {
        self.0
    }
}

/// The text is not a size.
#[derive(Debug, PartialEq, Eq)]
pub struct NotASize;

impl FromStr for MaxSize {
    type Err = NotASize;

    /// `5G`, `500MiB`, `1.5 TB`, `1048576`. Like ccache and du, `G` and `GiB` are
    /// powers of 1024 and `GB` is a power of 1000.
    fn from_str(text: &str) -> Result<Self, NotASize> {
        let text = text.trim();
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: f64 = number.parse().map_err(|_| NotASize)?;
        let unit = unit.trim().to_ascii_lowercase();
        let (power, base) = match unit.as_str() {
            "" | "b" => (0, 1024_f64),
            "k" | "kib" => (1, 1024.0),
            "m" | "mib" => (2, 1024.0),
            "g" | "gib" => (3, 1024.0),
            "t" | "tib" => (4, 1024.0),
            "kb" => (1, 1000.0),
            "mb" => (2, 1000.0),
            "gb" => (3, 1000.0),
            "tb" => (4, 1000.0),
            _ => return Err(NotASize),
        };
        let bytes = number * base.powi(power);
        if bytes >= 9e18 {
            return Err(NotASize);
        }
        // Rounding up keeps "0.5B" a limit: only a written 0 means none.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        Ok(Self::from_bytes(bytes.ceil() as u64))
    }
}

impl fmt::Display for MaxSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => f.write_str(&format_bytes(bytes)),
            None => f.write_str("unlimited"),
        }
    }
}

/// `1.4 GiB`, in the largest unit that keeps the number at least 1.
pub fn format_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    // 1023.96 would round up to "1024.0".
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::{MaxSize, NotASize, format_bytes};

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("5G", 5 << 30),
            ("500MiB", 500 << 20),
            ("1.5 GiB", 3 << 29),
            ("2KB", 2000),
            ("1024", 1024),
            (" 1k ", 1024),
        ] {
            assert_eq!(text.parse(), Ok(MaxSize::from_bytes(bytes)), "{text}");
        }
        assert_eq!("0".parse::<MaxSize>().map(MaxSize::bytes), Ok(None));
        for text in [
            "",
            "G",
            "-1",
            "5 apples",
            "1e9",
            "5Gib/s",
            "5é",
            "é",
            "99999999999999T",
        ] {
            assert_eq!(text.parse::<MaxSize>(), Err(NotASize), "{text}");
        }
    }

    #[test]
    fn sizes_as_people_read_them() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (20 << 30, "20 GiB"),
            (1_500_000, "1.4 MiB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
        assert_eq!(format_bytes(u64::MAX), "16777216 TiB");
    }
}
