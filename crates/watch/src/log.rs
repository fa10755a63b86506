//! Splits a log into records.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Why bytes are not a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Nothing was logged: the library was not loaded (a static program, another C library).
    #[error("the log is empty: the process could not be watched")]
    Empty,
    /// It does not begin with the start of a process.
    #[error("the file does not start like a log")]
    NotALog,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'l> {
    /// The process in whose memory the record was made.
    pub(crate) owner: u32,
    pub(crate) event: Event<'l>,
}

/// The event of a record; see the table in `preload/preload.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'l> {
    Started {
        /// Device and inode of the executable.
        file: (u64, u64),
        executable: &'l Path,
        cwd: &'l Path,
    },
    Forked {
        cwd: &'l Path,
    },
    Moved {
        cwd: &'l Path,
    },
    File(Access, Identity, &'l Path),
    Path(PathEvent, &'l Path),
    Held(&'l Path),
    Leads(Way, &'l Path, &'l Path),
    Variable(&'l OsStr),
    HasEnviron,
    LibraryHasEnviron(&'l Path),
    NamesFolder,
    AskedDirectory,
    MayExecute(&'l Path),
    MayUse([u8; 4], &'l Path),
    Refused([u8; 4], &'l Path),
    AskedLimit(u8),
    AskedTime,
    ClosedUnread(&'l Path),
    ReadInput,
    FoundNoRoom,
    UnknownIfStranger(&'l [u8]),
    Becomes {
        pid: u32,
        program: &'l Path,
    },
    Spawned {
        pid: u32,
        program: &'l Path,
    },
    StartedByLibrary {
        program: &'l Path,
    },
    StaysItself {
        pid: u32,
    },
    Ends {
        count: u32,
    },
    Unknown(&'l [u8]),
}

/// The result of `fstat` when a program opened a file, or of `stat` when it looked at it; all zero if the call failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of the last change of anything, nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    /// The device number of a special file, otherwise 0.
    pub special: u64,
}

/// How a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Library,
    Read,
    Written,
    /// The file was only looked at, not opened.
    Looked,
}

/// What was found out about a path, or done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathEvent {
    Listed,
    Found,
    Missing,
    Removed,
    Nothing,
    Pointed,
}

/// How a path led to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The text of a link.
    Link,
    /// The path with all links resolved.
    Resolved,
    /// To the text of a file of the kernel's.
    Text,
}

/// Takes one record off the front; `None` if there is no complete one.
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
            let (device, rest) = payload.split_first_chunk::<8>()?;
            let (inode, rest) = rest.split_first_chunk::<8>()?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            Event::Started {
                file: (u64::from_le_bytes(*device), u64::from_le_bytes(*inode)),
                executable: path(&rest[..end])?,
                cwd: path(&rest[end + 1..])?,
            }
        }
        b'F' => Event::Forked {
            cwd: path(payload)?,
        },
        b'C' => Event::Moved {
            cwd: path(payload)?,
        },
        b'L' => file(Access::Library, payload)?,
        b'R' => file(Access::Read, payload)?,
        b'W' => file(Access::Written, payload)?,
        b'I' => file(Access::Looked, payload)?,
        b'h' => Event::Held(path(payload)?),
        b'D' => Event::Path(PathEvent::Listed, path(payload)?),
        b'S' => Event::Path(PathEvent::Found, path(payload)?),
        b'M' => Event::Path(PathEvent::Missing, path(payload)?),
        b'K' => Event::Path(PathEvent::Removed, path(payload)?),
        b'O' => Event::Path(PathEvent::Nothing, path(payload)?),
        b'p' => Event::Path(PathEvent::Pointed, path(payload)?),
        b'Y' => leads(Way::Link, payload)?,
        b'Z' => leads(Way::Resolved, payload)?,
        b'k' => leads(Way::Text, payload)?,
        b'V' => Event::Variable(OsStr::from_bytes(payload)),
        b'J' => Event::HasEnviron,
        b'j' => Event::LibraryHasEnviron(path(payload)?),
        b'd' => Event::NamesFolder,
        b'H' => Event::AskedDirectory,
        b'x' => Event::MayExecute(path(payload)?),
        b'a' | b'y' => {
            let (errors, name) = payload.split_first_chunk::<4>()?;
            match kind {
                b'a' => Event::MayUse(*errors, path(name)?),
                _ => Event::Refused(*errors, path(name)?),
            }
        }
        b'l' => Event::AskedLimit(*payload.first()?),
        b't' => Event::AskedTime,
        b'u' => Event::ClosedUnread(path(payload)?),
        b'i' => Event::ReadInput,
        b'r' => Event::FoundNoRoom,
        b'q' => Event::UnknownIfStranger(payload),
        b'A' => Event::StartedByLibrary {
            program: path(payload)?,
        },
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

fn file(access: Access, payload: &[u8]) -> Option<Event<'_>> {
    let (identity, name) = payload.split_first_chunk::<52>()?;
    let long = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&identity[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let mut mode = [0; 4];
    mode.copy_from_slice(&identity[40..44]);
    let identity = Identity {
        device: long(0),
        inode: long(8),
        size: long(16),
        mtime_ns: long(24).cast_signed(),
        ctime_ns: long(32).cast_signed(),
        mode: u32::from_le_bytes(mode),
        special: long(44),
    };
    Some(Event::File(access, identity, path(name)?))
}

fn leads(way: Way, payload: &[u8]) -> Option<Event<'_>> {
    let (length, rest) = payload.split_first_chunk::<2>()?;
    let (from, to) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    Some(Event::Leads(way, path(from)?, path(to)?))
}

fn number(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = payload.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// A path from the bytes of a C string; `None` if there is a NUL inside.
fn path(bytes: &[u8]) -> Option<&Path> {
    (!bytes.contains(&0)).then(|| Path::new(OsStr::from_bytes(bytes)))
}
