//! Line markers: the lines of a preprocessed text that say which file the next ones came from.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// A preprocessed text whose line markers (`# 12 "path" 1 3`) name what `rename` makes of each path, as it is written
/// there; `None` leaves one as it is. Everything else stays.
pub(crate) fn rename_markers<'a>(
    text: &'a [u8],
    rename: &dyn Fn(&'a [u8]) -> Option<Cow<'a, [u8]>>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for_each_path(text, |range| {
        let path = &text[range.clone()];
        if let Some(new) = rename(path) {
            out.extend_from_slice(&text[done..range.start]);
            out.extend_from_slice(&new);
            done = range.end;
        }
    });
    out.extend_from_slice(&text[done..]);
    out
}

/// Whether a place in a preprocessed text is inside the path of a line marker.
pub fn is_in_marker(text: &[u8], place: &Range<usize>) -> bool {
    let line = memchr::memrchr(b'\n', &text[..place.start]).map_or(0, |at| at + 1);
    let path = text[line..]
        .starts_with(b"# ")
        .then(|| path_in(&text[line..]));
    let inside =
        |path: Range<usize>| line + path.start <= place.start && place.end <= line + path.end;
    path.flatten().is_some_and(inside)
}

/// The line markers of a preprocessed text and nothing else, to know later which files it came from.
pub fn only_markers(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for_each_path(text, |range| {
        let start = memchr::memrchr(b'\n', &text[..range.start]).map_or(0, |at| at + 1);
        let rest = &text[range.end..];
        let end = range.end + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        out.extend_from_slice(&text[start..end]);
        out.push(b'\n');
    });
    out
}

/// The files that the line markers of a preprocessed text name, as they are written there.
pub fn files_in_markers(text: &[u8]) -> BTreeSet<&[u8]> {
    let mut files = BTreeSet::new();
    for_each_path(text, |range| {
        files.insert(&text[range]);
    });
    files
}

/// Calls `each` with the place of every line marker's path.
fn for_each_path(text: &[u8], mut each: impl FnMut(Range<usize>)) {
    let mut look = |line: usize| {
        if let Some(path) = path_in(&text[line..]) {
            each(line + path.start..line + path.end);
        }
    };
    if text.starts_with(b"# ") {
        look(0);
    }
    for at in memchr::memmem::find_iter(text, b"\n# ") {
        look(at + 1);
    }
}

fn path_in(line: &[u8]) -> Option<Range<usize>> {
    let digits = line.get(2..)?.iter().take_while(|b| b.is_ascii_digit());
    let start = 2 + digits.count();
    if start == 2 || !line.get(start..)?.starts_with(b" \"") {
        return None;
    }
    let start = start + 2;
    let mut end = start;
    loop {
        match line.get(end)? {
            b'"' => return Some(start..end),
            b'\n' => return None,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"# 0 \"/a/m.cu\"\n# 0 \"<built-in>\"\n# 1 \"/a/x\\\"y.h\" 1\nint x = \"/a/z\";\n# 7 forged\n# 2 \"/b.h\" 2\n";

    #[test]
    fn only_the_paths_of_markers_change() {
        let renamed = rename_markers(TEXT, &|path| {
            let rest = path.strip_prefix(b"/a/")?;
            Some([&b"/long/"[..], rest].concat().into())
        });
        assert_eq!(
            String::from_utf8_lossy(&renamed),
            "# 0 \"/long/m.cu\"\n# 0 \"<built-in>\"\n# 1 \"/long/x\\\"y.h\" 1\nint x = \"/a/z\";\n# 7 forged\n# 2 \"/b.h\" 2\n"
        );
        assert_eq!(
            String::from_utf8_lossy(&only_markers(TEXT)),
            "# 0 \"/a/m.cu\"\n# 0 \"<built-in>\"\n# 1 \"/a/x\\\"y.h\" 1\n# 2 \"/b.h\" 2\n"
        );
        let outside = |word: &str| {
            let places = memchr::memmem::find_iter(TEXT, word.as_bytes());
            let places = places.map(|at| at..at + word.len());
            places.filter(|place| !is_in_marker(TEXT, place)).count()
        };
        assert_eq!(
            ["/a/", "/b.h", "y.h", "built", "7 f", "h\" 2", "\n# 2"].map(outside),
            [1, 0, 0, 0, 1, 1, 1]
        );
        let files = files_in_markers(TEXT)
            .into_iter()
            .map(String::from_utf8_lossy);
        assert_eq!(
            files.collect::<Vec<_>>(),
            ["/a/m.cu", "/a/x\\\"y.h", "/b.h", "<built-in>"]
        );
        for broken in [&b"# "[..], b"# 1 \"", b"# 1 \"x\\", b"# \"x\"", b""] {
            assert_eq!(rename_markers(broken, &|_| Some(b"y"[..].into())), broken);
        }
    }
}
