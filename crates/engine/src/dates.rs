//! The macros that stand for the time of a compilation: `__DATE__`, `__TIME__`, `__TIMESTAMP__`.

const MACROS: [&[u8]; 3] = [b"__DATE__", b"__TIME__", b"__TIMESTAMP__"];

/// Whether a text names one of them.
pub fn are_named_in(text: &[u8]) -> bool {
    MACROS
        .iter()
        .any(|name| memchr::memmem::find(text, name).is_some())
}
