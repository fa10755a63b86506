//! Generated code made readable: which source line each line comes from, one statement to a line, none too long.

use crate::block::Line;

/// Longer lines are cut: a mangled name can fill a page.
const WIDEST: usize = 160;
/// The most levels of indentation.
const DEEPEST: usize = 8;

/// A line of text behind `# LINE "FILE"` marks.
pub struct Marked<'t> {
    /// The file it comes from.
    pub file: &'t str,
    /// Its number there.
    pub number: usize,
    /// The line.
    pub text: &'t str,
}

/// The lines of preprocessed text, or of what cudafe++ writes, without the marks.
pub fn marked(text: &str) -> impl Iterator<Item = Marked<'_>> {
    let (mut file, mut number) = ("", 0);
    text.lines().filter_map(move |line| {
        if let Some((to, named)) = mark(line) {
            number = to;
            file = named.unwrap_or(file);
            return None;
        }
        let here = number;
        number += 1;
        Some(Marked {
            file,
            number: here,
            text: line,
        })
    })
}

/// `# 12 "file" 3` or `# 12`, also with the word `line`.
fn mark(line: &str) -> Option<(usize, Option<&str>)> {
    let rest = line.strip_prefix('#')?;
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let number = rest[..digits].parse().ok()?;
    let name = rest[digits..].trim();
    match name.strip_prefix('"') {
        Some(name) => Some((number, name.split('"').next())),
        None if name.is_empty() => Some((number, None)),
        None => None,
    }
}

/// `text`, or its beginning.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((at, _)) => format!("{} …", text[..at].trim_end()),
        None => text.trim_end().to_owned(),
    }
}

/// The first `most` lines, and how many more there are.
pub fn first(mut lines: Vec<Line>, most: usize) -> Vec<Line> {
    let left = lines.len().saturating_sub(most);
    // One line more is no longer than the remark about it.
    if left > 1 {
        lines.truncate(most);
        lines.push(Line {
            number: None,
            text: format!("… {left} more lines"),
            marked: false,
        });
    }
    lines
}

/// Code of one line, with a line for each statement.
pub fn statements(code: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let (mut depth, mut parens) = (0_usize, 0_usize);
    let push = |line: &mut String, depth: usize, lines: &mut Vec<String>| {
        let text = line.trim();
        if !text.is_empty() {
            lines.push(cut(&format!("{}{text}", "    ".repeat(depth.min(DEEPEST)))));
        }
        line.clear();
    };
    for letter in code.chars() {
        match letter {
            '(' => parens += 1,
            ')' => parens = parens.saturating_sub(1),
            '{' if parens == 0 => {
                line.push('{');
                push(&mut line, depth, &mut lines);
                depth += 1;
                continue;
            }
            '}' if parens == 0 => {
                push(&mut line, depth, &mut lines);
                depth = depth.saturating_sub(1);
                line.push('}');
                push(&mut line, depth, &mut lines);
                continue;
            }
            ';' if parens == 0 => {
                // The semicolon behind a brace, and those that macros leave.
                if !line.trim().is_empty() {
                    line.push(';');
                }
                push(&mut line, depth, &mut lines);
                continue;
            }
            '\n' => {
                line.push(' ');
                continue;
            }
            _ => {}
        }
        line.push(letter);
    }
    push(&mut line, depth, &mut lines);
    lines
}

/// The arguments of the call that begins at `text`, which starts with its opening parenthesis; and
/// where it ends.
pub fn arguments(text: &str) -> Option<(Vec<&str>, usize)> {
    let mut depth = 0_usize;
    let mut from = 1;
    let mut found = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    let last = text[from..at].trim();
                    if !(last.is_empty() && found.is_empty()) {
                        found.push(last);
                    }
                    return Some((found, at + 1));
                }
            }
            ',' if depth == 1 => {
                found.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_say_where_a_line_comes_from() {
        let text = "# 0 \"a.cu\"\n# 1 \"h.h\" 1 3\nint h;\n# 4 \"a.cu\" 2\nint a;\nint b;\n# 9\nint c;\n#pragma once\n";
        let lines: Vec<_> = marked(text)
            .map(|line| (line.file, line.number, line.text))
            .collect();
        assert_eq!(
            lines,
            [
                ("h.h", 1, "int h;"),
                ("a.cu", 4, "int a;"),
                ("a.cu", 5, "int b;"),
                ("a.cu", 9, "int c;"),
                ("a.cu", 10, "#pragma once")
            ]
        );
    }

    #[test]
    fn a_line_of_code_becomes_lines() {
        let code = "void f(int a){g(a, 1);for(int i;i<2;){h();}}";
        assert_eq!(
            statements(code),
            [
                "void f(int a){",
                "    g(a, 1);",
                "    for(int i;i<2;){",
                "        h();",
                "    }",
                "}"
            ]
        );
    }

    #[test]
    fn arguments_end_with_their_parenthesis() {
        let (found, end) = arguments("(a, ((f(*)(int, int))x<1, 2>), (-1)); more").expect("a call");
        assert_eq!(found, ["a", "((f(*)(int, int))x<1, 2>)", "(-1)"]);
        assert_eq!(end, 36);
        assert_eq!(arguments("()"), Some((vec![], 2)));
        assert_eq!(arguments("(a, (b"), None);
    }
}
