//! Pairs of keys in files, and calls of those who sign and of those who check.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use warpcc_remote::keys::Signer;
use warpcc_remote_client::signatures::SigningKey;

use crate::{Project, TestSpace};

pub const TRUSTED: &str = "WARPCC_REMOTE_TRUSTED_KEYS";

pub const SECRET_FILE: &str = "WARPCC_REMOTE_SIGNING_KEY_FILE";

/// A pair of keys in files.
pub struct Keys {
    pub secret: PathBuf,
    pub public: PathBuf,
}

impl Keys {
    pub fn new(space: &TestSpace, name: &str) -> Self {
        let secret = space.beside(&format!("{name}.key"));
        let said = space.warpcc_with(&["remote", "keygen", &secret.to_string_lossy()]);
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        let public = secret.with_extension("key.pub");
        let shown = fs::read_to_string(&public).expect("a public key");
        assert!(String::from_utf8_lossy(&said.stdout).contains(shown.trim()));
        let mode = fs::metadata(&secret).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Never over a key that is there.
        let again = space.warpcc_with(&["remote", "keygen", &secret.to_string_lossy()]);
        assert_ne!(again.code, 0);
        Self { secret, public }
    }

    pub fn signer(&self) -> Signer {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let origin = SigningKey::File(self.secret.clone());
        let load = Signer::load(&origin);
        runtime.expect("a runtime").block_on(load).expect("a key")
    }
}

pub fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// From now on calls are CI's, which signs.
pub fn as_ci(project: &mut Project, keys: &Keys) {
    project.space.unset_env(TRUSTED);
    project.space.set_env(SECRET_FILE, &path(&keys.secret));
}

/// From now on calls are those of somebody who checks.
pub fn as_reader(project: &mut Project, trusted: &str) {
    project.space.unset_env(SECRET_FILE);
    project.space.set_env(TRUSTED, trusted);
}
