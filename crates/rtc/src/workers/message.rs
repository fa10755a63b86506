//! Messages between a process that asks for compilations and one that compiles: frames on a socket.
//!
//! A frame is a length of four bytes and that many bytes. An empty frame only says that the sender is alive.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::job_texts::JobTexts;
use crate::nvrtc::{CompileOutput, LoadedBuild, NvrtcError};
use crate::version::Version;

/// The first text of both sides. Processes of two versions of this library do not work together.
const GREETING: &str = concat!("warpcc-rtc ", env!("CARGO_PKG_VERSION"), " compiles, 1");
/// The largest message, in bytes. A larger kernel is compiled by the process that has it.
pub(super) const LARGEST: usize = 1 << 30;
const HEAD: usize = 4;

/// A message as a frame; `None` if it is too large.
pub(super) fn framed(message: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(message.len())
        .ok()
        .filter(|_| message.len() <= LARGEST)?;
    let mut frame = Vec::with_capacity(HEAD + message.len());
    frame.extend(length.to_le_bytes());
    frame.extend(message);
    Some(frame)
}

/// Bytes that arrive in pieces, as frames.
#[derive(Debug, Default)]
pub(super) struct Received(Vec<u8>);

/// A frame is longer than any message may be.
#[derive(Debug)]
pub(super) struct TooLong;

impl Received {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next message of at most `longest` bytes, if it is complete.
    pub(super) fn take(&mut self, longest: usize) -> Result<Option<Vec<u8>>, TooLong> {
        let Some((head, rest)) = self.0.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > longest {
            return Err(TooLong);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let message = rest[..length].to_vec();
        self.0.drain(..HEAD + length);
        Ok(Some(message))
    }
}

/// What the asking process says first: its number, and the library to load.
pub(super) struct Hello {
    pub parent: u32,
    pub library: PathBuf,
}

type SentHello<'m> = (&'m str, u32, &'m [u8]);

impl Hello {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let library = self.library.as_os_str().as_bytes();
        let sent: SentHello<'_> = (GREETING, self.parent, library);
        // Numbers and texts can always be written.
        postcard::to_allocvec(&sent).unwrap_or_default()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let read = postcard::take_from_bytes::<SentHello<'_>>(bytes);
        let Ok(((GREETING, parent, library), [])) = read else {
            return None;
        };
        let library = Path::new(OsStr::from_bytes(library)).to_path_buf();
        Some(Self { parent, library })
    }
}

/// What the compiling process answers: the build that it has loaded, or why it has none.
pub(super) type Ready = Result<LoadedBuild, String>;

type SentReady<'m> = (&'m str, &'m str, (u32, u32), &'m [u8], Vec<[u64; 5]>);

pub(super) fn ready_to_bytes(ready: &Ready) -> Vec<u8> {
    let sent: SentReady<'_> = match ready {
        Ok(build) => (
            GREETING,
            "",
            (build.version.major, build.version.minor),
            build.library.as_os_str().as_bytes(),
            build.files.clone(),
        ),
        Err(why) => (GREETING, why, (0, 0), &[], Vec::new()),
    };
    postcard::to_allocvec(&sent).unwrap_or_default()
}

pub(super) fn ready_from_bytes(bytes: &[u8]) -> Option<Ready> {
    let read = postcard::take_from_bytes::<SentReady<'_>>(bytes);
    let Ok(((GREETING, why, (major, minor), library, files), [])) = read else {
        return None;
    };
    if !why.is_empty() {
        return Some(Err(why.to_owned()));
    }
    Some(Ok(LoadedBuild {
        version: Version::new(major, minor),
        library: Path::new(OsStr::from_bytes(library)).to_path_buf(),
        files,
    }))
}

/// A compilation: its number, its texts, and the working directory if the result may depend on it.
pub(super) struct Task {
    pub number: u64,
    pub directory: Option<PathBuf>,
    pub texts: JobTexts,
}

type SentTask<'m> = (u64, Option<&'m [u8]>, &'m [u8]);

pub(super) fn task_to_bytes(number: u64, directory: Option<&Path>, texts: &JobTexts) -> Vec<u8> {
    let directory = directory.map(|path| path.as_os_str().as_bytes());
    let texts = texts.to_bytes();
    let sent: SentTask<'_> = (number, directory, &texts);
    postcard::to_allocvec(&sent).unwrap_or_default()
}

