//! The grammar of the log, one record at a time.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Why bytes are not a log at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Nothing was logged: the library was not loaded (a static program, another C library).
    #[error("the log is empty: the process could not be watched")]
    Empty,
    /// It does not begin with the start of a process.
    #[error("the file does not begin like a log")]
    NotALog,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'l> {
    /// The process whose memory it was made in.
    pub(crate) owner: u32,
    pub(crate) event: Event<'l>,
}

/// What a record says; see the table in `preload/preload.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'l> {
    Started { executable: &'l Path, cwd: &'l Path },
    Forked { cwd: &'l Path },
    Moved { cwd: &'l Path },
    Path(Kind, &'l Path),
    Becomes { pid: u32, program: &'l Path },
    Spawned { pid: u32, program: &'l Path },
    StaysItself { pid: u32 },
    Ends { count: u32 },
    Unknown(&'l [u8]),
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Library,
    Read,
    Written,
    Listed,
    Found,
    Missing,
}

/// Takes one record off the front; `None` if there is no whole one.
pub(crate) fn next<'l>(rest: &mut &'l [u8]) -> Option<Record<'l>> {
    let (header, after) = rest.split_first_chunk::<7>()?;
    let [kind, a, b, c, d, low, high] = *header;
    let (payload, after) = after.split_at_checked(u16::from_le_bytes([low, high]).into())?;
    let after = after.strip_prefix(b"\n")?;
    let event = event(kind, payload)?;
    *rest = after;
    Some(Record {
        owner: u32::from_le_bytes([a, b, c, d]),
        event,
    })
}

fn event(kind: u8, payload: &[u8]) -> Option<Event<'_>> {
    Some(match kind {
        b'X' => {
            let end = payload.iter().position(|byte| *byte == 0)?;
            Event::Started {
                executable: path(&payload[..end])?,
                cwd: path(&payload[end + 1..])?,
            }
        }
        b'F' => Event::Forked {
            cwd: path(payload)?,
        },
        b'C' => Event::Moved {
            cwd: path(payload)?,
        },
        b'L' => Event::Path(Kind::Library, path(payload)?),
        b'R' => Event::Path(Kind::Read, path(payload)?),
        b'W' => Event::Path(Kind::Written, path(payload)?),
        b'D' => Event::Path(Kind::Listed, path(payload)?),
        b'S' => Event::Path(Kind::Found, path(payload)?),
        b'M' => Event::Path(Kind::Missing, path(payload)?),
        b'P' => {
            let (pid, program) = number(payload)?;
            Event::Becomes {
                pid,
                program: path(program)?,
            }
        }
        b'N' => {
            let (pid, program) = number(payload)?;
            Event::Spawned {
                pid,
                program: path(program)?,
            }
        }
        b'Q' => Event::StaysItself {
            pid: number(payload)?.0,
        },
        b'E' => Event::Ends {
            count: number(payload)?.0,
        },
        b'U' => Event::Unknown(payload),
        _ => return None,
    })
}

fn number(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = payload.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// A path as C has them; with NUL inside it is not one.
fn path(bytes: &[u8]) -> Option<&Path> {
    (!bytes.contains(&0)).then(|| Path::new(OsStr::from_bytes(bytes)))
}
