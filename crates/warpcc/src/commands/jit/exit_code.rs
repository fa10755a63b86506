//! The exit codes of `warpcc jit`.

/// All is well.
pub const FINE: i32 = 0;
/// There is something to fix.
pub const TO_FIX: i32 = 1;
/// Something could not be read or tried.
pub const FAILED: i32 = 2;
