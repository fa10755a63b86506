//! Bearer tokens and headers. They are read when they are needed, and never shown: a server's text is searched for them
//! before it is passed on ([`Credentials::without_secrets`]).

mod credential_helper;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};

pub use credential_helper::Helper;
pub use warpcc_remote_client::auth::{Auth, Origin, Secret};

/// An error with a credential. Names files and headers, never their contents.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A file cannot be read.
    #[error("cannot read the credentials in {path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The system's words.
        error: std::io::Error,
    },
    /// It is not what a header holds.
    #[error("the value of the header {name} has characters that a header cannot have")]
    Header {
        /// The header's name.
        name: String,
    },
    /// The credential helper did not do its part.
    #[error("the credential helper {program} {why}")]
    Helper {
        /// The program.
        program: String,
        /// Why.
        why: String,
    },
}

type Headers = Vec<(MetadataKey<Ascii>, MetadataValue<Ascii>)>;

#[derive(Default)]
struct CachedHeaders {
    headers: Option<Arc<Headers>>,
    until: Option<SystemTime>,
    secrets: Vec<Secret>,
}

/// The headers for calls of one server. They are fetched once, and again when they expire.
pub struct Credentials {
    auth: Auth,
    /// The URI that the credential helper is asked about.
    uri: String,
    known: Mutex<CachedHeaders>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// For the server at `uri`.
    pub fn new(auth: Auth, uri: String) -> Self {
        Self {
            auth,
            uri,
            known: Mutex::default(),
        }
    }

    /// Adds the headers to a call.
    ///
    /// # Errors
    /// A file that cannot be read, a helper that fails.
    pub async fn add_to(&self, metadata: &mut MetadataMap) -> Result<(), CredentialError> {
        let mut known = self.known.lock().await;
        let expired = known.until.is_some_and(|until| until <= SystemTime::now());
        let headers = match &known.headers {
            Some(headers) if !expired => Arc::clone(headers),
            _ => self.fetch(&mut known).await?,
        };
        drop(known);
        for (name, value) in headers.iter() {
            metadata.append(name.clone(), value.clone());
        }
        Ok(())
    }

    async fn fetch(&self, known: &mut CachedHeaders) -> Result<Arc<Headers>, CredentialError> {
        let mut texts = Vec::new();
        let mut until = None;
        if let Some(token) = &self.auth.token {
            let token = read(token)?;
            texts.push((
                "authorization".to_owned(),
                Secret::new(&format!("Bearer {}", token.reveal())),
            ));
            known.secrets.push(token);
        }
        for (name, origin) in &self.auth.headers {
            texts.push((name.clone(), read(origin)?));
        }
        if let Some(program) = &self.auth.helper {
            let said = Helper::new(program).ask(&self.uri).await?;
            texts.extend(said.headers);
            until = said.until;
        }
        let headers = texts
            .iter()
            .map(|(name, secret)| header(name, secret))
            .collect::<Result<Headers, _>>()?;
        // This includes old credentials: the answer to an earlier call may still contain them.
        known.secrets.extend(texts.into_iter().map(|(_, s)| s));
        let surplus = known.secrets.len().saturating_sub(32);
        known.secrets.drain(..surplus);
        let headers = Arc::new(headers);
        known.headers = Some(Arc::clone(&headers));
        known.until = until;
        Ok(headers)
    }

    /// Discards credentials that the server refuses. Returns true if there may be others.
    pub async fn renew(&self) -> bool {
        if !self.auth.can_change() {
            return false;
        }
        self.known.lock().await.headers = None;
        true
    }

    /// `text` with every secret taken out.
    pub async fn without_secrets(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let known = self.known.lock().await;
        for secret in &known.secrets {
            let bare = secret.reveal().trim_start_matches("Bearer ");
            for secret in [secret.reveal(), bare] {
                // Shorter ones are in every text.
                if secret.len() >= 4 {
                    text = text.replace(secret, "[secret]");
                }
            }
        }
        text
    }
}

fn read(origin: &Origin) -> Result<Secret, CredentialError> {
    match origin {
        Origin::Given(secret) => Ok(secret.clone()),
        Origin::File(path) => std::fs::read_to_string(path)
            .map(|text| Secret::new(&text))
            .map_err(|error| CredentialError::File {
                path: path.display().to_string(),
                error,
            }),
    }
}

fn header(
    name: &str,
    secret: &Secret,
) -> Result<(MetadataKey<Ascii>, MetadataValue<Ascii>), CredentialError> {
    let wrong = || CredentialError::Header {
        name: name.to_owned(),
    };
    let key = MetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|_| wrong())?;
    let mut value = MetadataValue::try_from(secret.reveal()).map_err(|_| wrong())?;
    // HTTP/2 then keeps it out of its tables, and its Debug form hides it.
    value.set_sensitive(true);
    Ok((key, value))
}

/// Lifetime of an answer that names no expiry.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("runtime")
            .block_on(future)
    }

    #[test]
    fn a_secret_is_shown_nowhere() {
        let auth = Auth {
            token: Some(Origin::Given(Secret::new("hunter2"))),
            headers: vec![(
                "x-api-key".to_owned(),
                Origin::Given(Secret::new("swordfish")),
            )],
            ..Auth::default()
        };
        let shown = format!("{auth:?}");
        let credentials = Credentials::new(auth, "https://here/".to_owned());
        let mut metadata = MetadataMap::new();
        block_on(credentials.add_to(&mut metadata)).expect("given");
        let shown = format!("{shown}{credentials:?}{metadata:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("swordfish"),
            "{shown}"
        );
        let said = block_on(credentials.without_secrets("bad token hunter2 or key swordfish"));
        assert_eq!(said, "bad token [secret] or key [secret]");
    }

    #[test]
    fn a_file_is_read_again_when_its_token_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("token");
        std::fs::write(&path, "first\n").expect("write");
        let auth = Auth {
            token: Some(Origin::File(path.clone())),
            ..Auth::default()
        };
        let credentials = Credentials::new(auth, String::new());
        let sent = || {
            let mut metadata = MetadataMap::new();
            block_on(credentials.add_to(&mut metadata)).expect("file");
            let value = metadata.get("authorization")?;
            value.to_str().ok().map(str::to_owned)
        };
        assert_eq!(sent().as_deref(), Some("Bearer first"));
        std::fs::write(&path, "second\n").expect("write");
        assert!(block_on(credentials.renew()));
        assert_eq!(sent().as_deref(), Some("Bearer second"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let auth = Auth {
            token: Some(Origin::File("/nowhere/token".into())),
            ..Auth::default()
        };
        let credentials = Credentials::new(auth, String::new());
        let error = block_on(credentials.add_to(&mut MetadataMap::new())).expect_err("no file");
        assert!(error.to_string().contains("/nowhere/token"), "{error}");
    }
}
