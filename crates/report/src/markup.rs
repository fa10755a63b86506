//! Text from outside inside HTML and SVG.

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
