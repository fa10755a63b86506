//! Digests of bytes: SHA-256 and length, as in the Remote Execution API's `Digest`.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::regular_file;

/// The SHA-256 of some bytes, and their number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest {
    /// The SHA-256.
    pub hash: [u8; 32],
    /// The length in bytes.
    pub size: u64,
}

impl Digest {
    /// The digest of bytes in memory.
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest {
            hash: Sha256::digest(bytes).into(),
            size: bytes.len() as u64,
        }
    }

    /// The digest of a regular file's content.
    pub fn of_file(path: &Path) -> io::Result<Digest> {
        let mut file = regular_file::open(path)?;
        let mut digesting = Digesting::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(digesting.finish()),
                Ok(n) => digesting.update(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The SHA-256 in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        to_hex(&self.hash)
    }
}

/// Computes a digest of bytes that arrive in pieces.
#[derive(Clone, Default)]
pub struct Digesting {
    hasher: Sha256,
    size: u64,
}

impl Digesting {
    /// Starts with no bytes.
    pub fn new() -> Digesting {
        Digesting::default()
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// The digest of all bytes added.
    pub fn finish(self) -> Digest {
        Digest {
            hash: self.hasher.finalize().into(),
            size: self.size,
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.hex(), self.size)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A text that is not `<64 hexadecimal digits>/<length>`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a digest (64 hexadecimal digits, a slash, a length): {0:?}")]
pub struct NotADigest(pub String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Digest, NotADigest> {
        let parsed = text.split_once('/').and_then(|(hash, size)| {
            // `u64::from_str` would accept a sign, which Display never writes.
            let digits = !size.is_empty() && size.bytes().all(|b| b.is_ascii_digit());
            Some(Digest {
                hash: from_hex(hash)?,
                size: if digits {
                    size.parse().ok()?
                } else {
                    return None;
                },
            })
        });
        parsed.ok_or_else(|| NotADigest(text.to_owned()))
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

/// Parses exactly 64 lower-case hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_is_the_known_sha256() {
        let digest = Digest::of_bytes(b"");
        assert_eq!(
            digest.to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855/0"
        );
    }

    #[test]
    fn text_goes_round() {
        let digest = Digest::of_bytes(b"warp");
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }

    #[test]
    fn other_texts_are_refused() {
        let hex = Digest::of_bytes(b"").hex();
        let wrong = [
            String::new(),
            hex.clone(),
            format!("{hex}/"),
            format!("{hex}/+1"),
            format!("{hex}/-1"),
            format!("{}/1", hex.to_uppercase()),
            format!("{hex}0/1"),
            format!("{hex}/99999999999999999999"),
            format!("{}é/1", &hex[..62]),
        ];
        for text in wrong {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_and_its_bytes_agree() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("f");
        let bytes = vec![7; 600_000];
        std::fs::write(&path, &bytes).expect("write");
        assert_eq!(
            Digest::of_file(&path).expect("read"),
            Digest::of_bytes(&bytes)
        );
    }
}
