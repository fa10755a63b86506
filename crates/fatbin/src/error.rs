//! Problems of a file. The rest of the file can still be read.

use serde::Serialize;

/// A flaw at one place of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The bytes end before what they promise.
    #[error("truncated: it is longer than what is left of the file")]
    Truncated,
    /// An image header with an impossible length.
    #[error("corrupt: an image header of {0} bytes")]
    HeaderSize(u32),
    /// A container header that is not valid.
    #[error("corrupt: a container of version {version} with a header of {header_size} bytes")]
    Container {
        /// As in the header; 1 is known.
        version: u16,
        /// As in the header, in bytes; 16 is known.
        header_size: u16,
    },
    /// The format of CUDA 3 and before.
    #[error("a fat binary of CUDA 3 or older, which is not supported")]
    Ancient,
    /// Bytes between containers.
    #[error("corrupt: {0} bytes that are neither a container nor padding")]
    Stray(u64),
    /// The parts of a concatenated image do not add up.
    #[error("corrupt: the table of a concatenated image")]
    Table,
    /// A payload that does not decompress.
    #[error("corrupt: {0}")]
    Payload(String),
    /// A size above the limit.
    #[error("refused: {said} bytes of {what}, more than the limit of {limit}")]
    TooLarge {
        /// The part that would be that large.
        what: &'static str,
        /// The size that the file states, in bytes.
        said: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// Compressed in a way that is not known.
    #[error("compressed by a method that is not supported")]
    Method,
    /// An ELF file or archive that cannot be followed.
    #[error("corrupt: {0}")]
    Host(String),
    /// A kind of file that is recognised and not read.
    #[error("{0} is not supported")]
    NotSupported(&'static str),
}

/// A flaw, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The archive's member, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// The flaw.
    #[serde(serialize_with = "as_text")]
    pub flaw: Flaw,
}

fn as_text<S: serde::Serializer>(flaw: &Flaw, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(flaw)
}

/// Limits for the memory and time that a hostile file can cost.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// The largest image after decompression, in bytes. The largest that was seen in a shipped
    /// library has 159 MB (NCCL). Concatenated images of one file are held at once: together they
    /// may have as many.
    pub image: u64,
    /// The largest member of a wheel, in bytes; it is unpacked to a temporary file.
    pub member: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            image: 1 << 30,
            member: 16 << 30,
        }
    }
}
