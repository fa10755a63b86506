//! Settings, directories and commands in the form in which they are sent to `warpcc-remote`.
//!
//! They include credentials. These go only to this one program, which ends with the program that asked, through a pair
//! of sockets that no other process has.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpcc_cache::command::{Command, CommandInput};
use warpcc_cache::{Digest, DiskStore, OpenError, Options, StoreAccess, WorkDir};
use warpcc_path_map::{BASE, PathMap};

use crate::auth::{Auth, Origin, Secret};
use crate::layer_names::LayerError;
use crate::settings::{Access, Layer};
use crate::signatures::{Signatures, SigningKey};

/// One shared cache.
#[derive(Clone, Serialize, Deserialize)]
pub struct LayerSent {
    url: String,
    read_only: bool,
    connect: Duration,
    answer: Duration,
    retry_after: Duration,
    auth: AuthSent,
    signing_key: Option<SigningKeySent>,
    trusted_keys: Option<String>,
    untrusted: bool,
}

#[derive(Clone, Serialize, Deserialize)]
enum SigningKeySent {
    Given(String),
    File(OsString),
    Command(String),
}

impl std::fmt::Debug for LayerSent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayerSent").finish_non_exhaustive()
    }
}

impl From<&Layer> for LayerSent {
    fn from(layer: &Layer) -> Self {
        Self {
            url: layer.url().as_str().to_owned(),
            read_only: layer.access == Access::ReadOnly,
            connect: layer.connect,
            answer: layer.answer,
            retry_after: layer.retry_after,
            auth: (&layer.auth).into(),
            signing_key: layer.signatures.signing_key.as_ref().map(Into::into),
            trusted_keys: layer.signatures.trusted_keys.clone(),
            untrusted: layer.untrusted,
        }
    }
}

impl LayerSent {
    /// What was sent.
    ///
    /// # Errors
    /// It is not what a [`Layer`] makes.
    pub fn layer(self) -> Result<Layer, LayerError> {
        let mut layer = Layer::at(&self.url)?;
        layer.access = match self.read_only {
            true => Access::ReadOnly,
            false => Access::ReadWrite,
        };
        layer.connect = self.connect;
        layer.answer = self.answer;
        layer.retry_after = self.retry_after;
        layer.auth = self.auth.into();
        layer.signatures = Signatures {
            signing_key: self.signing_key.map(Into::into),
            trusted_keys: self.trusted_keys,
        };
        layer.untrusted = self.untrusted;
        Ok(layer)
    }
}

impl From<&SigningKey> for SigningKeySent {
    fn from(key: &SigningKey) -> Self {
        match key {
            SigningKey::Given(secret) => Self::Given(secret.reveal().to_owned()),
            SigningKey::File(path) => Self::File(path.clone().into()),
            SigningKey::Command(command) => Self::Command(command.clone()),
        }
    }
}

impl From<SigningKeySent> for SigningKey {
    fn from(sent: SigningKeySent) -> Self {
        match sent {
            SigningKeySent::Given(text) => Self::Given(Secret::new(&text)),
            SigningKeySent::File(path) => Self::File(path.into()),
            SigningKeySent::Command(command) => Self::Command(command),
        }
    }
}

/// Credentials for a server.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct AuthSent {
    token: Option<OriginSent>,
    headers: Vec<(String, OriginSent)>,
    helper: Option<OsString>,
    roots: Option<OsString>,
    client: Option<(OsString, OsString)>,
}

#[derive(Clone, Serialize, Deserialize)]
enum OriginSent {
    Given(String),
    File(OsString),
}

impl std::fmt::Debug for AuthSent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthSent").finish_non_exhaustive()
    }
}

impl From<&Origin> for OriginSent {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Given(secret) => Self::Given(secret.reveal().to_owned()),
            Origin::File(path) => Self::File(path.clone().into()),
        }
    }
}

impl From<OriginSent> for Origin {
    fn from(sent: OriginSent) -> Self {
        match sent {
            OriginSent::Given(text) => Self::Given(Secret::new(&text)),
            OriginSent::File(path) => Self::File(path.into()),
        }
    }
}

impl From<&Auth> for AuthSent {
    fn from(auth: &Auth) -> Self {
        let name = |path: &PathBuf| path.clone().into_os_string();
        let headers = auth.headers.iter();
        let client = auth.client.as_ref();
        Self {
            token: auth.token.as_ref().map(Into::into),
            headers: headers.map(|(n, v)| (n.clone(), v.into())).collect(),
            helper: auth.helper.as_ref().map(name),
            roots: auth.roots.as_ref().map(name),
            client: client.map(|(certificate, key)| (name(certificate), name(key))),
        }
    }
}

impl From<AuthSent> for Auth {
    fn from(sent: AuthSent) -> Self {
        let headers = sent.headers.into_iter();
        Self {
            token: sent.token.map(Into::into),
            headers: headers.map(|(n, v)| (n, v.into())).collect(),
            helper: sent.helper.map(Into::into),
            roots: sent.roots.map(Into::into),
            client: sent.client.map(|(cert, key)| (cert.into(), key.into())),
        }
    }
}

