//! Signed records: decides which results are accepted from a shared cache. See `docs/design/signatures.md`.
//!
//! ```text
//! "WCCREM01" frame                               unsigned
//! "WCCREM02" public key, signature, frame        signed: the domain, the cache key and the frame
//! ```

use ring::signature::{ED25519, UnparsedPublicKey};
use tokio::sync::OnceCell;
use warpcc_cache::Key;
use warpcc_remote_client::signatures::Signatures;

use crate::error::RemoteError;
use crate::keys::{KEY_BYTES, PublicKey, Signer, TrustedKeys};

/// Begins an unsigned record.
pub const UNSIGNED: &[u8] = b"WCCREM01";
/// Begins a signed one.
pub const SIGNED: &[u8] = b"WCCREM02";
/// What a signature is for, and its version.
const DOMAIN: &[u8] = b"warpcc shared cache record, signature 1\0";
const SIGNATURE_BYTES: usize = 64;

/// Why an intact record is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// It has no signature.
    Unsigned,
    /// Its key is not trusted, or is revoked.
    Foreign,
    /// The signature is not valid for this record under this key.
    BadSignature,
}

impl Rejection {
    /// Its counter, behind `remote.`.
    pub fn counter(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Foreign => "foreign",
            Self::BadSignature => "bad_signature",
        }
    }
}

/// The parts of a packed record.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordParts<'r> {
    /// The public key and the signature of a signed one.
    signature: Option<(PublicKey, &'r [u8])>,
    /// The record as a zstd frame.
    pub frame: &'r [u8],
}

impl<'r> RecordParts<'r> {
    /// `None` if the bytes are not a packed record.
    pub fn split(packed: &'r [u8]) -> Option<Self> {
        if let Some(frame) = packed.strip_prefix(UNSIGNED) {
            let signature = None;
            return Some(Self { signature, frame });
        }
        let (public, rest) = packed
            .strip_prefix(SIGNED)?
            .split_first_chunk::<KEY_BYTES>()?;
        let (signature, frame) = rest.split_at_checked(SIGNATURE_BYTES)?;
        Some(Self {
            signature: Some((*public, signature)),
            frame,
        })
    }

    /// Whether it has a signature.
    pub fn is_signed(&self) -> bool {
        self.signature.is_some()
    }
}

/// The keys whose records are accepted from one shared cache, and the key that signs ours.
pub struct Trust {
    settings: Signatures,
    keys: TrustedKeys,
    signer: OnceCell<Result<Signer, RemoteError>>,
}

impl Trust {
    /// Reads the trusted keys that the settings name. The signing key is not read yet.
    ///
    /// # Errors A file cannot be read, or a word is not a key. Nothing is trusted then.
    pub fn new(settings: &Signatures) -> Result<Self, RemoteError> {
        let list = settings.trusted_keys.as_deref();
        let list = list.filter(|_| settings.are_demanded());
        Ok(Self {
            settings: settings.clone(),
            keys: TrustedKeys::read(list.unwrap_or_default())?,
            signer: OnceCell::new(),
        })
    }

    /// The key that signs uploads; none where uploads are not signed.
    ///
    /// # Errors
    /// It cannot be read, or is revoked.
    pub async fn signer(&self) -> Result<Option<&Signer>, RemoteError> {
        let Some(origin) = self.settings.signer() else {
            return Ok(None);
        };
        let load = async || {
            let signer = Signer::load(origin).await?;
            match self.keys.is_revoked(&signer.public) {
                false => Ok(signer),
                true => Err(RemoteError::Key {
                    place: "the signing key".to_owned(),
                    why: "is revoked in the list of trusted keys: use another one".to_owned(),
                }),
            }
        };
        let signer = self.signer.get_or_init(load).await;
        signer.as_ref().map(Some).map_err(Clone::clone)
    }

    /// Whether a record may be used under `key`.
    ///
    /// # Errors
    /// Why not.
    pub async fn check(&self, parts: &RecordParts<'_>, key: &Key) -> Result<(), Rejection> {
        if !self.settings.are_demanded() {
            return Ok(());
        }
        let (public, signature) = parts.signature.ok_or(Rejection::Unsigned)?;
        if !self.keys.trusts(&public) && !self.is_ours(&public).await {
            return Err(Rejection::Foreign);
        }
        let text = signed_text(key, parts.frame);
        let verified = UnparsedPublicKey::new(&ED25519, public).verify(&text, signature);
        verified.map_err(|_| Rejection::BadSignature)
    }

    /// Our own key is trusted although it is not in the list. It is checked only if no key in the list fits.
    async fn is_ours(&self, public: &PublicKey) -> bool {
        let signer = self.signer().await;
        signer.is_ok_and(|signer| signer.is_some_and(|signer| signer.public == *public))
    }
}

