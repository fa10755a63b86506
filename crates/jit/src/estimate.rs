//! Estimates the cost of compiling PTX if no `ptxas` can measure it. The ratios were measured.

use serde::Serialize;

/// The cost of a text, measured or estimated.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cost {
    /// Machine code, in bytes.
    pub cubin_bytes: u64,
    /// Seconds of processors.
    pub seconds: f64,
}

/// Bytes of machine code for 100 bytes of PTX.
const CUBIN_PER_100: u64 = 60;
/// And for the text as such: an ELF file's tables.
const CUBIN_LEAST: u64 = 2200;
/// Seconds for a megabyte of PTX.
const SECONDS_PER_MEGABYTE: f64 = 2.0;
/// And for the text as such.
const SECONDS_LEAST: f64 = 0.02;

/// The cost of a text of this many bytes: the middle of what was measured of shipped libraries,
/// which reaches from a third of the size and a tenth of the time to a little more than both (see
/// `docs/jit.md`).
pub fn estimate(ptx_bytes: u64) -> Cost {
    Cost {
        cubin_bytes: CUBIN_LEAST.saturating_add(ptx_bytes.saturating_mul(CUBIN_PER_100) / 100),
        seconds: SECONDS_LEAST + ptx_bytes as f64 / 1e6 * SECONDS_PER_MEGABYTE,
    }
}