/// A disk store, to be opened again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSent {
    root: OsString,
    max_size: u64,
    readonly: bool,
    private: bool,
}

impl From<&DiskStore> for StoreSent {
    fn from(store: &DiskStore) -> Self {
        let options = store.options();
        Self {
            root: store.root().as_os_str().to_owned(),
            max_size: options.max_size,
            readonly: options.readonly,
            private: store.access() == StoreAccess::Private,
        }
    }
}

impl StoreSent {
    /// The folder that it is in.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(&self.root)
    }

    /// The store, with the same rights.
    ///
    /// # Errors
    /// It cannot be opened any more.
    pub fn open(&self) -> Result<DiskStore, OpenError> {
        let options = Options {
            max_size: self.max_size,
            readonly: self.readonly,
        };
        let access = match self.private {
            true => StoreAccess::Private,
            false => StoreAccess::ByUmask,
        };
        DiskStore::open_for(&self.root(), options, access)
    }
}

/// A working directory with the folders whose names do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceSent {
    directory: OsString,
    /// Names and folders, in the order of the map.
    folders: Vec<(String, String)>,
}

impl From<WorkDir<'_>> for PlaceSent {
    fn from(place: WorkDir<'_>) -> Self {
        let folders = place.path_map.key_parts().map(|(marker, folder)| {
            let name = marker.strip_prefix(BASE).unwrap_or(marker);
            (
                name.to_owned(),
                String::from_utf8_lossy(folder).into_owned(),
            )
        });
        Self {
            directory: place.directory.as_os_str().to_owned(),
            folders: folders.collect(),
        }
    }
}

impl PlaceSent {
    /// Where relative paths start.
    pub fn directory(&self) -> PathBuf {
        PathBuf::from(&self.directory)
    }

    /// The folders whose names do not count.
    pub fn path_map(&self) -> PathMap {
        let folders = self.folders.iter();
        PathMap::new(folders.map(|(name, folder)| (name.as_str(), folder.as_str())))
    }
}

/// A command with everything it needs, and where what it writes is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSent {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    inputs: Vec<InputSent>,
    outputs: Vec<String>,
    folder: OsString,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct InputSent {
    path: String,
    digest: Digest,
    file: OsString,
    executable: bool,
}

impl CommandSent {
    /// Of a command whose outputs are to be in `folder`.
    pub fn new(command: &Command, folder: PathBuf) -> Self {
        let inputs = command.inputs.iter().map(|input| InputSent {
            path: input.path.clone(),
            digest: input.digest,
            file: input.file.clone().into(),
            executable: input.executable,
        });
        Self {
            arguments: command.arguments.clone(),
            environment: command.environment.clone(),
            inputs: inputs.collect(),
            outputs: command.outputs.clone(),
            folder: folder.into(),
        }
    }

    /// The command, and the folder.
    pub fn command(self) -> (Command, PathBuf) {
        let inputs = self.inputs.into_iter().map(|input| CommandInput {
            path: input.path,
            digest: input.digest,
            file: input.file.into(),
            executable: input.executable,
        });
        let command = Command {
            arguments: self.arguments,
            environment: self.environment,
            inputs: inputs.collect(),
            outputs: self.outputs,
        };
        (command, self.folder.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn through<T: Serialize + for<'a> Deserialize<'a>>(sent: &T) -> T {
        let bytes = postcard::to_stdvec(sent).expect("written");
        postcard::from_bytes(&bytes).expect("read")
    }

    #[test]
    fn a_layer_arrives_as_it_was_and_shows_nothing_on_the_way() {
        let text = "https://u:hunter2@far/x?k=1|read-only|timeout=0.5|token-variable=T|header-file:x-a=/k|ca=/c\
                    |client-cert=/a|client-key=/b|credential-helper=/h|retry-after=7|untrusted\
                    |trusted-keys=/t,!k|signing-key-variable=S";
        let layer = Layer::parse(text, &|_| Some("swordfish".to_owned())).expect("a layer");
        let sent = LayerSent::from(&layer);
        let shown = format!("{sent:?}{:?}", sent.auth);
        assert!(!shown.contains("hunter2") && !shown.contains("swordfish"));
        let there = through(&sent).layer().expect("a layer");
        assert_eq!(there, layer);
        assert_eq!(
            (&there.auth, there.retry_after),
            (&layer.auth, layer.retry_after)
        );
        assert_eq!(
            (&there.signatures, there.untrusted),
            (&layer.signatures, true)
        );
        assert_eq!(there.url(), layer.url());
    }

    #[test]
    fn a_place_has_the_same_names_there() {
        let map = PathMap::new([("1", "/w/clone"), ("1", "/mnt/clone"), ("2", "/w/venv")]);
        let place = WorkDir {
            directory: Path::new("/w/clone/build"),
            path_map: &map,
        };
        let there = through(&PlaceSent::from(place));
        assert_eq!(there.path_map(), map);
        assert_eq!(there.directory(), place.directory);
    }
}
