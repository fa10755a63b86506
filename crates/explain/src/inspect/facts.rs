//! Small facts of texts and commands: definitions, values of options, numbers.

use warpcc_plan::Step;

use crate::block::NamedValue;

/// The definition of `name` in `text`.
pub fn defined<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let value = |line: &'t str| {
        line.strip_prefix("#define ")?
            .strip_prefix(name)?
            .strip_prefix(' ')
    };
    text.lines().find_map(value).map(str::trim)
}

/// The value behind an option of a command.
pub fn value_of<'a>(step: &'a Step, flag: &str) -> Option<&'a str> {
    let at = step
        .args
        .iter()
        .position(|arg| arg.as_text() == Some(flag))?;
    step.args.get(at + 1)?.as_text()
}

/// The number of lines of a text.
pub fn lines_of(text: &str) -> NamedValue {
    NamedValue::here("lines", count(text.lines().count() as u64))
}

/// `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
