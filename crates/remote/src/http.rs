//! Bazel's HTTP caching protocol: `GET`, `HEAD` and `PUT` of `/ac/<key>` (a serialized `ActionResult`) and
//! `/cas/<sha256>` (bytes). nginx with WebDAV, bazel-remote and others serve it.
//!
//! Blobs are kept as they are: the protocol names no packing. A server that packs on the wire (`Content-Encoding: zstd`)
//! is understood.

use std::io::Write;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use futures_util::TryStreamExt;
use prost::Message;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use reqwest::{Body, Method, Response, StatusCode, Url};
use tonic::metadata::MetadataMap;
use warpcc_cache::{Digest, Key};

use crate::action_result::{LARGEST_RESULT, TOO_LARGE};
use crate::auth::Credentials;
use crate::backend::UploadSource;
use crate::deadline::Pace;
use crate::download::Download;
use crate::error::RemoteError;
use crate::per_blob::PerBlob;
use crate::settings::Layer;
use crate::{deadline, tls};

/// A server that speaks the protocol.
pub struct Http {
    client: reqwest::Client,
    base: Url,
    user: Option<(String, String)>,
    credentials: Credentials,
    server: String,
    answer: Duration,
}

impl Http {
    /// Does not reach out yet.
    ///
    /// # Errors
    /// A certificate that cannot be read.
    pub fn new(layer: &Layer) -> Result<Self, RemoteError> {
        let mut base = layer.url().clone();
        let user = (!base.username().is_empty() || base.password().is_some()).then(|| {
            let password = base.password().unwrap_or_default();
            (decoded(base.username()), decoded(password))
        });
        // They go into a header, because servers log the URL. A URL with a host accepts both.
        let _ = base.set_username("");
        let _ = base.set_password(None);
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self {
            client: client(layer)?,
            base,
            user,
            credentials: Credentials::new(layer.auth.clone(), layer.url_for_helper()),
            server: layer.shown(),
            answer: layer.answer,
        })
    }

    /// The server's name from its answer to a request that every server knows.
    ///
    /// # Errors
    /// As all requests.
    pub async fn describe(&self) -> Result<String, RemoteError> {
        // The blob does not exist: it only matters that there is an answer.
        let probe = self.address("cas", &"0".repeat(64))?;
        let response = self.within(0, self.send(Method::HEAD, probe, None)).await?;
        let name = response.headers().get(reqwest::header::SERVER);
        let name = name.and_then(|name| name.to_str().ok()).unwrap_or("HTTP");
        match response.status() {
            status if status.is_success() || status == StatusCode::NOT_FOUND => {
                Ok(name.chars().filter(|c| !c.is_control()).take(60).collect())
            }
            status => Err(self.refusal(status)),
        }
    }

    /// Removes a result and a blob where the server lets us.
    pub async fn remove(&self, key: &Key, blob: &Digest) {
        for (kind, name) in [("ac", key.hex()), ("cas", blob.hex())] {
            if let Ok(url) = self.address(kind, &name) {
                // Few servers know it.
                drop(self.within(0, self.send(Method::DELETE, url, None)).await);
            }
        }
    }

    fn address(&self, kind: &str, name: &str) -> Result<Url, RemoteError> {
        let joined = self.base.join(&format!("{kind}/{name}"));
        joined.map_err(|e| self.invalid(&e.to_string()))
    }

    async fn send(
        &self,
        method: Method,
        url: Url,
        body: Option<&UploadSource>,
    ) -> Result<Response, RemoteError> {
        let response = self.send_once(&method, &url, body).await?;
        // A token that has expired may have been renewed in its file.
        if response.status() == StatusCode::UNAUTHORIZED && self.credentials.renew().await {
            return self.send_once(&method, &url, body).await;
        }
        Ok(response)
    }

    async fn send_once(
        &self,
        method: &Method,
        url: &Url,
        body: Option<&UploadSource>,
    ) -> Result<Response, RemoteError> {
        let mut request = self.client.request(method.clone(), url.clone());
        if let Some((name, password)) = &self.user {
            request = request.basic_auth(name, Some(password));
        }
        request = request.headers(self.headers().await?);
        match body {
            Some(UploadSource::Bytes(bytes)) => request = request.body(bytes.clone()),
            Some(UploadSource::File(path)) => {
                let local = |error: std::io::Error| RemoteError::Local {
                    path: path.display().to_string(),
                    why: error.to_string(),
                };
                let file = tokio::fs::File::open(path).await.map_err(local)?;
                let length = file.metadata().await.map_err(local)?.len();
                request = request
                    .header(CONTENT_LENGTH, length)
                    .body(Body::from(file));
            }
            None if *method == Method::GET => request = request.header(ACCEPT_ENCODING, "zstd"),
            None => {}
        }
        match request.send().await {
            Ok(response) => Ok(response),
            Err(error) => Err(self.broken(error).await),
        }
    }

    async fn headers(&self) -> Result<HeaderMap, RemoteError> {
        let mut metadata = MetadataMap::new();
        match self.credentials.add_to(&mut metadata).await {
            Ok(()) => Ok(metadata.into_headers()),
            Err(error) => Err(RemoteError::Refused {
                server: self.server.clone(),
                why: error.to_string(),
            }),
        }
    }

    /// Runs `work`, and ends it if it takes longer than an answer and `bytes` may take.
    async fn within<T>(
        &self,
        bytes: u64,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        deadline::within(&self.server, self.answer, bytes, work).await
    }

    async fn broken(&self, error: reqwest::Error) -> RemoteError {
        // The address is left out: it may contain credentials, and the user knows it.
        let error = error.without_url();
        let mut why = error.to_string();
        let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
        while let Some(inner) = cause {
            why = inner.to_string();
            cause = inner.source();
        }
        RemoteError::Unreachable {
            server: self.server.clone(),
            why: self.credentials.without_secrets(&why).await,
        }
    }

    fn refusal(&self, status: StatusCode) -> RemoteError {
        let server = self.server.clone();
        let why = status.to_string();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                RemoteError::Refused { server, why }
            }
            _ => RemoteError::Answer { server, why },
        }
    }

    fn invalid(&self, why: &str) -> RemoteError {
        RemoteError::Answer {
            server: self.server.clone(),
            why: why.to_owned(),
        }
    }

    async fn put(
        &self,
        kind: &str,
        name: &str,
        body: &UploadSource,
        size: u64,
    ) -> Result<(), RemoteError> {
        let url = self.address(kind, name)?;
        let response = self
            .within(size, self.send(Method::PUT, url, Some(body)))
            .await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.refusal(status)),
        }
    }
}

