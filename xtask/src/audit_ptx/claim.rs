//! What the audit claims.

/// What is claimed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The two halves write what the whole writes.
    Halves,
    /// Equal bitcode makes equal PTX.
    Bitcode,
    /// Equal device text makes equal PTX.
    DeviceText,
}

impl Claim {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Halves, Self::Bitcode, Self::DeviceText];

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Halves => "halves",
            Self::Bitcode => "bitcode",
            Self::DeviceText => "device-text",
        }
    }
}
