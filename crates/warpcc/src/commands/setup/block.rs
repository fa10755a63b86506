//! Puts a block of lines between two marker comments into a user's file, and takes it out so that the file is as before, byte
//! for byte.
//!
//! The first marker also records how the file was before: without an end of its last line, or missing.

const OPEN: &[u8] = b"# >>> warpcc setup --";
const NO_LINE_END: &str = " (the line before had no end)";
const NEW_FILE: &str = " (there was no file)";

/// A text with a block or without.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    /// The text.
    pub text: Vec<u8>,
    /// Whether there was no file before the block was put in.
    pub was_no_file: bool,
}

/// A block has no end marker, because somebody edited the file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lines of `warpcc setup --{0}` begin there and do not end: correct the file by hand")]
pub struct Unfinished(String);

/// Where a block stands.
struct BlockPlace {
    start: usize,
    end: usize,
    found: &'static str,
}

/// `text`, or nothing where there is no file, with the block `name` of `lines`, in place of one that is there.
///
/// # Errors
/// A block that does not end.
pub fn with(text: Option<&[u8]>, name: &str, lines: &str) -> Result<Vec<u8>, Unfinished> {
    let before = text.unwrap_or_default();
    if let Some(there) = find(before, name)? {
        let block = block(name, there.found, lines);
        return Ok([
            &before[..there.start],
            block.as_bytes(),
            &before[there.end..],
        ]
        .concat());
    }
    let is_open = before.last().is_some_and(|last| *last != b'\n');
    let found = match (text, is_open) {
        (None, _) => NEW_FILE,
        (Some(_), true) => NO_LINE_END,
        (Some(_), false) => "",
    };
    let line_end: &[u8] = if is_open { b"\n" } else { b"" };
    Ok([before, line_end, block(name, found, lines).as_bytes()].concat())
}

/// `text` without the block `name`; nothing where it has none.
///
/// # Errors
/// A block that does not end.
pub fn without(text: &[u8], name: &str) -> Result<Option<Edited>, Unfinished> {
    let Some(there) = find(text, name)? else {
        return Ok(None);
    };
    let (mut before, after) = (&text[..there.start], &text[there.end..]);
    let mut rest = after.to_vec();
    if after.starts_with(OPEN) {
        // The next block must now record how the file was before.
        if let Some(at) = find_bytes(after, b" >>>\n") {
            rest.splice(at..at, there.found.bytes());
        }
    } else if there.found == NO_LINE_END && after.is_empty() {
        before = before.strip_suffix(b"\n").unwrap_or(before);
    }
    let text = [before, &rest].concat();
    Ok(Some(Edited {
        was_no_file: there.found == NEW_FILE && text.is_empty(),
        text,
    }))
}

fn block(name: &str, found: &str, lines: &str) -> String {
    format!(
        "# >>> warpcc setup --{name}{found} >>>\n\
         # `warpcc setup --{name} --undo` takes these lines out.\n\
         {lines}{}",
        closing(name)
    )
}

fn closing(name: &str) -> String {
    format!("# <<< warpcc setup --{name} <<<\n")
}

fn find(text: &[u8], name: &str) -> Result<Option<BlockPlace>, Unfinished> {
    for found in [NO_LINE_END, NEW_FILE, ""] {
        let opening = format!("# >>> warpcc setup --{name}{found} >>>\n");
        let Some(start) = find_line(text, opening.as_bytes()) else {
            continue;
        };
        let closing = closing(name);
        let length = find_line(&text[start..], closing.as_bytes());
        let length = length.ok_or_else(|| Unfinished(name.to_owned()))?;
        return Ok(Some(BlockPlace {
            start,
            end: start + length + closing.len(),
            found,
        }));
    }
    Ok(None)
}

/// Where `line` stands at the beginning of a line.
fn find_line(text: &[u8], line: &[u8]) -> Option<usize> {
    let starts = |at: &usize| *at == 0 || text.get(at - 1) == Some(&b'\n');
    let places = text.windows(line.len()).enumerate();
    let found = places.filter(|(_, part)| *part == line).map(|(at, _)| at);
    found.into_iter().find(starts)
}

fn find_bytes(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts in blocks one after the other, and takes them out in another order.
    fn there_and_back(text: Option<&[u8]>, in_order: &[&str], out_order: &[&str]) {
        let mut now = text.map(<[u8]>::to_vec);
        for name in in_order {
            for lines in [
                "old\n",
                "export A=1\nexport B=2\n",
                "export A=1\nexport B=2\n",
            ] {
                now = Some(with(now.as_deref(), name, lines).unwrap());
            }
            let all = String::from_utf8_lossy(now.as_deref().unwrap()).into_owned();
            assert_eq!(all.matches(&closing(name)).count(), 1, "{all}");
            assert!(!all.contains("old\n"), "{all}");
        }
        let mut was_no_file = false;
        for name in out_order {
            let edited = without(now.as_deref().unwrap(), name).unwrap().unwrap();
            assert_eq!(without(&edited.text, name), Ok(None));
            was_no_file = edited.was_no_file;
            now = Some(edited.text);
        }
        assert_eq!(now.as_deref(), Some(text.unwrap_or_default()));
        assert_eq!(was_no_file, text.is_none());
    }

    #[test]
    fn undo_restores_every_byte() {
        let names = ["shell", "cmake", "pip"];
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        for text in [
            None,
            Some(&b""[..]),
            Some(b"\n"),
            Some(b"alias ll='ls -l'\n"),
            Some(b"no end"),
            Some(b"\n\nno end"),
            Some(b"\xff\xfe\r\n"),
            Some(b"# >>> warpcc setup --shells >>>\nx"),
        ] {
            there_and_back(text, &["shell"], &["shell"]);
            for order in orders {
                let out: Vec<&str> = order.iter().map(|at| names[*at]).collect();
                there_and_back(text, &names, &out);
            }
        }
    }

    #[test]
    fn lines_added_later_stay() {
        let text = with(Some(b"a"), "shell", "x\n").unwrap();
        let text = [&text[..], b"mine\n"].concat();
        let edited = without(&text, "shell").unwrap().unwrap();
        assert_eq!(edited.text, b"a\nmine\n");
        assert!(!edited.was_no_file);
        let text = with(None, "shell", "x\n").unwrap();
        let text = [&text[..], b"mine\n"].concat();
        let edited = without(&text, "shell").unwrap().unwrap();
        assert_eq!(
            (edited.text.as_slice(), edited.was_no_file),
            (&b"mine\n"[..], false)
        );
    }

    #[test]
    fn a_block_without_its_end_is_not_touched() {
        let mut text = with(Some(b"a\n"), "shell", "x\n").unwrap();
        text.truncate(text.len() - 4);
        assert!(with(Some(&text), "shell", "y\n").is_err());
        assert!(without(&text, "shell").is_err());
    }
}
