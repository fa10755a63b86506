//! Images on a GPU: contexts, modules and functions, by cudarc. The only part that needs a driver.

/// What the driver answered, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({number}){advice}")]
pub struct DriverError {
    /// What was asked of it.
    pub call: String,
    /// The number in `cuda.h`.
    pub number: u32,
    /// The name in `cuda.h`.
    pub name: String,
    /// What to do, where that is known.
    pub advice: String,
}
