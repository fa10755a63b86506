//! Tells the user which binaries could not be read, or not as a whole, and why.

use warpcc_fatbin::{BinaryInput, FatbinError, Problem};

use crate::log;

/// Reports the errors and problems; true where there were any.
pub fn report<'p>(
    errors: &[FatbinError],
    problems: impl Iterator<Item = (&'p BinaryInput, &'p Problem)>,
) -> bool {
    for error in errors {
        log::warn(&error.to_string());
    }
    let mut any = !errors.is_empty();
    for (input, problem) in problems {
        any = true;
        let member = problem.member.as_deref();
        let member = member.map(|m| format!("({m})")).unwrap_or_default();
        log::warn(&format!(
            "{input}{member} at {:#x}: {}",
            problem.offset, problem.flaw
        ));
    }
    any
}
