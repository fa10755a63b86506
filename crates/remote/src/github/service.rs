//! GitHub's cache service: the three calls of the second version of its protocol (Twirp with protobuf), and the signed
//! addresses of Azure's blobs that they give.
//!
//! ```text
//! GetCacheEntryDownloadURL   the entry of a name, else the newest one whose name begins with it
//! CreateCacheEntry           takes a name, once and for ever; 200 a minute for a repository, then 429 with Retry-After
//! FinalizeCacheEntryUpload   from here on others find it
//! ```
//!
//! Only the second one is limited.

use std::path::Path;
use std::time::Duration;

use prost::Message;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, RANGE, RETRY_AFTER};
use reqwest::{Body, RequestBuilder, Response, StatusCode, Url};
use tonic::metadata::MetadataMap;

use crate::auth::Credentials;
use crate::deadline;
use crate::error::RemoteError;
use crate::http;
use crate::settings::Layer;

/// What all entries have in common beside their names. Must have 64 characters: the digest of `warpcc-bundle-v1`.
const VERSION: &str = "8eac9986a0863351e10c3599e643ec5b00be25e8d5620582eb758eb7a9000c3e";
/// Path of the calls.
const CALLS: &str = "twirp/github.actions.results.api.v1.CacheService/";
/// Longest answer to a call.
const LONGEST_ANSWER: usize = 64 << 10;

/// Why a call failed.
#[derive(Debug)]
pub enum CallError {
    /// The name is taken.
    Taken,
    /// Too many calls: wait this long, where the service says how long.
    Busy(Option<Duration>),
    /// Anything else.
    Fault(RemoteError),
}

/// An entry that was found.
pub struct FoundEntry {
    /// Its name.
    pub name: String,
    /// Where it can be read for some minutes.
    pub url: Url,
}

/// The service, for one token.
pub struct Service {
    client: reqwest::Client,
    base: Url,
    credentials: Credentials,
    server: String,
    answer: Duration,
}

#[derive(Clone, PartialEq, Message)]
struct Lookup {
    #[prost(string, tag = "2")]
    key: String,
    #[prost(string, repeated, tag = "3")]
    restore_keys: Vec<String>,
    #[prost(string, tag = "4")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct LookupAnswer {
    #[prost(bool, tag = "1")]
    ok: bool,
    #[prost(string, tag = "2")]
    url: String,
    #[prost(string, tag = "3")]
    matched: String,
}

#[derive(Clone, PartialEq, Message)]
struct Create {
    #[prost(string, tag = "2")]
    key: String,
    #[prost(string, tag = "3")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct CreateAnswer {
    #[prost(bool, tag = "1")]
    ok: bool,
    #[prost(string, tag = "2")]
    url: String,
}

#[derive(Clone, PartialEq, Message)]
struct Finalize {
    #[prost(string, tag = "2")]
    key: String,
    #[prost(int64, tag = "3")]
    size: i64,
    #[prost(string, tag = "4")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct FinalizeAnswer {
    #[prost(bool, tag = "1")]
    ok: bool,
}

impl Service {
    /// Does not reach out yet.
    ///
    /// # Errors
    /// The runner's variables are not set, or say no address.
    pub fn new(layer: &Layer) -> Result<Self, RemoteError> {
        let server = layer.shown();
        let unusable = |why: &str| RemoteError::Answer {
            server: server.clone(),
            why: why.to_owned(),
        };
        let service = layer
            .url()
            .query_pairs()
            .find(|(name, _)| name == "service");
        let Some((_, address)) = service.filter(|_| layer.auth.token.is_some()) else {
            return Err(unusable(
                "ACTIONS_RESULTS_URL or ACTIONS_RUNTIME_TOKEN is not set: GitHub gives both to actions only, so \
                 export them (docs/remote.md has the lines)",
            ));
        };
        let mut base: Url = address
            .parse()
            .map_err(|_| unusable("ACTIONS_RESULTS_URL is not a URL"))?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let base = base
            .join(CALLS)
            .map_err(|_| unusable("ACTIONS_RESULTS_URL is not the URL of a server"))?;
        Ok(Self {
            client: http::client(layer)?,
            credentials: Credentials::new(layer.auth.clone(), base.to_string()),
            base,
            answer: layer.answer,
            server,
        })
    }

    /// The service's name in messages.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The time for an answer.
    pub fn answer(&self) -> Duration {
        self.answer
    }

