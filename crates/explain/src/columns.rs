//! How wide text is, where its lines break, and cells in columns.

/// A row's cell; empty where the row is shorter.
pub(crate) fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

/// The width of a text.
pub(crate) fn letters(text: &str) -> usize {
    text.chars().count()
}

/// Whether a cell goes to the right of its column.
pub(crate) fn is_number(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b',' | b'-'))
}

/// Cells in columns of these widths, numbers to the right.
pub(crate) fn aligned(cells: &[&str], widths: &[usize], numeric: &[bool]) -> String {
    let mut line = String::new();
    for ((cell, width), right) in cells.iter().zip(widths).zip(numeric) {
        let gap = " ".repeat(width.saturating_sub(letters(cell)));
        match right {
            true => line.push_str(&format!("{gap}{cell}  ")),
            false => line.push_str(&format!("{cell}{gap}  ")),
        }
    }
    line.trim_end().to_owned()
}

/// Lines of at most `width` letters, those after the first behind `hang` spaces. A word that is
/// longer stands alone: cut, it could not be copied.
pub(crate) fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut empty = true;
    for (at, word) in text.split(' ').enumerate() {
        if at > 0 && !empty && letters(&line) + 1 + letters(word) > width {
            lines.push(line.trim_end().to_owned());
            line = " ".repeat(hang);
            empty = true;
        } else if at > 0 && (!empty || lines.is_empty()) {
            line.push(' ');
        }
        line.push_str(word);
        empty &= word.is_empty();
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("one two three", 8, 2), ["one two", "  three"]);
        assert_eq!(wrap("a-very-long-word b", 4, 0), ["a-very-long-word", "b"]);
        assert_eq!(wrap("name    value", 40, 0), ["name    value"]);
        assert_eq!(wrap("", 10, 0), [""]);
    }
}
