//! Where an image was found.

/// The place where an image was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Found {
    /// In this process's memory.
    Memory,
    /// In a folder or a pack.
    Disk,
    /// In a shared cache.
    Shared,
    /// Nowhere: it was made.
    Made,
    /// In what the caller gave: machine code that came ready-made.
    Given,
}

impl Found {
    /// The place in a word, as in JSON and in Python: `memory`, `disk`, `shared`, `made`, `given`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Shared => "shared",
            Self::Made => "made",
            Self::Given => "given",
        }
    }
}
