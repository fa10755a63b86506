//! The private folder's name in texts that tools write: taken out before they are stored, and put in again for another run.

use warpcc_cache::foreign;

/// Replaces the path of the private folder in a stored stub. It is not valid in C++ source, so it cannot be confused with
/// anything that cicc wrote.
const FOLDER_TOKEN: &[u8] = b"\0warpcc keep folder\0/";

/// The text with `FOLDER_TOKEN` in place of the private folder.
pub(crate) fn take_out(text: &[u8], folder: &str) -> Vec<u8> {
    replace(text, folder.as_bytes(), FOLDER_TOKEN)
}

/// The text with the private folder in place of `FOLDER_TOKEN`.
pub(crate) fn put_in(text: &[u8], folder: &str) -> Vec<u8> {
    replace(text, FOLDER_TOKEN, folder.as_bytes())
}

/// Text from another machine, made safe to show. It still contains `FOLDER_TOKEN`.
pub(crate) fn shown(text: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    let mut at = 0;
    for token in memchr::memmem::find_iter(text, FOLDER_TOKEN) {
        shown.extend(foreign::shown(&text[at..token]));
        shown.extend_from_slice(FOLDER_TOKEN);
        at = token + FOLDER_TOKEN.len();
    }
    shown.extend(foreign::shown(&text[at..]));
    shown
}

/// `text` with `to` in place of each `from`.
pub(crate) fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    if from.is_empty() {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for hit in memchr::memmem::find_iter(text, from) {
        out.extend_from_slice(&text[at..hit]);
        out.extend_from_slice(to);
        at = hit + from.len();
    }
    out.extend_from_slice(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_out_and_comes_back() {
        let stub = b"# 1 \"/tmp/k1/a.stub.c\"\n#include \"x\"\n";
        let stored = take_out(stub, "/tmp/k1/");
        assert!(memchr::memmem::find(&stored, b"/tmp").is_none());
        assert_eq!(
            put_in(&stored, "/tmp/other/"),
            b"# 1 \"/tmp/other/a.stub.c\"\n#include \"x\"\n"
        );
    }
}
