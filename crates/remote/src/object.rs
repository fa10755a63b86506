//! Object stores, redis, memcached, WebDAV, GitHub's cache and file shares, through OpenDAL: `ac/<key>` holds a serialized
//! `ActionResult`, `cas/<sha256>` a blob as a zstd frame.
//!
//! No protocol defines how bytes are stored there, so they are always compressed. Credentials are the service's usual
//! ones (its variables, files and instance metadata), read by OpenDAL, or the URL's.

mod operator;
mod webdav;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use futures_util::TryStreamExt;
use opendal::layers::HttpClientLayer;
use opendal::raw::HttpClient;
use opendal::{ErrorKind, Operator};
use prost::Message;
use tokio::io::AsyncReadExt;
use warpcc_cache::{Digest, Key};

use crate::action_result::{LARGEST_RESULT, TOO_LARGE};
use crate::backend::UploadSource;
use crate::deadline::Pace;
use crate::download::Download;
use crate::error::RemoteError;
use crate::per_blob::PerBlob;
use crate::settings::{Layer, Scheme};
use crate::{deadline, http, tls};

/// Larger blobs go up in pieces of this many bytes.
const PIECE: usize = 8 << 20;
/// zstd's level: blobs are packed once and fetched often, but a laptop's core packs them.
const LEVEL: i32 = 3;

/// A store that OpenDAL knows.
pub struct Object {
    operator: Operator,
    server: String,
    answer: Duration,
    /// Texts that no message may contain.
    secrets: Vec<String>,
    /// The folders, if the server needs them before a file is written.
    folders: Option<webdav::Folders>,
}

impl Object {
    /// Does not reach out yet.
    ///
    /// # Errors A parameter of the URL is not one of the service's, or a folder cannot be made.
    pub fn new(layer: &Layer) -> Result<Self, RemoteError> {
        let Some(Scheme::Object(service)) = layer.scheme() else {
            return Err(RemoteError::Answer {
                server: layer.shown(),
                why: "its URL names no object store".to_owned(),
            });
        };
        // OpenDAL creates a client of its own before it gets ours.
        tls::choose_provider();
        let secrets = secrets(layer);
        let operator =
            operator::operator(service, layer).map_err(|error| RemoteError::Unreachable {
                server: layer.shown(),
                why: message_without_secrets(&error, &secrets),
            })?;
        let fetch = HttpClient::with(http::client(layer)?);
        Ok(Self {
            operator: operator.layer(HttpClientLayer::new(fetch)),
            server: layer.shown(),
            answer: layer.answer,
            secrets,
            folders: (*service == *"webdav").then(webdav::Folders::default),
        })
    }

    /// OpenDAL's name of the service, if the server answers.
    ///
    /// # Errors
    /// As all requests.
    pub async fn describe(&self) -> Result<String, RemoteError> {
        let nothing = Digest {
            hash: [0; 32],
            size: 0,
        };
        self.has_blob(&nothing).await?;
        Ok(self.operator.info().scheme().to_owned())
    }

    /// Removes a result and a blob where the service can.
    pub async fn remove(&self, key: &Key, digest: &Digest) {
        for path in [result_path(key), blob_path(digest)] {
            let removing = async {
                let removed = self.operator.delete(&path).await;
                removed.map_err(|e| self.fault(&e))
            };
            drop(self.within(0, removing).await);
        }
    }

    async fn within<T>(
        &self,
        bytes: u64,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        deadline::within(&self.server, self.answer, bytes, work).await
    }

    fn fault(&self, error: &opendal::Error) -> RemoteError {
        let (server, why) = (
            self.server.clone(),
            message_without_secrets(error, &self.secrets),
        );
        match error.kind() {
            ErrorKind::PermissionDenied => RemoteError::Refused { server, why },
            // The error that OpenDAL reports for a broken connection.
            ErrorKind::Unexpected if error.is_temporary() => {
                RemoteError::Unreachable { server, why }
            }
            _ => RemoteError::Answer { server, why },
        }
    }

    fn unless_absent<T>(&self, found: opendal::Result<T>) -> Result<Option<T>, RemoteError> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// Passes on the bytes at `path`, piece by piece. Returns false if there is nothing.
    async fn read(
        &self,
        path: &str,
        mut take: impl FnMut(&[u8]) -> Result<(), RemoteError> + Send,
    ) -> Result<bool, RemoteError> {
        let mut pace = Pace::new(self.answer);
        let opening = async {
            let reader = self.operator.reader(path).await;
            let reader = reader.map_err(|e| self.fault(&e))?;
            self.unless_absent(reader.into_stream(..).await)
        };
        let Some(mut pieces) = pace.next_from(&self.server, opening).await? else {
            return Ok(false);
        };
        loop {
            let next = async { self.unless_absent(pieces.try_next().await) };
            match pace.next_from(&self.server, next).await? {
                Some(Some(buffer)) => {
                    pace.add(buffer.len());
                    for piece in buffer {
                        take(&piece)?;
                    }
                }
                Some(None) => return Ok(true),
                None => return Ok(false),
            }
        }
    }

