//! Keys of signatures as texts of one line, and where they are read from: variables, files, commands.
//!
//! ```text
//! warpcc-secret-ed25519:NAME:<32 bytes, URL-safe base64>     signs; nobody but its holder may see it
//! warpcc-public-ed25519:NAME:<32 bytes, URL-safe base64>     for those who check
//! ```
//!
//! A list of trusted keys has public keys and files with public keys. `!` before a public key revokes it.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use tokio::io::AsyncReadExt;
use warpcc_remote_client::protocol::NewKeys;
use warpcc_remote_client::signatures::SigningKey;

use crate::error::RemoteError;

const SECRET: &str = "warpcc-secret-ed25519:";
const PUBLIC: &str = "warpcc-public-ed25519:";
/// The length of a public key, and of the secret from which it is made.
pub const KEY_BYTES: usize = 32;
/// Longest file or output with keys, in bytes.
const LONGEST: u64 = 1 << 20;
/// Deadline of a command that prints a key.
const COMMAND_WITHIN: Duration = Duration::from_secs(20);

/// A public key.
pub type PublicKey = [u8; KEY_BYTES];

/// The keys that a list trusts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrustedKeys {
    trusted: BTreeSet<PublicKey>,
    revoked: BTreeSet<PublicKey>,
}

impl TrustedKeys {
    /// Reads a list: keys and files with commas or white space between.
    ///
    /// # Errors A file cannot be read, or a word is not a key.
    pub fn read(list: &str) -> Result<Self, RemoteError> {
        let mut keys = Self::default();
        for word in list.split([',', ' ', '\t', '\n']).filter(|w| !w.is_empty()) {
            let is_key = word.trim_start_matches('!').starts_with("warpcc-");
            match is_key {
                true => keys.add(word, "the list of trusted keys")?,
                false => keys.add_file(Path::new(word))?,
            }
        }
        Ok(keys)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), RemoteError> {
        let place = path.display().to_string();
        let text = read_file(path).map_err(|why| error(&place, &why))?;
        for line in key_lines(&text) {
            for word in line.split_whitespace() {
                self.add(word, &place)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, word: &str, place: &str) -> Result<(), RemoteError> {
        let (keys, text) = match word.strip_prefix('!') {
            Some(revoked) => (&mut self.revoked, revoked),
            None => (&mut self.trusted, word),
        };
        let key = public_key(text).map_err(|why| error(place, why))?;
        keys.insert(key);
        Ok(())
    }

    /// Whether results signed with `key` are taken.
    pub fn trusts(&self, key: &PublicKey) -> bool {
        self.trusted.contains(key) && !self.is_revoked(key)
    }

    /// Whether `key` is revoked. This overrides any trust.
    pub fn is_revoked(&self, key: &PublicKey) -> bool {
        self.revoked.contains(key)
    }
}

/// Lines without comments and empty ones.
fn key_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty())
}

fn public_key(text: &str) -> Result<PublicKey, &'static str> {
    if text.starts_with(SECRET) {
        return Err(
            "has a secret key where a public key should be: list the public key instead, and revoke this one if others could \
             read it",
        );
    }
    decode(text, PUBLIC).ok_or("is not a public key (warpcc-public-ed25519:NAME:…)")
}

fn decode(text: &str, kind: &str) -> Option<[u8; KEY_BYTES]> {
    let (_, encoded) = text.trim().strip_prefix(kind)?.rsplit_once(':')?;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(encoded).ok()?;
    bytes.try_into().ok()
}

/// A key pair that signs.
pub struct Signer {
    pair: Ed25519KeyPair,
    /// Its public half.
    pub public: PublicKey,
    /// A warning about where the key is.
    pub warning: Option<String>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    /// The key at `origin`.
    ///
    /// # Errors It cannot be read, or is not a key. The error names the place, never the content.
    pub async fn load(origin: &SigningKey) -> Result<Self, RemoteError> {
        let mut warning = None;
        let (place, text) = match origin {
            SigningKey::Given(secret) => (
                "the signing key's variable".to_owned(),
                Ok(secret.reveal().to_owned()),
            ),
            SigningKey::File(path) => {
                warning = readable_by_others(path);
                (path.display().to_string(), read_file(path))
            }
            SigningKey::Command(command) => {
                ("the signing key's command".to_owned(), run(command).await)
            }
        };
        let text = text.map_err(|why| error(&place, &why))?;
        let mut signer = Self::parse(&text).map_err(|why| error(&place, why))?;
        signer.warning = warning;
        Ok(signer)
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut lines = key_lines(text);
        let line = lines.next().unwrap_or_default();
        if lines.next().is_some() {
            return Err("has more than one line: a signing key is one");
        }
        if line.starts_with(PUBLIC) {
            return Err("has a public key where the secret one should be");
        }
        let secret = decode(line, SECRET).ok_or(
            "is not a signing key (warpcc-secret-ed25519:NAME:…, from `warpcc remote keygen`)",
        )?;
        let pair =
            Ed25519KeyPair::from_seed_unchecked(&secret).map_err(|_| "is not a signing key")?;
        let public = pair.public_key().as_ref().try_into();
        Ok(Self {
            public: public.map_err(|_| "is not a signing key")?,
            pair,
            warning: None,
        })
    }