    /// The entry of this name, else the newest one whose name begins with it.
    ///
    /// # Errors
    /// As all requests.
    pub async fn find(&self, name: &str) -> Result<Option<FoundEntry>, RemoteError> {
        let asked = Lookup {
            key: name.to_owned(),
            restore_keys: vec![name.to_owned()],
            version: VERSION.to_owned(),
        };
        let answer: LookupAnswer = match self.call("GetCacheEntryDownloadURL", &asked).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.fault(error)),
        };
        if !answer.ok {
            return Ok(None);
        }
        let url = self.signed(&answer.url)?;
        let name = answer.matched;
        Ok(Some(FoundEntry { name, url }))
    }

    /// Takes a name, and gives where to put its bytes.
    ///
    /// # Errors
    /// It is taken, or as all requests.
    pub async fn create(&self, name: &str) -> Result<Url, CallError> {
        let asked = Create {
            key: name.to_owned(),
            version: VERSION.to_owned(),
        };
        let answer: CreateAnswer = self.call("CreateCacheEntry", &asked).await?;
        match answer.ok {
            true => self.signed(&answer.url).map_err(CallError::Fault),
            false => Err(CallError::Taken),
        }
    }

    /// Makes an entry visible whose `size` bytes have been put.
    ///
    /// # Errors
    /// As all requests.
    pub async fn finalize(&self, name: &str, size: u64) -> Result<(), CallError> {
        let asked = Finalize {
            key: name.to_owned(),
            size: i64::try_from(size).unwrap_or(i64::MAX),
            version: VERSION.to_owned(),
        };
        let answer: FinalizeAnswer = self.call("FinalizeCacheEntryUpload", &asked).await?;
        match answer.ok {
            true => Ok(()),
            false => Err(CallError::Fault(self.odd("the upload is not taken"))),
        }
    }

    /// Puts the bytes of `file`, all of them in one request.
    ///
    /// # Errors
    /// As all requests.
    pub async fn put(&self, to: &Url, file: &Path) -> Result<u64, RemoteError> {
        let local = |error: std::io::Error| RemoteError::Local {
            path: file.display().to_string(),
            why: error.to_string(),
        };
        let opened = tokio::fs::File::open(file).await.map_err(local)?;
        let length = opened.metadata().await.map_err(local)?.len();
        let request = self
            .client
            .put(to.clone())
            .header("x-ms-blob-type", "BlockBlob")
            .header(CONTENT_LENGTH, length)
            .body(Body::from(opened));
        let sending = async {
            let response = self.send(request).await?;
            match response.status() {
                status if status.is_success() => Ok(length),
                status => Err(self.refusal(status, "")),
            }
        };
        deadline::within(&self.server, self.answer, length, sending).await
    }

    /// Asks for bytes of an entry. The answer may also be all of it.
    ///
    /// # Errors
    /// No answer. What the answer says is the caller's matter.
    pub async fn get(&self, from: &Url, first: u64, last: u64) -> Result<Response, RemoteError> {
        let request = self.client.get(from.clone());
        let request = request.header(RANGE, format!("bytes={first}-{last}"));
        deadline::within(&self.server, self.answer, 0, self.send(request)).await
    }

    /// The error for a status.
    pub fn refusal(&self, status: StatusCode, words: &str) -> RemoteError {
        let server = self.server.clone();
        let why = match words {
            "" => status.to_string(),
            words => format!("{status}: {words}"),
        };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                RemoteError::Refused { server, why }
            }
            _ => RemoteError::Answer { server, why },
        }
    }

    /// The error for an answer that makes no sense.
    pub fn odd(&self, why: &str) -> RemoteError {
        RemoteError::Answer {
            server: self.server.clone(),
            why: why.to_owned(),
        }
    }

    /// The error for a connection that broke. The address is signed, so it is in no message.
    pub fn broken(&self, error: reqwest::Error) -> RemoteError {
        let error = error.without_url();
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            why = inner.to_string();
            cause = inner.source();
        }
        RemoteError::Unreachable {
            server: self.server.clone(),
            why,
        }
    }

    /// What a call's error is to somebody who does not wait.
    pub fn fault(&self, error: CallError) -> RemoteError {
        match error {
            CallError::Taken => self.odd("the name is taken"),
            CallError::Busy(after) => RemoteError::Busy {
                server: self.server.clone(),
                seconds: after.unwrap_or(Duration::from_secs(60)).as_secs(),
            },
            CallError::Fault(fault) => fault,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, RemoteError> {
        request.send().await.map_err(|error| self.broken(error))
    }

    async fn call<A: Message + Default>(
        &self,
        method: &str,
        asked: &impl Message,
    ) -> Result<A, CallError> {
        let calling = self.answer_to(method, asked.encode_to_vec());
        let all = async { Ok(calling.await) };
        let answer = deadline::within(&self.server, self.answer, 0, all).await;
        let bytes = answer.map_err(CallError::Fault)??;
        A::decode(&bytes[..])
            .map_err(|_| CallError::Fault(self.odd("not a message of the cache service")))
    }

    async fn answer_to(&self, method: &str, body: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let url = self.base.join(method);
        let url = url.map_err(|e| CallError::Fault(self.odd(&e.to_string())))?;
        let mut metadata = MetadataMap::new();
        if let Err(error) = self.credentials.add_to(&mut metadata).await {
            return Err(CallError::Fault(RemoteError::Refused {
                server: self.server.clone(),
                why: error.to_string(),
            }));
        }
        let request = self
            .client
            .post(url)
            .headers(metadata.into_headers())
            .header(CONTENT_TYPE, "application/protobuf")
            .body(body);
        let mut response = self.send(request).await.map_err(CallError::Fault)?;
        let status = response.status();
        let after = retry_after(&response);
        let mut bytes = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| CallError::Fault(self.broken(error)))?
        {
            bytes.extend_from_slice(&piece);
            if bytes.len() > LONGEST_ANSWER {
                return Err(CallError::Fault(self.odd("an answer of more than 64 KiB")));
            }
        }
        match status {
            StatusCode::OK => Ok(bytes),
            StatusCode::CONFLICT => Err(CallError::Taken),
            StatusCode::TOO_MANY_REQUESTS => Err(CallError::Busy(after)),
            status => {
                let words = self.credentials.without_secrets(&message(&bytes)).await;
                Err(CallError::Fault(self.refusal(status, &words)))
            }
        }
    }

    /// An address that the service gave. Over a connection that is encrypted it names only others that are.
    fn signed(&self, text: &str) -> Result<Url, RemoteError> {
        let url = text.parse::<Url>().ok();
        let fits = |url: &Url| url.scheme() == "https" || url.scheme() == self.base.scheme();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && fits(url));
        url.ok_or_else(|| self.odd("an address that cannot be used"))
    }
}

/// The words of Twirp's error.
fn message(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let text = json.as_ref().and_then(|json| json["msg"].as_str());
    text.unwrap_or_default().chars().take(200).collect()
}

/// `Retry-After` in seconds; its other form, a date, is not used by GitHub.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}
