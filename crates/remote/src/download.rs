//! A blob on its way in: unpacked, counted and hashed as it comes, so that no other bytes than those asked for get by,
//! and none beyond its length are kept.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use warpcc_cache::Digest;
use warpcc_cache::digest::Digesting;

use crate::error::RemoteError;

/// The pieces of one blob.
pub struct Download<W: Write> {
    server: String,
    digest: Digest,
    decoding: Decoding<W>,
}

enum Decoding<W: Write> {
    Plain(Checked<W>),
    Packed(Box<zstd::stream::write::Decoder<'static, Checked<W>>>),
}

impl<W: Write> Download<W> {
    /// Bytes of `digest` from `server`, packed with zstd or not, into `out`.
    ///
    /// # Errors
    /// No memory for the decoder.
    pub fn new(server: &str, digest: &Digest, packed: bool, out: W) -> Result<Self, RemoteError> {
        let checked = Checked {
            out,
            digesting: Digesting::new(),
            left: digest.size,
            surplus: false,
        };
        let decoding = match packed {
            false => Decoding::Plain(checked),
            true => Decoding::Packed(Box::new(unpacker(checked).map_err(|e| local(&e))?)),
        };
        Ok(Self {
            server: server.to_owned(),
            digest: *digest,
            decoding,
        })
    }

    /// The next bytes.
    ///
    /// # Errors There are more bytes than the blob has, or the file cannot be written.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), RemoteError> {
        let written = match &mut self.decoding {
            Decoding::Plain(checked) => checked.write_all(piece),
            Decoding::Packed(decoder) => decoder.write_all(piece),
        };
        written.map_err(|error| self.fault(&error))
    }

    /// There are no more.
    ///
    /// # Errors
    /// They were not the blob's.
    pub fn finish(mut self) -> Result<(), RemoteError> {
        let flushed = match &mut self.decoding {
            Decoding::Plain(checked) => checked.flush(),
            Decoding::Packed(decoder) => decoder.flush(),
        };
        flushed.map_err(|error| self.fault(&error))?;
        let (server, digest) = (self.server, self.digest);
        let checked = match self.decoding {
            Decoding::Plain(checked) => checked,
            Decoding::Packed(decoder) => decoder.into_inner(),
        };
        match checked.digesting.finish() == digest {
            true => Ok(()),
            false => Err(RemoteError::WrongBytes { server, digest }),
        }
    }

    fn fault(&self, error: &io::Error) -> RemoteError {
        let surplus = match &self.decoding {
            Decoding::Plain(checked) => checked.surplus,
            Decoding::Packed(decoder) => decoder.get_ref().surplus,
        };
        match error.kind() {
            // What zstd says of bytes that are not its own.
            _ if surplus => self.wrong(),
            io::ErrorKind::Other | io::ErrorKind::InvalidData => self.wrong(),
            _ => local(error),
        }
    }

    fn wrong(&self) -> RemoteError {
        RemoteError::WrongBytes {
            server: self.server.clone(),
            digest: self.digest,
        }
    }
}

/// A decoder that uses no more memory than the usual levels of zstd need: 8 MiB, as RFC 8878 recommends.
pub fn unpacker<W: Write>(out: W) -> io::Result<zstd::stream::write::Decoder<'static, W>> {
    let mut decoder = zstd::stream::write::Decoder::new(out)?;
    decoder.window_log_max(WIDEST_WINDOW)?;
    Ok(decoder)
}

/// The logarithm of the largest window that a zstd frame may use.
pub const WIDEST_WINDOW: u32 = 23;

/// Hashes the bytes that pass through, and fails if there are more than the blob has.
struct Checked<W> {
    out: W,
    digesting: Digesting,
    left: u64,
    surplus: bool,
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = match self.left.checked_sub(bytes.len() as u64) {
            Some(left) => left,
            None => {
                self.surplus = true;
                return Err(io::Error::from(io::ErrorKind::InvalidData));
            }
        };
        self.digesting.update(bytes);
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A new file for a blob. It is removed again unless it is kept.
pub struct NewFile {
    out: BufWriter<File>,
    path: PathBuf,
    kept: bool,
}

impl NewFile {
    /// Makes the file, which is not there yet.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<Self, RemoteError> {
        let file = File::options().write(true).create_new(true).open(path);
        Ok(Self {
            out: BufWriter::with_capacity(1 << 20, file.map_err(|e| at(path, &e))?),
            path: path.to_path_buf(),
            kept: false,
        })
    }

    /// Where its bytes go.
    pub fn out(&mut self) -> &mut BufWriter<File> {
        &mut self.out
    }

    /// It is whole.
    ///
    /// # Errors
    /// Its last bytes cannot be written.
    pub fn keep(mut self) -> Result<(), RemoteError> {
        self.out.flush().map_err(|e| at(&self.path, &e))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            // A file that cannot be removed is removed later, with the store's other temporary files.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn at(path: &Path, error: &io::Error) -> RemoteError {
    RemoteError::Local {
        path: path.display().to_string(),
        why: error.to_string(),
    }
}

fn local(error: &io::Error) -> RemoteError {
    RemoteError::Local {
        path: "a blob that is downloaded".to_owned(),
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(sent: &[u8], asked: &Digest, packed: bool) -> Result<Vec<u8>, RemoteError> {
        let mut out = Vec::new();
        let mut download = Download::new("here", asked, packed, &mut out)?;
        for piece in sent.chunks(3) {
            download.take(piece)?;
        }
        download.finish()?;
        Ok(out)
    }

    #[test]
    fn only_the_bytes_asked_for_get_by() {
        let bytes = b"cubin ".repeat(1000);
        let digest = Digest::of_bytes(&bytes);
        assert_eq!(arrive(&bytes, &digest, false).expect("plain"), bytes);
        let packed = zstd::bulk::compress(&bytes, 3).expect("pack");
        assert_eq!(arrive(&packed, &digest, true).expect("packed"), bytes);
        let bomb = zstd::bulk::compress(&vec![0; 50 << 20], 3).expect("pack");
        for (sent, packed) in [
            (&bytes[1..], false),
            (&[&bytes[..], b"x"].concat(), false),
            (&packed[..packed.len() - 1], true),
            (&bytes, true),
            (&bomb, true),
            (b"", false),
        ] {
            let wrong = arrive(sent, &digest, packed);
            assert!(
                matches!(wrong, Err(RemoteError::WrongBytes { .. })),
                "{wrong:?}"
            );
        }
    }
}
