//! C++ names of kernels as people wrote them.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::work;

/// Names come from files, so the length of a demangled name is limited.
const LONGEST: usize = 64 << 10;
/// A text that is almost a name takes the parser twice as long with each argument list in another: a tenth of a second at
/// this depth. Ten lists in each other fit, and all names of bitsandbytes at half of it.
const DEEPEST: u32 = 96;
/// The number of invalid names that a process tries to demangle. nvcc writes only valid ones.
const MOST_FAILED: u32 = 64;
/// The cost of an attempt, in addition to what it writes.
const ATTEMPT: usize = 1 << 10;

static FAILED: AtomicU32 = AtomicU32::new(0);

/// How many times longer than the mangled name a name may be, plus some bytes. Names of CUTLASS become 20 times as
/// long.
const GROWTH: usize = 64;
const LEAST: usize = 1024;

/// The demangled name. A name that is not mangled, or in an unknown way, stays as it is.
pub fn demangle(name: &str) -> String {
    if !name.starts_with("_Z") || name.len() > LONGEST {
        return name.to_owned();
    }
    let parsing = cpp_demangle::ParseOptions::default().recursion_limit(DEEPEST);
    let writing = cpp_demangle::DemangleOptions::new().recursion_limit(DEEPEST);
    written(name, &parsing, &writing).unwrap_or_else(|| name.to_owned())
}

/// The template that a function is made from: its demangled name without result and parameters, up to the first `<`. The
/// whole name where it is not made from a template.
pub fn template_family(name: &str) -> String {
    let short = match name.starts_with("_Z") && name.len() <= LONGEST {
        true => {
            let parsing = cpp_demangle::ParseOptions::default().recursion_limit(DEEPEST);
            let writing = cpp_demangle::DemangleOptions::new()
                .no_params()
                .no_return_type()
                .recursion_limit(DEEPEST);
            written(name, &parsing, &writing)
        }
        false => None,
    };
    let short = short.unwrap_or_else(|| name.to_owned());
    // In the name of `operator<` itself no argument list begins.
    let (named, after) = short.find("operator").map_or((0, 0), |at| {
        let rest = short[at + "operator".len()..].trim_start_matches(['<', '=', '>', '-']);
        (at, short.len() - rest.len())
    });
    let end = short[..named].find('<').or_else(|| {
        let found = short[after..].find('<');
        found.map(|at| after + at)
    });
    short[..end.unwrap_or(short.len())].trim_end().to_owned()
}

fn written(
    name: &str,
    parsing: &cpp_demangle::ParseOptions,
    writing: &cpp_demangle::DemangleOptions,
) -> Option<String> {
    if FAILED.load(Ordering::Relaxed) >= MOST_FAILED {
        return None;
    }
    work::count(ATTEMPT);
    let done = attempt(name, parsing, writing);
    if done.is_none() {
        FAILED.fetch_add(1, Ordering::Relaxed);
    }
    done
}

fn attempt(
    name: &str,
    parsing: &cpp_demangle::ParseOptions,
    writing: &cpp_demangle::DemangleOptions,
) -> Option<String> {
    let mut out = Bounded {
        text: String::new(),
        most: LONGEST.min(name.len() * GROWTH + LEAST),
    };
    let symbol = cpp_demangle::Symbol::new_with_options(name, parsing).ok()?;
    symbol.structured_demangle(&mut out, writing).ok()?;
    Some(out.text)
}

/// With substitutions, a few letters can double the length of a name.
struct Bounded {
    text: String,
    most: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        work::count(text.len());
        if self.text.len() + text.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{demangle, template_family};

    #[test]
    fn names_are_demangled_or_left() {
        assert_eq!(demangle("_Z5scalePffi"), "scale(float*, float, int)");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_Zbroken"), "_Zbroken");
    }

    #[test]
    fn a_family_is_the_template() {
        for (name, family) in [
            ("_Z5scaleIfEvPT_i", "scale"),
            ("_Z5scalePffi", "scale"),
            ("_ZN2ns3FooIiE3barEv", "ns::Foo"),
            ("_ZN2nsltIiEEbT_S1_", "ns::operator<"),
            ("_ZN2ns3FooIiEltERKS1_", "ns::Foo"),
            ("plain", "plain"),
        ] {
            assert_eq!(template_family(name), family, "{name}");
        }
    }
}