impl Task {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let Ok(((number, directory, texts), [])) = postcard::take_from_bytes::<SentTask<'_>>(bytes)
        else {
            return None;
        };
        let directory = directory.map(|path| Path::new(OsStr::from_bytes(path)).into());
        let texts = JobTexts::from_bytes(texts)?;
        Some(Self {
            number,
            directory,
            texts,
        })
    }
}

/// The answer to a [`Task`].
pub(super) enum Answer {
    /// NVRTC made an image, or refused the text.
    Done(Result<CompileOutput, NvrtcError>),
    /// The compiling process leaves it to the other.
    Left,
}

/// The task's number, the kind, NVRTC's name for an error, its log, the names, the image.
type SentAnswer<'m> = (u64, u8, &'m str, &'m str, Vec<&'m str>, &'m [u8]);

impl Answer {
    pub(super) fn to_bytes(&self, number: u64) -> Vec<u8> {
        let sent: SentAnswer<'_> = match self {
            Self::Done(Ok(made)) => {
                let lowered = made.lowered.iter().map(String::as_str).collect();
                (number, 1, "", &made.log, lowered, &made.image)
            }
            Self::Done(Err(NvrtcError::Refused { code, log })) => {
                (number, 2, code, log, Vec::new(), &[])
            }
            // Any other failure happens again in the process that asked, or does not.
            Self::Done(Err(_)) | Self::Left => (number, 0, "", "", Vec::new(), &[]),
        };
        postcard::to_allocvec(&sent).unwrap_or_default()
    }

    /// Reads the answer to the task `number`, which has so many name expressions; `None` if it is not valid.
    pub(super) fn from_bytes(bytes: &[u8], number: u64, expressions: usize) -> Option<Self> {
        let read = postcard::take_from_bytes::<SentAnswer<'_>>(bytes);
        let Ok(((to, kind, code, log, lowered, image), [])) = read else {
            return None;
        };
        if to != number {
            return None;
        }
        match kind {
            0 => Some(Self::Left),
            1 if lowered.len() == expressions => Some(Self::Done(Ok(CompileOutput {
                image: image.to_vec(),
                lowered: lowered.into_iter().map(str::to_owned).collect(),
                log: log.to_owned(),
            }))),
            2 => Some(Self::Done(Err(NvrtcError::Refused {
                code: code.to_owned(),
                log: log.to_owned(),
            }))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::CompileRequest;

    #[test]
    fn what_is_sent_arrives_in_pieces_of_any_size() {
        let request = CompileRequest::new("k", "text", "sm_90".parse().expect("a target"));
        let texts = JobTexts::new_checked(&request, &[b"-DA".to_vec()]).expect("texts");
        let sent = task_to_bytes(7, Some(Path::new("/here")), &texts);
        for size in [1, 3, 4, 5, 1000] {
            let mut bytes = framed(&[]).expect("a frame");
            bytes.extend(framed(&sent).expect("a frame"));
            let mut received = Received::default();
            let mut arrived = Vec::new();
            for piece in bytes.chunks(size) {
                received.add(piece);
                while let Some(message) = received.take(LARGEST).expect("not too long") {
                    arrived.push(message);
                }
            }
            assert_eq!(arrived, [Vec::new(), sent.clone()]);
            let task = Task::from_bytes(&arrived[1]).expect("a task");
            assert_eq!(task.directory.as_deref(), Some(Path::new("/here")));
            assert_eq!(
                task_to_bytes(task.number, task.directory.as_deref(), &task.texts),
                sent
            );
        }
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        let made = CompileOutput {
            image: vec![1, 2, 3],
            lowered: vec!["_Z1kv".to_owned()],
            log: "a warning".to_owned(),
        };
        let good = Answer::Done(Ok(made)).to_bytes(5);
        assert!(matches!(
            Answer::from_bytes(&good, 5, 1),
            Some(Answer::Done(Ok(_)))
        ));
        assert!(Answer::from_bytes(&good, 5, 2).is_none());
        assert!(Answer::from_bytes(&good, 4, 1).is_none(), "another task's");
        for end in 0..good.len() {
            assert!(Answer::from_bytes(&good[..end], 5, 1).is_none(), "{end}");
            assert!(ready_from_bytes(&good[..end]).is_none(), "{end}");
            assert!(Task::from_bytes(&good[..end]).is_none(), "{end}");
        }
        let mut more = good.clone();
        more.push(0);
        assert!(Answer::from_bytes(&more, 5, 1).is_none());
        let mut received = Received::default();
        received.add(&[255; 9]);
        assert!(received.take(LARGEST).is_err());
    }
}
