//! C++ names of kernels as people wrote them.

use std::fmt::{self, Write};

/// Names come from files: what one may unfold into is bounded.
const LONGEST: usize = 64 << 10;
const DEEPEST: u32 = 192;

/// The demangled name; what is not mangled, or in an unknown way, stays as it is.
pub fn demangle(name: &str) -> String {
    if !name.starts_with("_Z") || name.len() > LONGEST {
        return name.to_owned();
    }
    let parsing = cpp_demangle::ParseOptions::default().recursion_limit(DEEPEST);
    let writing = cpp_demangle::DemangleOptions::new().recursion_limit(DEEPEST);
    let mut out = Bounded(String::new());
    let done = cpp_demangle::Symbol::new_with_options(name, &parsing)
        .ok()
        .and_then(|symbol| symbol.structured_demangle(&mut out, &writing).ok());
    match done {
        Some(()) => out.0,
        None => name.to_owned(),
    }
}

/// Substitutions can double a name with every few letters.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_are_demangled_or_left() {
        assert_eq!(demangle("_Z5scalePffi"), "scale(float*, float, int)");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_Zbroken"), "_Zbroken");
    }
}