impl PerBlob for Http {
    async fn get_result(&self, key: &Key) -> Result<Option<ActionResult>, RemoteError> {
        let url = self.address("ac", &key.hex())?;
        let fetching = async {
            let response = self.send(Method::GET, url, None).await?;
            match response.status() {
                StatusCode::NOT_FOUND => return Ok(None),
                status if status.is_success() => {}
                status => return Err(self.refusal(status)),
            }
            let packed = response.headers().get(CONTENT_ENCODING);
            let packed = packed.is_some_and(|encoding| encoding == "zstd");
            let mut body = Vec::new();
            let mut pieces = response.bytes_stream();
            loop {
                match pieces.try_next().await {
                    Ok(Some(piece)) => body.extend_from_slice(&piece),
                    Ok(None) => break,
                    Err(error) => return Err(self.broken(error).await),
                }
                if body.len() > LARGEST_RESULT {
                    return Err(self.invalid(TOO_LARGE));
                }
            }
            if packed {
                body = crate::action_result::unpack(&body, LARGEST_RESULT)
                    .ok_or_else(|| self.invalid("a result that cannot be unpacked"))?;
            }
            ActionResult::decode(body.as_slice())
                .map(Some)
                .map_err(|_| self.invalid("a result that is not an ActionResult message"))
        };
        self.within(0, fetching).await
    }

    async fn replace_result(&self, key: &Key, result: &ActionResult) -> Result<(), RemoteError> {
        let bytes = result.encode_to_vec();
        let size = bytes.len() as u64;
        self.put("ac", &key.hex(), &UploadSource::Bytes(bytes), size)
            .await
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, RemoteError> {
        let url = self.address("cas", &digest.hex())?;
        let response = self.within(0, self.send(Method::HEAD, url, None)).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            status => Err(self.refusal(status)),
        }
    }

    async fn get_blob(&self, digest: &Digest, out: impl Write + Send) -> Result<bool, RemoteError> {
        let url = self.address("cas", &digest.hex())?;
        let mut pace = Pace::new(self.answer);
        let asked = self.send(Method::GET, url, None);
        let response = pace.next_from(&self.server, asked).await?;
        match response.status() {
            StatusCode::NOT_FOUND => return Ok(false),
            status if status.is_success() => {}
            status => return Err(self.refusal(status)),
        }
        let packed = response.headers().get(CONTENT_ENCODING);
        let packed = packed.is_some_and(|encoding| encoding == "zstd");
        let mut download = Download::new(&self.server, digest, packed, out)?;
        let mut bytes = response.bytes_stream();
        loop {
            let next = async {
                match bytes.try_next().await {
                    Ok(piece) => Ok(piece),
                    Err(error) => Err(self.broken(error).await),
                }
            };
            let Some(piece) = pace.next_from(&self.server, next).await? else {
                break;
            };
            pace.add(piece.len());
            download.take(&piece)?;
        }
        download.finish()?;
        Ok(true)
    }

    async fn put_blob(&self, digest: &Digest, source: &UploadSource) -> Result<(), RemoteError> {
        self.put("cas", &digest.hex(), source, digest.size).await
    }
}

/// A client with the layer's certificates and its deadline for connections. No call of it waits for ever.
///
/// # Errors
/// A certificate that cannot be read.
pub fn client(layer: &Layer) -> Result<reqwest::Client, RemoteError> {
    tls::choose_provider();
    let plain = ["http", "webdav", "redis"].contains(&layer.url().scheme());
    let made = reqwest::Client::builder()
        .connect_timeout(layer.connect)
        // No other server may get the request: it has headers with secrets.
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls::config(&layer.auth, !plain)?)
        .build();
    made.map_err(|error| RemoteError::Answer {
        server: layer.shown(),
        why: error.without_url().to_string(),
    })
}

/// Decodes a part of a URL.
pub fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_decoded() {
        assert_eq!(decoded("a%40b%2"), "a@b%2");
    }
}
