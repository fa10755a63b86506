//! Splits the text of an expression into numbers, names and signs. Also defines the errors of such texts.

use crate::expression::{CallError, Number};

/// An error in the text of an expression.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The text differs from what is allowed at this place.
    #[error("expression, column {column}: {found}, where {expected} was expected")]
    Unexpected {
        /// Counted in characters, from 1.
        column: usize,
        /// The text at this place.
        found: String,
        /// The text that is allowed.
        expected: &'static str,
    },
    /// A call that is not valid.
    #[error("expression, column {column}: {problem}")]
    Call {
        /// Counted in characters, from 1.
        column: usize,
        /// The problem.
        #[source]
        problem: CallError,
    },
    /// More than anyone writes.
    #[error("the expression is longer than 100,000 bytes or nested deeper than 200")]
    TooLarge,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Number(Number),
    Name(&'a str),
    Sign(&'static str),
    End,
}

pub(crate) const SIGNS: [&str; 22] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%", "|", "^",
    "&", "~", "(", ")", ",",
];

pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, ParseError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let (length, token) = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest.as_bytes());
            let written = &rest[..length];
            let number = match written.parse::<i64>() {
                Ok(whole) => Some(Number::Int(whole)),
                Err(_) => written.parse::<f64>().ok().map(Number::Float),
            };
            let number = number.ok_or_else(|| unexpected(text, at, written, "a number"))?;
            (length, Token::Number(number))
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            (length, Token::Name(&rest[..length]))
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (sign.len(), Token::Sign(sign))
        } else {
            let written = first.to_string();
            return Err(unexpected(
                text,
                at,
                &written,
                "a number, a name or an operator",
            ));
        };
        found.push((at, token));
        at += length;
    }
    found.push((text.len(), Token::End));
    Ok(found)
}

/// Digits, a point, an exponent with its sign.
fn number_length(text: &[u8]) -> usize {
    let mut at = 0;
    while at < text.len() {
        let exponent = at > 0 && matches!(text[at - 1], b'e' | b'E');
        let takes = text[at].is_ascii_digit()
            || matches!(text[at], b'.' | b'e' | b'E')
            || (exponent && matches!(text[at], b'+' | b'-'));
        if !takes {
            break;
        }
        at += 1;
    }
    at
}

pub(crate) fn unexpected(text: &str, at: usize, found: &str, expected: &'static str) -> ParseError {
    ParseError::Unexpected {
        column: text[..at].chars().count() + 1,
        found: format!("{:?}", found.chars().take(64).collect::<String>()),
        expected,
    }
}
