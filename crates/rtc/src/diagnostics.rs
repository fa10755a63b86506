//! Finds the place of an error in the user's own text, from NVRTC's log.

use std::fmt;

/// A place in one of the caller's texts, or in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The text, by the name that the caller gave it, or a file's path.
    pub text: String,
    /// The line in that text, from 1.
    pub line: usize,
    /// The line itself, if the text is available.
    pub shown: Option<String>,
    /// NVRTC's message.
    pub message: String,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As compilers write it, so that terminals and editors open the place.
        write!(f, "{}:{}: {}", self.text, self.line, self.message)?;
        match &self.shown {
            Some(line) => write!(f, "\n    {line}"),
            None => Ok(()),
        }
    }
}

/// The text in which NVRTC looks up name expressions: an error there mostly follows from another one.
const NAMES: &str = "__nv_name_map";

/// The first error in a log. `text_of` returns a text by NVRTC's name for it, and the caller's name for it.
pub(crate) fn first_error(
    log: &str,
    text_of: impl Fn(&str) -> Option<(String, String)>,
) -> Option<SourceLocation> {
    let errors = || log.lines().filter_map(error_in);
    let first = errors().find(|(file, ..)| *file != NAMES);
    let (file, line, message) = first.or_else(|| errors().next())?;
    if file == NAMES {
        return Some(SourceLocation {
            text: "the name expressions".to_owned(),
            line,
            shown: None,
            message: message.to_owned(),
        });
    }
    let known = text_of(file);
    let shown = known.as_ref().and_then(|(_, text)| {
        let shown = text.lines().nth(line.checked_sub(1)?)?;
        Some(shown.trim().to_owned())
    });
    Some(SourceLocation {
        text: known.map_or_else(|| file.to_owned(), |(name, _)| name),
        line,
        shown,
        message: message.to_owned(),
    })
}

/// File, line and message of a line of a log that reports an error: `k.cu(2): error #20: text`.
fn error_in(line: &str) -> Option<(&str, usize, &str)> {
    let (place, message) = [": error", ": catastrophic error"]
        .iter()
        .find_map(|word| line.split_once(word))?;
    let (file, number) = place.strip_suffix(')')?.rsplit_once('(')?;
    let message = message.split_once(": ").map_or(message, |(_, text)| text);
    Some((file, number.parse().ok()?, message.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_found_behind_warnings() {
        let log = "k.cu(1): warning #177-D: unused\n  int a;\n\nk.cu(2): error: identifier \"b\" is undefined\n";
        let place = first_error(log, |file| {
            (file == "k.cu").then(|| ("kernel k".to_owned(), "int a;\n  b = 1;\n".to_owned()))
        });
        let place = place.expect("an error");
        assert_eq!(
            place.to_string(),
            "kernel k:2: identifier \"b\" is undefined\n    b = 1;"
        );
    }

    #[test]
    fn an_unknown_file_keeps_its_name() {
        let log = "/a/b(c).h(12): catastrophic error: could not open source file \"x.h\"";
        let place = first_error(log, |_| None).expect("an error");
        assert_eq!((place.text.as_str(), place.line), ("/a/b(c).h", 12));
        assert_eq!(place.shown, None);
        assert!(first_error("nvrtc: error: unrecognized option --foo", |_| None).is_none());
        assert!(first_error("x(0): error: a", |_| Some(Default::default())).is_some());
    }
}
