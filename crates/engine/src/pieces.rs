//! Reads a file piece by piece: for a preprocessed text of 13 MB, the page faults of one large buffer cost five times as
//! much as the reading. Where the whole text is needed, its memory has large pages.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use memchr::memrchr;
use memmap2::{Advice, MmapMut};

/// The size of a piece in bytes: small enough for malloc's own pool and for the processor's cache.
const PIECE: usize = 1 << 16;

/// Passes a file to `take` in pieces, and says which piece is the last. `take` returns how many bytes it has finished; the
/// rest comes again at the start of the next piece. `None` stops the reading.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path, mut take: impl FnMut(&[u8], bool) -> Option<usize>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; PIECE];
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let count = match file.read(&mut buffer[filled..]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        filled += count;
        let done = take(&buffer[..filled], count == 0);
        let Some(done) = done.filter(|_| count > 0) else {
            return Ok(());
        };
        buffer.copy_within(done..filled, 0);
        filled -= done;
    }
}

/// Reads a whole file into memory with large pages, if the system has them.
///
/// # Errors
/// The file cannot be read, or its length changes meanwhile.
pub fn read_whole(path: &Path) -> io::Result<MmapMut> {
    let mut file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut text = MmapMut::map_anon(length)?;
    let _ = text.advise(Advice::HugePage);
    file.read_exact(&mut text)?;
    match file.read(&mut [0])? {
        0 => Ok(text),
        _ => Err(io::Error::other("a text grew while it was read")),
    }
}

/// Shows a text to `each`, some whole lines at a time, as long as it says to go on.
///
/// # Errors
/// The file cannot be read.
pub fn read_lines(path: &Path, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    read(path, |text, is_end| {
        let whole = whole_lines(text, is_end);
        each(whole).then_some(whole.len())
    })
}

/// The lines that are there from their beginnings to their ends.
pub fn whole_lines(text: &[u8], is_end: bool) -> &[u8] {
    match is_end {
        true => text,
        false => &text[..memrchr(b'\n', text).map_or(0, |at| at + 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_come_whole_and_in_order() {
        let file = tempfile::NamedTempFile::new().expect("file");
        for length in [0, 1, 100, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE] {
            for end in ["", "\n", "\nx"] {
                let text = format!("a\n{}\nb{end}", "x".repeat(length)).repeat(3);
                std::fs::write(file.path(), &text).expect("write");
                let mut read = Vec::new();
                read_lines(file.path(), |lines| {
                    assert!(read.is_empty() || read.ends_with(b"\n") || lines.is_empty());
                    read.extend_from_slice(lines);
                    true
                })
                .expect("read");
                assert!(read == text.as_bytes(), "{length} {end:?}");
            }
        }
        let mut calls = 0;
        read_lines(file.path(), |_| {
            calls += 1;
            false
        })
        .expect("read");
        assert_eq!(calls, 1);
        for text in ["", "a", "a\nb\n"] {
            std::fs::write(file.path(), text).expect("write");
            assert_eq!(*read_whole(file.path()).expect("read"), *text.as_bytes());
        }
        // It says that it is empty, and is not.
        assert!(read_whole(Path::new("/proc/self/status")).is_err());
        assert!(read_whole(Path::new("/")).is_err());
        assert!(read_lines(Path::new("/"), |_| true).is_err());
    }
}
