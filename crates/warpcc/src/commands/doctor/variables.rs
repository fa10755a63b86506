//! The variables of the build's environment.

use std::ffi::OsStr;

use crate::process_context::ProcessContext;

/// A variable of the build's environment; `None` if it is empty.
pub fn variable<'a>(context: &'a ProcessContext, name: &str) -> Option<&'a OsStr> {
    let found = context.environment.iter().find(|(n, _)| n == name);
    found
        .map(|(_, value)| value.as_os_str())
        .filter(|value| !value.is_empty())
}
