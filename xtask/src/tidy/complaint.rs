//! Defines the input and the output of a rule.

/// One file as the rules see it.
pub struct Source<'a> {
    /// The path relative to the repository's root, with `/`.
    pub path: &'a str,
    pub bytes: &'a [u8],
    /// The bytes as text; empty when they are no UTF-8.
    pub text: &'a str,
}

/// A rule: gives its complaints about a file, one per place, with line 0 for the whole file.
pub type Rule = fn(&Source) -> Vec<Complaint>;

/// A rule's message about one place.
#[derive(Debug, PartialEq)]
pub struct Complaint {
    pub line: usize,
    pub message: String,
}

impl Complaint {
    pub fn whole(message: impl Into<String>) -> Self {
        Self {
            line: 0,
            message: message.into(),
        }
    }

    pub fn at(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}