    async fn put_file(&self, path: &str, from: &Path) -> Result<(), RemoteError> {
        let named = |error: std::io::Error| RemoteError::Local {
            path: from.display().to_string(),
            why: error.to_string(),
        };
        let mut file = tokio::fs::File::open(from).await.map_err(named)?;
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL).map_err(named)?;
        let mut piece = vec![0; 1 << 20];
        let writer = self.operator.writer_with(path).chunk(PIECE).await;
        let mut writer = writer.map_err(|e| self.fault(&e))?;
        loop {
            let read = file.read(&mut piece).await.map_err(named)?;
            encoder.write_all(&piece[..read]).map_err(named)?;
            if read == 0 {
                break;
            }
            let packed = std::mem::take(encoder.get_mut());
            if !packed.is_empty() {
                writer.write(packed).await.map_err(|e| self.fault(&e))?;
            }
        }
        let rest = encoder.finish().map_err(named)?;
        writer.write(rest).await.map_err(|e| self.fault(&e))?;
        writer
            .close()
            .await
            .map(drop)
            .or_else(|e| self.fine_if_there(&e))
    }

    async fn make_folders(&self) -> Result<(), RemoteError> {
        match &self.folders {
            Some(folders) => folders
                .make(&self.operator)
                .await
                .map_err(|e| self.fault(&e)),
            None => Ok(()),
        }
    }

    async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<(), RemoteError> {
        let written = self.operator.write(path, bytes).await;
        written.map(drop).or_else(|e| self.fine_if_there(&e))
    }

    /// GitHub's cache takes each name once.
    fn fine_if_there(&self, error: &opendal::Error) -> Result<(), RemoteError> {
        match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::ConditionNotMatch => Ok(()),
            _ => Err(self.fault(error)),
        }
    }
}

impl PerBlob for Object {
    async fn get_result(&self, key: &Key) -> Result<Option<ActionResult>, RemoteError> {
        let odd = |why: &str| RemoteError::Answer {
            server: self.server.clone(),
            why: why.to_owned(),
        };
        let path = result_path(key);
        let mut bytes = Vec::new();
        let take = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            match bytes.len() > LARGEST_RESULT {
                true => Err(odd(TOO_LARGE)),
                false => Ok(()),
            }
        };
        // A result is short: it earns no time.
        let reading = self.read(&path, take);
        if !self.within(0, reading).await? {
            return Ok(None);
        }
        ActionResult::decode(&bytes[..])
            .map(Some)
            .map_err(|_| odd("a result that is not an ActionResult message"))
    }

    async fn replace_result(&self, key: &Key, result: &ActionResult) -> Result<(), RemoteError> {
        let bytes = result.encode_to_vec();
        let size = bytes.len() as u64;
        let path = result_path(key);
        let sending = async {
            self.make_folders().await?;
            self.put(&path, bytes).await
        };
        self.within(size, sending).await
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, RemoteError> {
        let path = blob_path(digest);
        let asking = async {
            self.operator
                .exists(&path)
                .await
                .map_err(|e| self.fault(&e))
        };
        self.within(0, asking).await
    }

    async fn get_blob(&self, digest: &Digest, out: impl Write + Send) -> Result<bool, RemoteError> {
        let path = blob_path(digest);
        let mut download = Download::new(&self.server, digest, true, out)?;
        if !self.read(&path, |piece| download.take(piece)).await? {
            return Ok(false);
        }
        download.finish()?;
        Ok(true)
    }

    async fn put_blob(&self, digest: &Digest, source: &UploadSource) -> Result<(), RemoteError> {
        let path = blob_path(digest);
        let sending = async {
            self.make_folders().await?;
            match source {
                UploadSource::Bytes(bytes) => {
                    let packed = zstd::bulk::compress(bytes, LEVEL).map_err(|e| local(&e))?;
                    self.put(&path, packed).await
                }
                UploadSource::File(from) => self.put_file(&path, from).await,
            }
        };
        self.within(digest.size, sending).await
    }
}

fn result_path(key: &Key) -> String {
    format!("ac/{}", key.hex())
}

fn blob_path(digest: &Digest) -> String {
    format!("cas/{}", digest.hex())
}

/// Parts of the URL that could be credentials.
fn secrets(layer: &Layer) -> Vec<String> {
    let url = layer.url();
    let mut secrets: Vec<String> = url
        .query_pairs()
        .map(|(_, value)| value.into_owned())
        .collect();
    secrets.extend(url.password().map(http::decoded));
    // Shorter ones are in every text.
    secrets.retain(|secret| secret.len() >= 4);
    secrets
}

/// OpenDAL's message without addresses and credentials: addresses may be signed.
fn message_without_secrets(error: &opendal::Error, secrets: &[String]) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    let cause = deepest.to_string();
    if cause.contains("region is missing") || error.message().contains("region is missing") {
        return "it has no region: write s3://BUCKET/PATH?region=REGION, or set AWS_REGION"
            .to_owned();
    }
    let message = match std::ptr::addr_eq(deepest, error) {
        true => error.message().to_owned(),
        false => format!("{}: {cause}", error.message()),
    };
    let message = without_markup(&message);
    let words = message
        .split_whitespace()
        .filter(|word| !word.contains("://"))
        .take(40);
    let mut message = words.collect::<Vec<_>>().join(" ");
    for secret in secrets {
        message = message.replace(secret.as_str(), "[secret]");
    }
    format!("{message} ({})", error.kind())
}

/// The text of an error page, which some servers send as HTML.
fn without_markup(text: &str) -> String {
    if !text.trim_start().starts_with('<') {
        return text.to_owned();
    }
    let mut parts = text.split('<');
    let before = parts.next().unwrap_or_default();
    let after = parts.map(|part| part.split_once('>').map_or("", |(_, text)| text));
    std::iter::once(before)
        .chain(after)
        .collect::<Vec<_>>()
        .join(" ")
}

fn local(error: &std::io::Error) -> RemoteError {
    RemoteError::Local {
        path: "a blob to be uploaded".to_owned(),
        why: error.to_string(),
    }
}
