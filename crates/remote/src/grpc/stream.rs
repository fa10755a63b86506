//! One blob of any size, in pieces: ByteStream, with the digest computed on the way.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bazel_remote_apis::google::bytestream::byte_stream_client::ByteStreamClient;
use bazel_remote_apis::google::bytestream::{ReadRequest, WriteRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request};
use warpcc_cache::Digest;
use warpcc_cache::digest::Digesting;

use super::{Failure, Grpc, LONGEST_MESSAGE};
use crate::backend::UploadSource;
use crate::deadline::Pace;
use crate::download::unpacker;
use crate::error::RemoteError;

/// Bytes of a blob in one message, when we write. Servers take up to 4 MiB; NativeLink's advice is 64 KiB.
const PIECE: usize = 256 << 10;

/// The number of pieces that are read in advance.
const AHEAD: usize = 4;

/// The destination of received bytes. It accepts no more than the blob has.
struct Sink<W> {
    to: W,
    digesting: Digesting,
    left: u64,
}

/// More came than the blob has.
const TOO_MUCH: &str = "more bytes than the blob has";

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other(TOO_MUCH))?;
        self.digesting.update(bytes);
        self.to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A sink behind a decompressor, or not.
enum Unpacking<W: Write> {
    Plain(Sink<W>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Sink<W>>>),
}

impl<W: Write> Unpacking<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.write_all(bytes),
            Self::Zstd(decoder) => decoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<Digest> {
        let mut sink = match self {
            Self::Plain(sink) => sink,
            Self::Zstd(mut decoder) => {
                decoder.flush()?;
                decoder.into_inner()
            }
        };
        sink.flush()?;
        Ok(sink.digesting.finish())
    }
}

impl Grpc {
    fn resource(&self, blob: &str) -> String {
        match self.instance() {
            none if none.is_empty() => blob.to_owned(),
            instance => format!("{instance}/{blob}"),
        }
    }

    /// Fetches the blob into the new file `to`. Returns false if the server does not have it.
    pub(crate) async fn read_to_file(
        &self,
        digest: &Digest,
        to: &Path,
    ) -> Result<bool, RemoteError> {
        let local = |e: io::Error| RemoteError::Local {
            path: to.display().to_string(),
            why: e.to_string(),
        };
        let file = File::create_new(to).map_err(local)?;
        let read = self.read_into(digest, &file, &local).await;
        drop(file);
        if !matches!(read, Ok(true)) {
            // Half of it helps nobody.
            let _ = std::fs::remove_file(to);
        }
        read
    }

    pub(crate) async fn read_to_memory(
        &self,
        digest: &Digest,
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        let mut bytes = Vec::new();
        let local = |e: io::Error| self.answered(e.to_string());
        let read = self.read_into(digest, &mut bytes, &local).await?;
        Ok(read.then_some(bytes))
    }

    async fn read_into(
        &self,
        digest: &Digest,
        to: impl Write + Send,
        local: &(impl Fn(io::Error) -> RemoteError + Sync),
    ) -> Result<bool, RemoteError> {
        if digest.size == 0 {
            // Some servers have no resource without bytes.
            return match *digest == Digest::of_bytes(b"") {
                true => Ok(true),
                false => Err(self.wrong(digest)),
            };
        }
        let packed = self.capabilities().await?.zstd;
        match self.read_pieces(digest, packed, to, local).await {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => Err(self.fault(failure).await),
        }
    }

    async fn read_pieces(
        &self,
        digest: &Digest,
        packed: bool,
        to: impl Write,
        local: &impl Fn(io::Error) -> RemoteError,
    ) -> Result<(), Failure> {
        let folder = if packed {
            "compressed-blobs/zstd"
        } else {
            "blobs"
        };
        let body = ReadRequest {
            resource_name: self.resource(&format!("{folder}/{digest}")),
            // No limit: BuildGrid answers DATA_LOSS to one.
            read_offset: 0,
            read_limit: 0,
        };
        let patience = self.deadlines().call;
        let mut pace = Pace::at_least(patience, self.deadlines().slowest);
        let mut pieces = self
            .call(patience, &body, |channel, mut request| async move {
                // The stream goes on after its first answer.
                request.metadata_mut().remove("grpc-timeout");
                ByteStreamClient::new(channel)
                    .max_decoding_message_size(LONGEST_MESSAGE)
                    .read(request)
                    .await
            })
            .await?;
        let sink = Sink {
            to,
            digesting: Digesting::new(),
            left: digest.size,
        };
        let mut unpacking = if packed {
            let decoder = unpacker(sink).map_err(local)?;
            Unpacking::Zstd(Box::new(decoder))
        } else {
            Unpacking::Plain(sink)
        };
        // A broken frame, or too many bytes: this is an error of the server, not of the disk.
        let spoilt = |e: io::Error| {
            if packed || e.to_string() == TOO_MUCH {
                Failure::RemoteError(self.wrong(digest))
            } else {
                Failure::RemoteError(local(e))
            }
        };
        loop {
            let piece = pace.next(pieces.message()).await;
            let Some(piece) = piece.map_err(Failure::TooSlow)?? else {
                break;
            };
            pace.add(piece.data.len());
            unpacking.write(&piece.data).map_err(spoilt)?;
        }
        if unpacking.finish().map_err(spoilt)? != *digest {
            return Err(Failure::RemoteError(self.wrong(digest)));
        }
        Ok(())
    }

