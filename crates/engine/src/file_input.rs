//! Gives each tool the user's standard input from the same position, where it is a file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::process::Stdio;

/// The user's standard input if it is a file, opened once more: it may be the source, and nvcc must find all of it even if a
/// tool reads it. A pipe or a terminal can have one reader only.
pub(crate) struct FileInput {
    file: File,
    at: u64,
}

impl FileInput {
    /// The standard input of this process; `None` if it is no file.
    pub(crate) fn open() -> Option<Self> {
        let found = rustix::fs::fstat(io::stdin()).ok()?;
        let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
        let mut file = (kind == rustix::fs::FileType::RegularFile)
            .then(|| File::open("/proc/self/fd/0").ok())??;
        let at = rustix::fs::tell(io::stdin()).ok()?;
        file.seek(SeekFrom::Start(at)).ok()?;
        Some(Self { file, at })
    }

    /// The file as standard input of a tool.
    pub(crate) fn share(&self) -> Option<Stdio> {
        Some(self.file.try_clone().ok()?.into())
    }

    /// Whether a tool has read from the file.
    pub(crate) fn is_read_on(&self) -> bool {
        (&self.file)
            .stream_position()
            .map_or(true, |now| now != self.at)
    }
}
