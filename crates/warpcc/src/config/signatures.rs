//! The settings of signatures: `WARPCC_REMOTE_TRUSTED_KEYS` and those like it. They apply to each shared cache that has no such
//! settings of its own.

use std::path::{Path, PathBuf};

use warpcc_remote_client::auth::Secret;
use warpcc_remote_client::signatures::{Signatures, SigningKey};

use super::key::Key;
use super::value::{self, Raw};
use super::{Setting, SettingSource};

/// The keys that sign and check results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureSettings {
    /// Public keys, and files with public keys.
    pub trusted_keys: Setting<Option<String>>,
    /// The signing key itself.
    pub signing_key: Setting<Option<Secret>>,
    /// A file with the signing key.
    pub signing_key_file: Setting<Option<PathBuf>>,
    /// A command that prints the signing key.
    pub signing_key_command: Setting<Option<String>>,
}

impl Default for SignatureSettings {
    fn default() -> Self {
        Self {
            trusted_keys: Setting::default_of(None),
            signing_key: Setting::default_of(None),
            signing_key_file: Setting::default_of(None),
            signing_key_command: Setting::default_of(None),
        }
    }
}

impl SignatureSettings {
    /// The settings in the form in which shared caches take them.
    pub fn defaults(&self) -> Signatures {
        Signatures {
            signing_key: SigningKey::first_of(
                self.signing_key.value.clone(),
                self.signing_key_file.value.clone(),
                self.signing_key_command.value.clone(),
            ),
            trusted_keys: self.trusted_keys.value.clone(),
        }
    }

    /// Reads one of these settings; `None` where `key` is another setting.
    pub(super) fn set(
        &mut self,
        key: Key,
        raw: &Raw,
        source: &SettingSource,
        home: Option<&Path>,
    ) -> Option<Result<(), &'static str>> {
        Some(match key {
            Key::RemoteTrustedKeys => {
                value::words(raw).map(|v| self.trusted_keys.assign(Some(v), source))
            }
            Key::RemoteSigner => {
                value::text(raw).map(|v| self.signing_key.assign(Some(Secret::new(&v)), source))
            }
            Key::RemoteSignerFile => {
                value::path(raw, home).map(|v| self.signing_key_file.assign(Some(v), source))
            }
            Key::RemoteSignerCommand => {
                value::text(raw).map(|v| self.signing_key_command.assign(Some(v), source))
            }
            _ => return None,
        })
    }

    /// One of these settings as text, with its source; `None` where `key` is another setting.
    pub(super) fn row(&self, key: Key) -> Option<(String, &SettingSource)> {
        let text = |setting: &Setting<Option<String>>| setting.value.clone().unwrap_or_default();
        Some(match key {
            Key::RemoteTrustedKeys => (text(&self.trusted_keys), &self.trusted_keys.source),
            Key::RemoteSigner => self.signing_key.hidden_row(),
            Key::RemoteSignerFile => {
                let path = self.signing_key_file.value.as_ref();
                let path = path.map(|path| path.display().to_string());
                (path.unwrap_or_default(), &self.signing_key_file.source)
            }
            // It may hold a password.
            Key::RemoteSignerCommand => self.signing_key_command.hidden_row(),
            _ => return None,
        })
    }
}
