//! The settings of signatures: where the signing key is, and which keys are trusted. Knows no cryptography.

use std::path::PathBuf;

use crate::auth::Secret;

/// The variable with trusted public keys.
pub const TRUSTED_KEYS: &str = "WARPCC_REMOTE_TRUSTED_KEYS";
/// The variable with the signing key.
pub const SIGNING_KEY: &str = "WARPCC_REMOTE_SIGNING_KEY";
/// The variable with the path of the signing key.
pub const SIGNING_KEY_FILE: &str = "WARPCC_REMOTE_SIGNING_KEY_FILE";
/// The variable with the command that prints the signing key.
pub const SIGNING_KEY_COMMAND: &str = "WARPCC_REMOTE_SIGNING_KEY_COMMAND";

/// All of them.
pub const VARIABLES: [&str; 4] = [
    TRUSTED_KEYS,
    SIGNING_KEY,
    SIGNING_KEY_FILE,
    SIGNING_KEY_COMMAND,
];

/// The value of `trusted_keys` that demands no signatures of one shared cache.
pub const NONE: &str = "none";

/// The error for a setting whose value is the name of a variable.
pub(crate) const UNSET_VARIABLE: &str = "names an environment variable that is not set";

/// Where the signing key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SigningKey {
    /// Here, from a variable.
    Given(Secret),
    /// In this file.
    File(PathBuf),
    /// Printed by this command of `sh`.
    Command(String),
}

impl SigningKey {
    /// The key of three settings: the key itself wins over its file, and that over the command.
    pub fn first_of(
        given: Option<Secret>,
        file: Option<PathBuf>,
        command: Option<String>,
    ) -> Option<Self> {
        let file = || file.map(Self::File);
        let command = || command.map(Self::Command);
        given.map(Self::Given).or_else(file).or_else(command)
    }
}

/// How the results of one shared cache are signed and checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signatures {
    /// Signs what is uploaded.
    pub signing_key: Option<SigningKey>,
    /// Public keys, and files with public keys, with commas or white space between; or [`NONE`].
    pub trusted_keys: Option<String>,
}

impl Signatures {
    /// Whether only signed results are taken.
    pub fn are_demanded(&self) -> bool {
        match self.trusted_keys.as_deref().map(str::trim) {
            Some(NONE) => false,
            Some(_) => true,
            None => self.signing_key.is_some(),
        }
    }

    /// The key that signs uploads, where results are signed at all.
    pub fn signer(&self) -> Option<&SigningKey> {
        self.signing_key.as_ref().filter(|_| self.are_demanded())
    }

    /// Sets one thing by its name in a layer's options.
    ///
    /// # Errors
    /// What is wrong with the value, as the end of a sentence.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), &'static str> {
        // What an option without a value has.
        if matches!(value.trim(), "" | "true") {
            return Err("has no value");
        }
        let key = match name {
            "signing_key_file" => SigningKey::File(PathBuf::from(value)),
            "signing_key_command" => SigningKey::Command(value.to_owned()),
            "signing_key_variable" => {
                let key = variable(value).ok_or(UNSET_VARIABLE)?;
                SigningKey::Given(Secret::new(&key))
            }
            _ => {
                self.trusted_keys = Some(value.to_owned());
                return Ok(());
            }
        };
        self.signing_key = Some(key);
        Ok(())
    }

    /// Settings that are not set here are taken from `others`.
    pub fn or(self, others: Self) -> Self {
        Self {
            signing_key: self.signing_key.or(others.signing_key),
            trusted_keys: self.trusted_keys.or(others.trusted_keys),
        }
    }
}

/// The defaults that variables set.
pub fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Signatures {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let given = set(SIGNING_KEY).map(|key| Secret::new(&key));
    let file = set(SIGNING_KEY_FILE).map(PathBuf::from);
    Signatures {
        signing_key: SigningKey::first_of(given, file, set(SIGNING_KEY_COMMAND)),
        trusted_keys: set(TRUSTED_KEYS),
    }
}
