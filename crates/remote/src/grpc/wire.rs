//! Digests as the protocol writes them.

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use warpcc_cache::{Digest, Key};

/// As the protocol writes it.
pub(crate) fn to_wire(digest: &Digest) -> re::Digest {
    re::Digest {
        hash: digest.hex(),
        size_bytes: i64::try_from(digest.size).unwrap_or(i64::MAX),
    }
}

/// As we write it; nothing where it is none.
pub(crate) fn from_wire(digest: &re::Digest) -> Option<Digest> {
    format!("{}/{}", digest.hash, digest.size_bytes)
        .parse()
        .ok()
}

/// A key as the digest of an action. It is the hash of a list of parts that no server holds as a blob: the length is
/// the key's own, the same always, because servers tell digests apart by both.
pub(super) fn digest_of(key: &Key) -> Digest {
    Digest {
        hash: key.0,
        size: key.0.len() as u64,
    }
}
