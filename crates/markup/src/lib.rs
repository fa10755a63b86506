//! Escapes text from outside for HTML and SVG pages, and makes a policy by which nothing else runs in them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// `text` as it may stand between tags and in quoted attributes. A control character, which XML
/// 1.0 (section 2.2) has no way to write, becomes U+FFFD.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push('\u{fffd}');
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// A Content-Security-Policy (CSP level 3) by which a page loads nothing, and runs nothing but this script with this
/// style, each known by its hash.
#[must_use]
pub fn policy(script: &str, style: &str) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        hash(script),
        hash(style)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_markup_takes_for_its_own() {
        assert_eq!(
            escape("f<T>(\"a&b\")\n\u{1b}[0m"),
            "f&lt;T&gt;(&quot;a&amp;b&quot;)\n\u{fffd}[0m"
        );
    }
}
