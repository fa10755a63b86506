//! Parses the settings of shared caches: text in, [`Layer`]s out.
//!
//! ```text
//! WARPCC_REMOTE = layer (white space layer)*        near to far
//! layer         = url ('|' name ['=' value])*
//! ```
//!
//! The names after a URL are those of the settings file's tables, with `-` or `_`; the separator is ccache's. It reads
//! no environment and no file: the caller does, and passes the texts.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use warpcc_cache::Digest;

use crate::auth::{Auth, Origin, Secret};
use crate::layer_names::{HEADER, LayerError, SETTINGS, hint};
use crate::redaction::{redacted, redacted_text};
use crate::signatures::{Signatures, UNSET_VARIABLE};

/// Deadline of a connection.
pub const CONNECT: Duration = Duration::from_secs(2);
/// Deadline of an answer, and of a small blob.
pub const ANSWER: Duration = Duration::from_secs(5);
/// The first pause of a server that failed. It is doubled each time, up to [`LONGEST_RETRY_AFTER`].
pub const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Longest pause.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(900);

/// Which way results may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Results are downloaded from it and uploaded to it.
    ReadWrite,
    /// Results are taken from it.
    ReadOnly,
}

/// One shared cache.
#[derive(Clone)]
pub struct Layer {
    url: Url,
    /// Which way results may go.
    pub access: Access,
    /// Deadline of a connection.
    pub connect: Duration,
    /// Deadline of an answer.
    pub answer: Duration,
    /// Its first pause after a fault.
    pub retry_after: Duration,
    /// Credentials for it.
    pub auth: Auth,
    /// How its results are signed and checked.
    pub signatures: Signatures,
    /// Its results go to no other shared cache, but untrusted ones.
    pub untrusted: bool,
}

/// The protocol that a URL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// The Remote Execution API.
    Grpc,
    /// Bazel's HTTP caching protocol.
    Http,
    /// An object store, by OpenDAL's name of it.
    Object(&'static str),
    /// GitHub Actions' cache.
    Github,
}

const SCHEMES: [(&str, Scheme); 16] = [
    ("grpc", Scheme::Grpc),
    ("grpcs", Scheme::Grpc),
    ("http", Scheme::Http),
    ("https", Scheme::Http),
    ("s3", Scheme::Object("s3")),
    ("gcs", Scheme::Object("gcs")),
    ("gs", Scheme::Object("gcs")),
    ("azblob", Scheme::Object("azblob")),
    ("redis", Scheme::Object("redis")),
    ("rediss", Scheme::Object("redis")),
    ("memcached", Scheme::Object("memcached")),
    ("webdav", Scheme::Object("webdav")),
    ("webdavs", Scheme::Object("webdav")),
    ("ghac", Scheme::Github),
    ("file", Scheme::Object("fs")),
    ("fs", Scheme::Object("fs")),
];

fn parse_seconds(value: &str) -> Result<Duration, &'static str> {
    let seconds = value.parse::<f64>().ok();
    seconds
        .filter(|seconds| (0.01..=3600.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or("is not a number of seconds (0.01 to 3600)")
}

fn parse_path(value: &str) -> Result<PathBuf, &'static str> {
    match value {
        "" | "true" => Err("is not a path"),
        path => Ok(path.into()),
    }
}

fn parse_flag(value: &str) -> Result<bool, &'static str> {
    match value {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err("must be true or false"),
    }
}

