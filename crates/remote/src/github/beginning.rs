//! The first bytes of a bundle: which one it is, and where its index is.
//!
//! ```text
//! "warpccB1"  the bundle: u64  begin of the index: u64  its packed length: u64   blobs and results   the index as a zstd frame
//! ```

use reqwest::{StatusCode, Url};

use super::service::Service;
use crate::deadline::Pace;
use crate::error::RemoteError;
use warpcc_remote_client::bundle_index::{self as index, Bundle};

const MAGIC: &[u8; 8] = b"warpccB1";
/// Bytes before the first blob.
pub const LENGTH: usize = 32;

/// What they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning {
    /// Which bundle it is.
    pub bundle: Bundle,
    /// Where its index begins.
    pub index: u64,
    /// Packed length of the index.
    pub length: u64,
}

impl Beginning {
    /// The bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.bundle.0, self.index, self.length] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// What these bytes say; none where they are no bundle's.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (numbers, _) = rest.first_chunk::<24>()?.as_chunks::<8>();
        let [bundle, index, length] = numbers else {
            return None;
        };
        let begins = Self {
            bundle: Bundle(u64::from_le_bytes(*bundle)),
            index: u64::from_le_bytes(*index),
            length: u64::from_le_bytes(*length),
        };
        let fits = begins.index >= LENGTH as u64 && begins.length <= index::LARGEST as u64;
        fits.then_some(begins)
    }
}

/// Asks for the beginning of the bundle at `url`. None where that is no bundle.
///
/// # Errors
/// As all requests.
pub async fn fetch(service: &Service, url: &Url) -> Result<Option<Beginning>, RemoteError> {
    let mut response = service.get(url, 0, LENGTH as u64 - 1).await?;
    match response.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
        StatusCode::NOT_FOUND | StatusCode::RANGE_NOT_SATISFIABLE => return Ok(None),
        status => return Err(service.refusal(status, "")),
    }
    let pace = Pace::new(service.answer());
    let mut bytes = Vec::new();
    while bytes.len() < LENGTH {
        let next = async { response.chunk().await.map_err(|e| service.broken(e)) };
        match pace.next_from(service.server(), next).await? {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => break,
        }
    }
    Ok(Beginning::read(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_goes_round_and_nothing_else_is_one() {
        let begins = Beginning {
            bundle: Bundle::new(7, 0),
            index: 4000,
            length: 99,
        };
        let bytes = begins.bytes();
        assert_eq!(
            (bytes.len(), Beginning::read(&bytes)),
            (LENGTH, Some(begins))
        );
        assert_eq!(begins.bundle.number(), 7);
        for wrong in [
            Beginning { index: 3, ..begins },
            Beginning {
                length: u64::MAX,
                ..begins
            },
        ] {
            assert_eq!(Beginning::read(&wrong.bytes()), None);
        }
        assert_eq!(Beginning::read(&bytes[..LENGTH - 1]), None);
        assert_eq!(Beginning::read(&[0; LENGTH]), None);
    }
}