    /// Signs a text.
    pub fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.pair.sign(text).as_ref().to_vec()
    }
}

/// A new pair of keys called `name`.
///
/// # Errors A key cannot have this name, or the system has no random bytes.
pub fn generate(name: &str) -> Result<NewKeys, String> {
    let may_be_in_name = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(may_be_in_name) {
        return Err(format!(
            "{name:?} cannot be the name of a key: use 1 to 64 letters, digits and ._-@"
        ));
    }
    let mut seed = [0; KEY_BYTES];
    let random = SystemRandom::new().fill(&mut seed);
    random.map_err(|_| "the system has no random bytes".to_owned())?;
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|e| e.to_string())?;
    let text =
        |kind: &str, bytes: &[u8]| format!("{kind}{name}:{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
    Ok(NewKeys {
        secret: text(SECRET, &seed),
        public: text(PUBLIC, pair.public_key().as_ref()),
    })
}

fn read_file(path: &Path) -> Result<String, String> {
    let unreadable = |e: std::io::Error| format!("cannot be read: {e}");
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    let read = file.take(LONGEST).read_to_string(&mut text);
    read.map_err(unreadable).map(|_| text)
}

/// The standard output of the command. Its messages are not shown, because they may contain the key.
async fn run(command: &str) -> Result<String, String> {
    let printing = async {
        let mut child = tokio::process::Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| format!("cannot be started: {e}"))?;
        let mut text = String::new();
        if let Some(stdout) = child.stdout.take() {
            let read = stdout.take(LONGEST).read_to_string(&mut text).await;
            read.map_err(|e| format!("cannot be read: {e}"))?;
        }
        let status = child
            .wait()
            .await
            .map_err(|e| format!("cannot be waited for: {e}"))?;
        match status.success() {
            true => Ok(text),
            false => Err(format!("failed ({status}); run it by hand")),
        }
    };
    let printed = tokio::time::timeout(COMMAND_WITHIN, printing).await;
    printed.unwrap_or_else(|_| Err(format!("did not end within {} s", COMMAND_WITHIN.as_secs())))
}

/// A warning if others can read the file.
fn readable_by_others(path: &PathBuf) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.mode();
    (mode & 0o077 != 0).then(|| {
        let path = path.display();
        format!(
            "the signing key {path} can be read by others (mode {:03o}): chmod 600 {path}",
            mode & 0o777
        )
    })
}

fn error(place: &str, why: &str) -> RemoteError {
    RemoteError::Key {
        place: place.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back_and_revoked_ones_are_not_trusted() {
        let keys = generate("ci-2026").expect("keys");
        let signer = Signer::parse(&format!("# CI\n{}\n", keys.secret)).expect("a key");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("trusted");
        std::fs::write(&file, format!("# ours\n{}   # until May\n\n", keys.public))
            .expect("written");
        let list = file.display().to_string();
        assert!(
            TrustedKeys::read(&list)
                .expect("a list")
                .trusts(&signer.public)
        );
        let revoked = TrustedKeys::read(&format!("!{},{list}", keys.public)).expect("a list");
        assert!(!revoked.trusts(&signer.public) && revoked.is_revoked(&signer.public));
        let other = generate("other").expect("keys");
        assert!(
            !TrustedKeys::read(&other.public)
                .expect("a list")
                .trusts(&signer.public)
        );
    }

    #[test]
    fn what_is_no_key_is_named_and_not_shown() {
        let keys = generate("ci").expect("keys");
        let cut = &keys.public[..keys.public.len() - 4];
        for list in [
            cut,
            &keys.secret,
            "warpcc-public-ed25519:x",
            "/nowhere/keys",
            "!warpcc-",
        ] {
            let error = TrustedKeys::read(list).expect_err(list).to_string();
            let secret = keys.secret.rsplit(':').next().expect("a secret");
            assert!(!error.contains(secret), "{error}");
        }
        for text in ["", "x", &keys.public, &format!("{0}\n{0}", keys.secret)] {
            assert!(Signer::parse(text).is_err(), "{text}");
        }
        assert!(generate("a:b").is_err() && generate("").is_err());
    }
}