    /// Uploads one blob from memory or from its file, with a few pieces in memory at a time.
    pub(crate) async fn write_stream(
        &self,
        digest: &Digest,
        source: &UploadSource,
    ) -> Result<(), RemoteError> {
        let packed = self.capabilities().await?.zstd;
        let mut failure = match self.write_pieces(digest, source, packed).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        if self.renews(&failure).await {
            failure = match self.write_pieces(digest, source, packed).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
        }
        // Another one was faster.
        if failure.code() == Some(Code::AlreadyExists) {
            return Ok(());
        }
        Err(self.fault(failure).await)
    }

    async fn write_pieces(
        &self,
        digest: &Digest,
        source: &UploadSource,
        packed: bool,
    ) -> Result<(), Failure> {
        let folder = if packed {
            "compressed-blobs/zstd"
        } else {
            "blobs"
        };
        let upload = upload_name();
        let resource = self.resource(&format!("uploads/{upload}/{folder}/{digest}"));
        let (send, receive) = mpsc::channel(AHEAD);
        let moved = Arc::new(AtomicU64::new(0));
        let reading = {
            let (source, digest, moved) = (source.clone(), *digest, Arc::clone(&moved));
            tokio::task::spawn_blocking(move || {
                feed(&source, &digest, packed, resource, &send, &moved)
            })
        };
        let mut request = Request::new(ReceiverStream::new(receive));
        self.prepare(request.metadata_mut()).await?;
        let mut client = ByteStreamClient::new(self.channel().await);
        let whole = self.deadlines().for_transfer(digest.size);
        let sent = tokio::select! {
            sent = client.write(request) => sent.map_err(Failure::from),
            stuck = stands_still(&moved, self.deadlines().call) => Err(Failure::TooSlow(stuck)),
            () = tokio::time::sleep(whole) => Err(Failure::TooSlow(whole)),
        };
        // It ends at once if the receiver is gone.
        let fed = reading.await;
        let answer = sent?.into_inner();
        let whole = match fed {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(fault)) => return Err(fault.into()),
            Err(_) => return Err(self.answered("the upload was cancelled").into()),
        };
        let committed = answer.committed_size;
        // A server that has the blob already need not read it. For a compressed blob it may then answer -1.
        let is_whole =
            [i64::try_from(digest.size).ok(), i64::try_from(whole).ok()].contains(&Some(committed));
        if is_whole || (packed && committed == -1) {
            return Ok(());
        }
        Err(self
            .answered(format!("took {committed} of {whole} bytes of {digest}"))
            .into())
    }
}

/// Returns when nothing was transferred for `patience`.
async fn stands_still(moved: &AtomicU64, patience: Duration) -> Duration {
    let mut last = moved.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(patience).await;
        let now = moved.load(Ordering::Relaxed);
        if now == last {
            return patience;
        }
        last = now;
    }
}

/// Reads the source and passes it on in pieces. Returns the number of bytes that were sent, after compression.
fn feed(
    source: &UploadSource,
    digest: &Digest,
    packed: bool,
    resource: String,
    send: &mpsc::Sender<WriteRequest>,
    moved: &AtomicU64,
) -> Result<u64, RemoteError> {
    let local = |e: io::Error| RemoteError::Local {
        path: match source {
            UploadSource::Bytes(_) => "memory".to_owned(),
            UploadSource::File(path) => path.display().to_string(),
        },
        why: e.to_string(),
    };
    let plain: Box<dyn Read> = match source {
        UploadSource::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
        // No more than was announced, in case the file has grown meanwhile.
        UploadSource::File(path) => Box::new(File::open(path).map_err(local)?.take(digest.size)),
    };
    let mut bytes: Box<dyn Read> = if packed {
        let level = 3;
        Box::new(zstd::stream::read::Encoder::new(plain, level).map_err(local)?)
    } else {
        plain
    };
    let mut offset: u64 = 0;
    let mut resource = Some(resource);
    let mut next = piece(&mut bytes).map_err(local)?;
    loop {
        let data = next;
        next = piece(&mut bytes).map_err(local)?;
        let finish_write = next.is_empty();
        let length = data.len() as u64;
        let request = WriteRequest {
            // Once is enough.
            resource_name: resource.take().unwrap_or_default(),
            write_offset: i64::try_from(offset).unwrap_or(i64::MAX),
            finish_write,
            data,
        };
        offset += length;
        if send.blocking_send(request).is_err() {
            // The server has answered: it has the blob already, or does not want it.
            return Ok(offset);
        }
        moved.store(offset, Ordering::Relaxed);
        if finish_write {
            return Ok(offset);
        }
    }
}

/// The next full piece. A shorter one is the last. An empty one means that there is none.
fn piece(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(PIECE);
    from.take(PIECE as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A version 4 UUID.
fn upload_name() -> String {
    let number = fastrand::u128(..);
    let version = (number & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{version:032x}");
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &hex[range]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_uploads_are_uuids() {
        let name = upload_name();
        assert_eq!(name.len(), 36);
        assert_eq!(&name[14..15], "4");
        assert!(["8", "9", "a", "b"].contains(&&name[19..20]), "{name}");
        assert_ne!(name, upload_name());
    }
}
