//! Versions of NVIDIA's libraries.

use std::fmt;

/// A version of one of NVIDIA's libraries: 12.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 12 of 12.9.
    pub major: u32,
    /// 9 of 12.9.
    pub minor: u32,
}

impl Version {
    /// The version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The oldest version that is taken.
pub const OLDEST: Version = Version::new(12, 0);
