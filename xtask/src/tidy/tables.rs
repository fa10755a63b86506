//! Checks that a function which clippy's `too_many_lines` does not count is a table.
//!
//! clippy refuses a function with more than 80 lines of code, unless an attribute exempts it. This rule counts an exempt
//! function again, without the rows of its tables. A table is a `match` or a list with at least [`ROWS`] rows, none of them
//! longer than [`LONGEST_ROW`] lines. It relies on rustfmt's indentation.

use super::complaint::{Complaint, Source};
use super::rules::is_rust;

const LINT: &str = concat!("clippy::", "too_many_lines");
/// As in `clippy.toml`.
const LONGEST: usize = 80;
const ROWS: usize = 10;
const LONGEST_ROW: usize = 20;

/// Checks that no function has more than 80 lines of code outside of its tables.
pub fn long_functions_are_tables(source: &Source) -> Vec<Complaint> {
    if !is_rust(source.path) {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let exempt = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_code(line) && line.contains(LINT));
    exempt
        .filter_map(|(index, line)| {
            if line.contains("#![") {
                return Some(Complaint::at(
                    index + 1,
                    "exempt one function, not the whole file",
                ));
            }
            let count = lines_outside_tables(body_of_next_function(&lines[index..])?);
            (count > LONGEST).then(|| {
                Complaint::at(
                    index + 1,
                    format!(
                        "{count} lines of code outside of tables: split the function (at most {LONGEST}; a table \
                         is a `match` or a list of at least {ROWS} rows, none longer than {LONGEST_ROW} lines)"
                    ),
                )
            })
        })
        .collect()
}

/// The lines between the braces of the first function.
fn body_of_next_function<'l>(lines: &'l [&'l str]) -> Option<&'l [&'l str]> {
    let head = lines.iter().position(|line| line.contains("fn "))?;
    let indent = indent(lines[head]);
    let open = head
        + lines[head..]
            .iter()
            .position(|line| line.ends_with('{') && self::indent(line) == indent)?;
    let length = lines[open..]
        .iter()
        .position(|line| indent_and_start(line, indent, "}"))?;
    Some(&lines[open + 1..open + length])
}

fn lines_outside_tables(lines: &[&str]) -> usize {
    let mut count = 0;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        count += usize::from(is_code(line));
        at += 1 + rows_of_table(line, &lines[at + 1..]).unwrap_or(0);
    }
    count
}

/// How many of the `following` lines are rows of a table that `line` opens; `None` if it opens none.
fn rows_of_table(line: &str, following: &[&str]) -> Option<usize> {
    let is_match = line.ends_with('{') && line.contains("match ");
    let end = match line.ends_with('[') {
        true => "]",
        false if is_match => "}",
        false => return None,
    };
    let indent = indent(line);
    let length = following
        .iter()
        .position(|line| indent_and_start(line, indent, end))?;
    let mut rows: Vec<usize> = Vec::new();
    for line in following[..length].iter().filter(|line| is_code(line)) {
        let continues = line.trim_start().starts_with([')', ']', '}', '|']);
        if self::indent(line) == indent + 4 && !continues {
            rows.push(0);
        }
        *rows.last_mut()? += 1;
    }
    let is_table = rows.len() >= ROWS && rows.iter().all(|lines| *lines <= LONGEST_ROW);
    is_table.then_some(length)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn indent_and_start(line: &str, indent: usize, start: &str) -> bool {
    self::indent(line) == indent && line.trim_start().starts_with(start)
}

fn is_code(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the complaints about an exempt function with these lines in its body.
    fn complaints(body: &str) -> Vec<usize> {
        let text =
            format!("//! x\n\n#[expect({LINT}, reason = \"a table\")]\nfn f() {{\n{body}}}\n");
        let source = Source {
            path: "crates/a/src/b.rs",
            bytes: text.as_bytes(),
            text: &text,
        };
        let found = long_functions_are_tables(&source);
        found.iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn a_long_function_without_a_table_is_refused() {
        let statement = "    a();\n";
        assert_eq!(complaints(&statement.repeat(80)), [0; 0]);
        assert_eq!(complaints(&statement.repeat(81)), [3]);
        let comments = "    // Why.\n\n".repeat(50);
        assert_eq!(complaints(&(comments + &statement.repeat(80))), [0; 0]);
    }

    #[test]
    fn rows_of_a_table_do_not_count() {
        let rows = |row: &str, count| format!("    match x {{\n{}    }}\n", row.repeat(count));
        assert_eq!(complaints(&rows("        1 => 2,\n", 90)), [0; 0]);
        let list = format!("    let a = [\n{}    ];\n", "        1,\n".repeat(90));
        assert_eq!(complaints(&list), [0; 0]);
        assert_eq!(
            complaints(&(list.clone() + &"    a();\n".repeat(78))),
            [0; 0]
        );
        assert_eq!(complaints(&(list + &"    a();\n".repeat(79))), [3]);

        // Nine long rows are no table, and neither are ten of which one is a function of its own.
        let row = |lines| {
            format!(
                "        1 => {{\n{}        }}\n",
                "            a();\n".repeat(lines)
            )
        };
        assert_eq!(complaints(&rows(&row(18), 10)), [0; 0]);
        assert_eq!(complaints(&rows(&row(18), 9)), [3]);
        assert_eq!(complaints(&rows(&row(19), 10)), [3]);
    }

    #[test]
    fn a_whole_file_is_not_exempt() {
        let text = format!("#![expect({LINT}, reason = \"x\")]\nfn f() {{\n}}\n");
        let source = Source {
            path: "a.rs",
            bytes: text.as_bytes(),
            text: &text,
        };
        assert_eq!(long_functions_are_tables(&source).len(), 1);
    }
}
