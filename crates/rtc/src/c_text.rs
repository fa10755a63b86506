//! Texts for C: with a zero at the end, and none inside.

use std::ffi::CString;

use crate::error::Error;

/// A text for C, which ends at its first NUL.
pub(crate) fn c_text(argument: &str, bytes: &[u8]) -> Result<CString, Error> {
    CString::new(bytes).map_err(|error| {
        let at = error.nul_position();
        let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
        Error::invalid(
            argument,
            format!(
                "it has a NUL at byte {at} (line {line}), where the compiler would stop reading"
            ),
        )
    })
}

/// A text with a zero at its end. A text from a file or from NVRTC may have it already.
pub(crate) fn with_zero(argument: &str, mut text: &[u8]) -> Result<CString, Error> {
    while let [rest @ .., 0] = text {
        text = rest;
    }
    c_text(argument, text)
}
