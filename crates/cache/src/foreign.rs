//! Limits for results from other machines: how much is accepted, and how their text is shown.
//!
//! A result from another machine is believed about its own inputs, which are then compared. It is not believed about any
//! size, name or text.

/// The largest output of a whole call. Larger ones are compiled here.
pub const LARGEST_OUTPUT: u64 = 4 << 30;
/// The largest output of a step, and the largest kernel: the next tool's input is read into memory.
pub const LARGEST_PART: u64 = 512 << 20;
/// The largest text that is changed in memory.
pub const LARGEST_TEXT: u64 = 16 << 20;

/// The most bytes of this machine's files that are read to find out whether one result is valid here.
pub const MOST_COMPARED: u64 = 4 << 30;
/// The most files, folders, names and outputs of one record: each takes a `stat`, and up to a hundred bytes.
pub const MOST_ENTRIES: usize = 1 << 19;
/// The most bytes of all paths of one record.
pub const LONGEST_PATHS: usize = 24 << 20;

/// Makes text safe to show: printable characters, tabs, line ends and a compiler's colours and links stay. Everything else
/// that a terminal or a reader could take for a command is escaped.
///
/// These sequences stay: `ESC [ … m` (colours), the `ESC [ K` that gcc writes right behind one, and `ESC ] 8 ; … ; … ST`
/// (links).
pub fn shown(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut behind_colour = false;
    while let Some(&first) = rest.first() {
        let colour = colour(rest);
        let kept = match first {
            b'\t' | b'\n' | b' '..=b'~' => 1,
            0x1b => colour
                .or_else(|| (behind_colour && rest.starts_with(b"\x1b[K")).then_some(3))
                .or_else(|| link(rest))
                .unwrap_or(0),
            0x80.. => printed(rest),
            _ => 0,
        };
        behind_colour = colour.is_some();
        let (taken, after) = rest.split_at(kept.max(1));
        match kept {
            0 => escape(first, &mut out),
            _ => out.extend_from_slice(taken),
        }
        rest = after;
    }
    out
}

/// The length of `ESC [ digits, semicolons, colons m` at the beginning.
fn colour(text: &[u8]) -> Option<usize> {
    let parameters = text.strip_prefix(b"\x1b[")?;
    let length = parameters.iter().position(|b| !matches!(b, b'0'..=b';'))?;
    (parameters.get(length) == Some(&b'm')).then_some(2 + length + 1)
}

/// The length of `ESC ] 8 ; parameters ; address`, ended by `BEL` or `ESC \`, at the beginning.
fn link(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"\x1b]8;")?;
    let length = inside.iter().position(|b| !matches!(b, b' '..=b'~'))?;
    inside[..length].contains(&b';').then_some(())?;
    let end = &inside[length..];
    let ended = if end.starts_with(b"\x07") {
        1
    } else if end.starts_with(b"\x1b\\") {
        2
    } else {
        return None;
    };
    Some(4 + length + ended)
}

/// The length of the first character if it is printable and not ASCII; otherwise 0.
fn printed(text: &[u8]) -> usize {
    let few = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(few) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&few[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        // A character that Rust does not escape is printable: it is no control character, and no mark that reverses the
        // line.
        Some(c) if c.escape_debug().len() == 1 => c.len_utf8(),
        _ => 0,
    }
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_output_is_kept() {
        for text in [
            &b"a.cu(3): warning #177-D: variable \"x\" was declared\n\n  int x;\n      ^\n"[..],
            b"\x1b[01;35m\x1b[Kwarning: \x1b[m\x1b[Kunused \xe2\x80\x98x\xe2\x80\x99 [\x1b[01;35m\x1b[K\x1b]8;;https://gcc.gnu.org/onlinedocs/gcc/W.html#i\x07-Wunused\x1b]8;;\x07\x1b[m\x1b[K]\n",
            b"\x1b]8;id=1;http://a/b\x1b\\text\x1b]8;;\x1b\\\n",
            "größe, 変数\tx\n".as_bytes(),
            b"\x1b[38;2;1;2;3m\x1b[4:3m\x1b[m",
        ] {
            assert_eq!(shown(text), text, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn terminal_commands_are_escaped() {
        for (text, expected) in [
            (&b"\x1b[2J\x1b[H"[..], "\\x1b[2J\\x1b[H"),
            (b"x\x1b[K", "x\\x1b[K"),
            (b"\x1b[31mx\x1b[K", "\x1b[31mx\\x1b[K"),
            (b"\x1b]0;title\x07", "\\x1b]0;title\\x07"),
            (b"\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
            (b"\x1b]8;;http://a\n\x07", "\\x1b]8;;http://a\n\\x07"),
            (b"\x1b]8;http://a\x07", "\\x1b]8;http://a\\x07"),
            (b"\x1b]8;;\x1b[2J\x1b\\", "\\x1b]8;;\\x1b[2J\\x1b\\"),
            (b"\x1b[>4;2m", "\\x1b[>4;2m"),
            (
                b"\x1b[?25l\x1bc\x1bP1$r\x1b\\",
                "\\x1b[?25l\\x1bc\\x1bP1$r\\x1b\\",
            ),
            (
                b"a\rb\x08\x7f\0\x0b\x0c",
                "a\\x0db\\x08\\x7f\\x00\\x0b\\x0c",
            ),
            // C1: what some terminals take for ESC [; and as UTF-8.
            (b"\x9b2J", "\\x9b2J"),
            (b"\xc2\x9b2J", "\\xc2\\x9b2J"),
            // Right-to-left override, zero width space.
            (
                "\u{202e}x\u{200b}".as_bytes(),
                "\\xe2\\x80\\xaex\\xe2\\x80\\x8b",
            ),
            (b"\xe2\x80", "\\xe2\\x80"),
            (b"\x1b[", "\\x1b["),
            (b"\x1b", "\\x1b"),
        ] {
            assert_eq!(
                shown(text).escape_ascii().to_string(),
                expected.as_bytes().escape_ascii().to_string()
            );
        }
    }
}