/// The packed record for `key`, signed if there is a signer.
pub fn wrap(key: &Key, frame: &[u8], signer: Option<&Signer>) -> Vec<u8> {
    match signer {
        None => [UNSIGNED, frame].concat(),
        Some(signer) => {
            let signature = signer.sign(&signed_text(key, frame));
            [SIGNED, &signer.public, &signature, frame].concat()
        }
    }
}

fn signed_text(key: &Key, frame: &[u8]) -> Vec<u8> {
    [DOMAIN, &key.0, frame].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::generate;
    use warpcc_remote_client::auth::Secret;
    use warpcc_remote_client::signatures::SigningKey;

    const KEY: Key = Key([7; 32]);

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(future)
    }

    fn trust(trusted: Option<&str>, secret: Option<&str>) -> Trust {
        let signing_key = secret.map(|secret| SigningKey::Given(Secret::new(secret)));
        Trust::new(&Signatures {
            signing_key,
            trusted_keys: trusted.map(str::to_owned),
        })
        .expect("keys")
    }

    fn signed(secret: &str, key: &Key, frame: &[u8]) -> Vec<u8> {
        let trust = trust(None, Some(secret));
        let signer = block_on(trust.signer()).expect("a key");
        wrap(key, frame, signer)
    }

    fn checked(trust: &Trust, packed: &[u8], key: &Key) -> Result<(), Rejection> {
        let parts = RecordParts::split(packed).expect("a record");
        block_on(trust.check(&parts, key))
    }

    #[test]
    fn only_what_a_trusted_key_has_signed_is_taken() {
        let (ours, theirs) = (
            generate("ours").expect("keys"),
            generate("theirs").expect("keys"),
        );
        let reader = trust(Some(&ours.public), None);
        let packed = signed(&ours.secret, &KEY, b"frame");
        assert_eq!(checked(&reader, &packed, &KEY), Ok(()));
        let unsigned = wrap(&KEY, b"frame", None);
        assert_eq!(checked(&reader, &unsigned, &KEY), Err(Rejection::Unsigned));
        let foreign = signed(&theirs.secret, &KEY, b"frame");
        assert_eq!(checked(&reader, &foreign, &KEY), Err(Rejection::Foreign));
        // A signer trusts its own key, and no other.
        let signer = trust(None, Some(&ours.secret));
        assert_eq!(checked(&signer, &packed, &KEY), Ok(()));
        assert_eq!(checked(&signer, &foreign, &KEY), Err(Rejection::Foreign));
        assert_eq!(checked(&signer, &unsigned, &KEY), Err(Rejection::Unsigned));
        // A revoked key is nobody's, not even its holder's.
        let revoked = format!("{0} !{0}", ours.public);
        assert_eq!(
            checked(&trust(Some(&revoked), None), &packed, &KEY),
            Err(Rejection::Foreign)
        );
        let holder = trust(Some(&revoked), Some(&ours.secret));
        assert_eq!(checked(&holder, &packed, &KEY), Err(Rejection::Foreign));
        assert!(block_on(holder.signer()).is_err());
        // Nobody is asked for signatures.
        assert_eq!(checked(&trust(None, None), &unsigned, &KEY), Ok(()));
        assert_eq!(checked(&trust(Some("none"), None), &foreign, &KEY), Ok(()));
    }

    #[test]
    fn every_byte_and_the_key_count() {
        let keys = generate("ours").expect("keys");
        let reader = trust(Some(&keys.public), None);
        let packed = signed(&keys.secret, &KEY, b"a frame");
        assert_eq!(
            checked(&reader, &packed, &Key([8; 32])),
            Err(Rejection::BadSignature)
        );
        for at in SIGNED.len()..packed.len() {
            let mut changed = packed.clone();
            changed[at] ^= 1;
            assert!(checked(&reader, &changed, &KEY).is_err(), "byte {at}");
        }
        let longer = [&packed[..], b"x"].concat();
        assert_eq!(
            checked(&reader, &longer, &KEY),
            Err(Rejection::BadSignature)
        );
        for length in 0..packed.len() {
            let taken = RecordParts::split(&packed[..length])
                .is_some_and(|parts| block_on(reader.check(&parts, &KEY)).is_ok());
            assert!(!taken, "{length} bytes");
        }
        // A signature for another version.
        let signer =
            block_on(Signer::load(&SigningKey::Given(Secret::new(&keys.secret)))).expect("a key");
        let text = [
            &b"warpcc shared cache record, signature 2\0"[..],
            &KEY.0,
            b"a frame",
        ]
        .concat();
        let other = [SIGNED, &signer.public, &signer.sign(&text), b"a frame"].concat();
        assert_eq!(checked(&reader, &other, &KEY), Err(Rejection::BadSignature));
        assert_eq!(RecordParts::split(b"WCCREM03"), None);
    }
}