impl Layer {
    /// Reads `url|name=value|…`. `variable` gives an environment variable's value.
    ///
    /// # Errors
    /// The URL is invalid, the kind of server or a name is unknown, or a value is invalid.
    pub fn parse(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, LayerError> {
        let mut parts = text.split('|');
        let mut layer = Self::at(parts.next().unwrap_or_default())?;
        layer.complete(variable);
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, "true"));
            layer.set(name, value, variable)?;
        }
        Ok(layer)
    }

    /// The layer at a URL, with everything else as it is by default.
    ///
    /// # Errors
    /// It is no URL, or of an unknown kind.
    pub fn at(text: &str) -> Result<Self, LayerError> {
        // `ghac` needs no address.
        let text = if text == "ghac" { "ghac://" } else { text };
        let refuse = |problem: &'static str| LayerError::new(redacted_text(text), problem);
        let url = Url::parse(text).map_err(|_| refuse("is not a URL"))?;
        let layer = Self {
            url,
            access: Access::ReadWrite,
            connect: CONNECT,
            answer: ANSWER,
            retry_after: RETRY_AFTER,
            auth: Auth::default(),
            signatures: Signatures::default(),
            untrusted: false,
        };
        if layer.scheme().is_none() {
            return Err(refuse(
                "is not a supported kind of shared cache: use grpc, http, s3, gcs, azblob, redis, memcached, webdav, ghac or file",
            ));
        }
        let needs_host = !matches!(layer.scheme(), Some(Scheme::Object("fs") | Scheme::Github));
        if needs_host && layer.url.host_str().is_none_or(str::is_empty) {
            return Err(refuse("has no host name"));
        }
        Ok(layer)
    }

    /// Adds what GitHub's runner tells its actions about the cache service.
    fn complete(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        if self.scheme() != Some(Scheme::Github) {
            return;
        }
        if self.url.query().is_none()
            && let Some(service) = variable("ACTIONS_RESULTS_URL")
        {
            let mut pairs = self.url.query_pairs_mut();
            pairs.append_pair("service", &service);
        }
        let token = variable("ACTIONS_RUNTIME_TOKEN");
        self.auth.token = token.map(|token| Origin::Given(Secret::new(&token)));
    }

    /// Whether a job's results are uploaded in a few pieces at the end of the job, and not during the build.
    pub fn uploads_at_end(&self) -> bool {
        self.scheme() == Some(Scheme::Github)
    }

    /// Sets the setting that has this name in the settings file.
    ///
    /// # Errors
    /// The name is unknown, or the value not one of its values.
    pub fn set(
        &mut self,
        name: &str,
        value: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), LayerError> {
        let name = name.trim().replace('-', "_");
        // The value may be a secret that was put in the wrong place.
        let at = format!("{} of {}", name, self.shown());
        let refuse = |problem: &'static str| LayerError::new(at.clone(), problem);
        let seconds = || parse_seconds(value).map_err(refuse);
        let path = || parse_path(value).map_err(refuse);
        let flag = || parse_flag(value).map_err(refuse);
        match name.as_str() {
            "read_only" | "readonly" => {
                self.access = match flag()? {
                    true => Access::ReadOnly,
                    false => Access::ReadWrite,
                }
            }
            "untrusted" => self.untrusted = flag()?,
            "trusted_keys"
            | "signing_key_file"
            | "signing_key_variable"
            | "signing_key_command" => {
                let set = self.signatures.set(&name, value, variable);
                set.map_err(refuse)?;
            }
            "connect_timeout" => self.connect = seconds()?,
            "timeout" => self.answer = seconds()?,
            "retry_after" => self.retry_after = seconds()?,
            "ca" => self.auth.roots = Some(path()?),
            "client_cert" => {
                let key = self.auth.client.take().map(|(_, key)| key);
                self.auth.client = Some((path()?, key.unwrap_or_default()));
            }
            "client_key" => {
                let cert = self.auth.client.take().map(|(cert, _)| cert);
                self.auth.client = Some((cert.unwrap_or_default(), path()?));
            }
            "token_file" => self.auth.token = Some(Origin::File(path()?)),
            "token_variable" => {
                let token = variable(value).ok_or_else(|| refuse(UNSET_VARIABLE))?;
                self.auth.token = Some(Origin::Given(Secret::new(&token)));
            }
            "credential_helper" => self.auth.helper = Some(path()?),
            other => match other.strip_prefix(HEADER) {
                Some(header) => {
                    // Header names are written with dashes.
                    let header = header.replace('_', "-");
                    self.auth.headers.push((header, Origin::File(path()?)));
                }
                None => {
                    let hint = hint(other, SETTINGS.iter().copied());
                    let problem = format!("is not a setting of a shared cache{hint}");
                    return Err(LayerError::new(at, problem));
                }
            },
        }
        Ok(())
    }

    /// The URL with everything in it; never to be shown.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The protocol.
    pub fn scheme(&self) -> Option<Scheme> {
        let known = SCHEMES.iter().find(|(name, _)| *name == self.url.scheme());
        known.map(|(_, scheme)| *scheme)
    }

    /// The URL without user, password and parameters: for people.
    pub fn shown(&self) -> String {
        redacted(&self.url)
    }

    /// The URL without its password, for a credential helper to look up.
    pub fn url_for_helper(&self) -> String {
        self.shown()
    }

    /// A name for files about this server: the same for everyone who means it, whatever the credentials.
    pub fn id(&self) -> String {
        Digest::of_bytes(self.shown().as_bytes()).hex()[..16].to_owned()
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer")
            .field("url", &self.shown())
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Layer {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, self.access, self.connect, self.answer)
            == (&other.url, other.access, other.connect, other.answer)
    }
}

