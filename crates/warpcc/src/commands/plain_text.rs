//! Words for a terminal: without control characters, counted, cut to a width.

/// Replaces control characters. A file may put them into a name, and they must not reach the terminal.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// `1 image`, `2 images`.
pub fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// At most `width` characters, with a sign where some were left out.
pub fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_files_is_harmless() {
        assert_eq!(plain("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
