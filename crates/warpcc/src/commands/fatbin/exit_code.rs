//! The exit codes of `warpcc fatbin`.

/// All files were read, and fulfil the request.
pub const FINE: i32 = 0;
/// A file is damaged, differs, or does not fulfil the request.
pub const NOT_FINE: i32 = 1;
/// No file could be read or judged.
pub const FAILED: i32 = 2;

/// The code for so many files that were read, with trouble or without.
pub fn exit_code(read: usize, any_trouble: bool) -> i32 {
    match (read, any_trouble) {
        (_, false) => FINE,
        (0, true) => FAILED,
        (_, true) => NOT_FINE,
    }
}
