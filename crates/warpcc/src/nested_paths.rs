//! Finds out whether a word of a command line may lead from one mapped folder into another one.

use memchr::memmem;
use warpcc_path_map::BASE;

/// Whether a component of a path in a command line may contain this character.
pub fn is_in_component(c: &u8) -> bool {
    c.is_ascii_alphanumeric() || b"_-.+~%@".contains(c)
}

/// Whether the place is in an absolute path without `.`, `..` and empty components. Such a path already begins with the
/// fixed name of the innermost folder, so it does not lead into another folder.
pub fn is_in_plain_path(word: &[u8], at: usize) -> bool {
    let is_end = |c: &u8| !(is_in_component(c) || *c == b'/');
    let start = word[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    let end = word[at..].iter().position(is_end);
    let path = &word[start..end.map_or(word.len(), |end| at + end)];
    // A fixed name is at the beginning of a path, also where an option runs into it: -I/warpcc-base/repo/a.
    let fixed = memmem::find(path, BASE.as_bytes()).filter(|_| path.starts_with(b"-"));
    let path = &path[fixed.unwrap_or(0)..];
    let mut parts = path
        .strip_suffix(b"/")
        .unwrap_or(path)
        .split(|c| *c == b'/');
    let is_absolute = parts.next().is_some_and(<[u8]>::is_empty);
    is_absolute && parts.all(|part| !matches!(part, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_leads_nowhere_else() {
        let is_plain = |word: &str| {
            let at = memmem::find(word.as_bytes(), b"tmp").expect("tmp");
            is_in_plain_path(word.as_bytes(), at)
        };
        for word in [
            "/warpcc-base/repo/target/tmp/x",
            "-I/warpcc-base/repo/tmp/include",
            "-I/warpcc-base/repo/tmp/",
            "/usr/tmp",
            "--path=/usr/tmp,../x",
        ] {
            assert!(is_plain(word), "{word}");
        }
        for word in [
            "tmp",
            "-Itmp",
            "-Ia/tmp",
            "a/tmp/b",
            "../tmp",
            "-I/warpcc-base/repo/../tmp",
            "/warpcc-base/repo//tmp",
            "/warpcc-base/repo/./tmp",
            "/warpcc-base/repo/tmp/..",
        ] {
            assert!(!is_plain(word), "{word}");
        }
    }
}