impl Eq for Layer {}

/// Reads `WARPCC_REMOTE`: layers near to far, with white space between them.
///
/// # Errors
/// As [`Layer::parse`], of the first that is wrong.
pub fn layers(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Layer>, LayerError> {
    text.split_whitespace()
        .map(|one| Layer::parse(one, variable))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer_names::is_known;

    fn parse(text: &str) -> Result<Vec<Layer>, LayerError> {
        layers(text, &|name| (name == "TOKEN").then(|| "s3cret".to_owned()))
    }

    #[test]
    fn layers_near_to_far() {
        let found =
            parse("file:/mnt/cache  https://u:hunter2@far/x?k=hunter2|read-only|timeout=0.5")
                .expect("layers");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].access, Access::ReadWrite);
        assert_eq!(found[0].scheme(), Some(Scheme::Object("fs")));
        assert_eq!(found[1].access, Access::ReadOnly);
        assert_eq!(found[1].answer, Duration::from_millis(500));
        assert_eq!(found[1].shown(), "https://far/x");
        assert!(!format!("{found:?}").contains("hunter2"));
        assert_ne!(found[0].id(), found[1].id());
    }

    #[test]
    fn wrong_ones_are_refused_without_their_secrets() {
        for text in [
            "cache.example",
            "nfs://here/x",
            "https://u:hunter2@h|colour=hunter2",
            "https://u:hunter2@h|timeout=hunter2",
            "https://u:hunter2@h:notaport/",
            "u:hunter2@h",
            "http://",
            "redis://|read-only=hunter2",
            "https://h|token_variable=NONE",
            "https://h|ca",
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
    }

    #[test]
    fn every_setting_in_the_list_can_be_set() {
        for name in SETTINGS {
            let name = name.replace("NAME", "x-api-key");
            let value = match name.as_str() {
                "read_only" | "untrusted" => "true",
                "timeout" | "connect_timeout" | "retry_after" => "1",
                "token_variable" | "signing_key_variable" => "TOKEN",
                _ => "/x",
            };
            assert!(is_known(&name), "{name}");
            parse(&format!("https://h|{name}={value}")).expect(&name);
        }
        let error = parse("https://h|tokenfile=x")
            .expect_err("unknown")
            .to_string();
        assert_eq!(
            error,
            "tokenfile of https://h/ is not a setting of a shared cache, did you mean `token_file`?"
        );
    }

    #[test]
    fn a_token_from_a_variable_is_not_shown() {
        let found =
            parse("https://h|token-variable=TOKEN|header-file:x-api-key=/k").expect("layer");
        assert!(found[0].auth.token.is_some());
        assert_eq!(found[0].auth.headers[0].0, "x-api-key");
        assert!(!format!("{found:?} {:?}", found[0].auth).contains("s3cret"));
    }
}
