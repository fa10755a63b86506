//! Reads the record under a key from a server, checks its signature and unpacks it.

use warpcc_cache::{Key, RECORD_VERSION, RecordError, Variant};

use crate::action_result::{self, RecordLocation};
use crate::backend::Backend;
use crate::error::RemoteError;
use crate::signature::{RecordParts, Rejection, Trust};

/// A server, with the keys whose records are accepted from it and the key that signs ours.
pub struct Peer<'a, B> {
    /// The client.
    pub backend: &'a B,
    /// Its name in messages.
    pub name: &'a str,
    /// Whose records are taken, and which key signs ours.
    pub trust: &'a Trust,
    /// Its results go to no other shared cache.
    pub untrusted: bool,
}

impl RemoteRecord {
    /// Whether a newer warpcc wrote it. It is then not replaced, because newer programs read it.
    pub fn is_newer(&self) -> bool {
        self.other_version
            .is_some_and(|version| version > RECORD_VERSION)
    }
}

impl<B> Clone for Peer<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Peer<'_, B> {}

/// What a server has under a key.
#[derive(Debug, Default)]
pub struct RemoteRecord {
    /// Variants that may be used, as far as their origin is concerned.
    pub variants: Vec<Variant>,
    /// Why there are none, where there is a record.
    pub rejection: Option<Rejection>,
    /// It has a signature.
    pub is_signed: bool,
    /// The version of its format, where this program does not read it.
    pub other_version: Option<u32>,
    /// Bytes that came.
    pub bytes: u64,
}

impl<B: Backend> Peer<'_, B> {
    /// Reads the record under `key`.
    ///
    /// # Errors
    /// The server's, or a record that is damaged.
    pub async fn record(&self, key: &Key) -> Result<RemoteRecord, RemoteError> {
        let Some(packed) = self.packed_record(key).await? else {
            return Ok(RemoteRecord::default());
        };
        let invalid = |why: &dyn std::fmt::Display| RemoteError::Answer {
            server: self.name.to_owned(),
            why: format!("an invalid result for {key}: {why}"),
        };
        let bytes = packed.len() as u64;
        let parts = RecordParts::split(&packed);
        let parts = parts.ok_or_else(|| invalid(&RecordError::Magic))?;
        let is_signed = parts.is_signed();
        // Before anything is unpacked.
        let mut other_version = None;
        let (variants, rejection) = match self.trust.check(&parts, key).await {
            Ok(()) => match action_result::variants(parts.frame, key) {
                Ok(variants) => (variants, None),
                // This is no error of the server: another version of warpcc uses it too.
                Err(RecordError::Version(version)) => {
                    other_version = Some(version);
                    (Vec::new(), None)
                }
                Err(why) => return Err(invalid(&why)),
            },
            Err(rejection) => (Vec::new(), Some(rejection)),
        };
        Ok(RemoteRecord {
            variants,
            rejection,
            is_signed,
            other_version,
            bytes,
        })
    }

    async fn packed_record(&self, key: &Key) -> Result<Option<Vec<u8>>, RemoteError> {
        let Some(result) = self.backend.result(key).await? else {
            return Ok(None);
        };
        match action_result::locate_record(&result) {
            RecordLocation::Inline(packed) => Ok(Some(packed)),
            RecordLocation::Blob(digest) if digest.size > action_result::LARGEST as u64 => {
                Err(RemoteError::Answer {
                    server: self.name.to_owned(),
                    why: format!("a record of {} bytes, which is too large", digest.size),
                })
            }
            RecordLocation::Blob(digest) => {
                let read = self.backend.read_small(&[digest]).await?;
                Ok(read.into_iter().next().flatten())
            }
            // It is of another program, or of an executed action.
            RecordLocation::Absent => Ok(None),
        }
    }
}
