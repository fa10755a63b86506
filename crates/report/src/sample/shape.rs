//! How large a sample build is.

/// The shape of a made-up build.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Calls.
    pub calls: usize,
    /// Architectures, such as `90a`.
    pub architectures: Vec<String>,
    /// Processor slots.
    pub slots: u32,
    /// Memory for all tasks together, KiB.
    pub memory_kib: u64,
    /// Calls the build tool has at once.
    pub jobs: usize,
    /// Of a thousand calls, how many are answered as a whole.
    pub direct_hits: u64,
    /// Another number, another build.
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            calls: 240,
            architectures: ["80", "90a", "100a", "120"].map(Into::into).to_vec(),
            slots: 16,
            memory_kib: 40 << 20,
            jobs: 32,
            direct_hits: 300,
            seed: 1,
        }
    }
}
