//! Files of make's rules, in which a compiler names what it read: reads those of nvcc, and writes one for a bundle.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// A rule that says that `output` is made of `inputs`, for make and ninja.
pub fn depfile(output: &Path, inputs: &[PathBuf]) -> Vec<u8> {
    let mut text = escaped(output);
    text.push(b':');
    for input in inputs {
        text.extend_from_slice(b" \\\n  ");
        text.extend(escaped(input));
    }
    text.push(b'\n');
    text
}

fn escaped(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'$' => text.push(b'$'),
            b' ' | b'#' => text.push(b'\\'),
            _ => {}
        }
        text.push(*byte);
    }
    text
}

/// The inputs of the first rule.
pub(crate) fn inputs_of(text: &[u8]) -> Vec<PathBuf> {
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        match (byte, next) {
            (b'\\', Some(b'\n')) => {
                bytes.next();
                words.push(Vec::new());
            }
            (b'\\', Some(escaped @ (b' ' | b'#' | b':'))) | (b'$', Some(escaped @ b'$')) => {
                bytes.next();
                push(&mut words, escaped);
            }
            (b' ' | b'\t', _) => words.push(Vec::new()),
            (b'\n', _) => break,
            (byte, _) => push(&mut words, byte),
        }
    }
    // The output ends with the first colon before a blank.
    let end = words.iter().position(|word| word.ends_with(b":"));
    let inputs = words.into_iter().skip(end.map_or(0, |end| end + 1));
    let inputs = inputs.filter(|word| !word.is_empty());
    inputs
        .map(|word| PathBuf::from(OsString::from_vec(word)))
        .collect()
}

fn push(words: &mut [Vec<u8>], byte: u8) {
    if let Some(word) = words.last_mut() {
        word.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_and_dollars_come_back() {
        let inputs = ["/a b/c.h", "x$y.h", "#.h", "plain\\.h"].map(PathBuf::from);
        let text = depfile(Path::new("out put.bundle"), &inputs);
        assert_eq!(inputs_of(&text), inputs);
        let of_nvcc = b"f.fatbin : f.cu \\\n    inc/my\\ lib/a.cuh\n\nother : x\n";
        let expected = ["f.cu", "inc/my lib/a.cuh"].map(PathBuf::from);
        assert_eq!(inputs_of(of_nvcc), expected);
        assert!(inputs_of(b"").is_empty());
    }
}
