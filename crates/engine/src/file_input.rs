//! Gives each tool the user's standard input from the same position, where it is a file, and otherwise a stand-in.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::OFlags;

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
            .then(|| open_marked(Path::new("/proc/self/fd/0")).ok())??;
        let at = rustix::fs::tell(io::stdin()).ok()?;
        file.seek(SeekFrom::Start(at)).ok()?;
        Some(Self { file, at })
    }

    /// The file as standard input of a tool.
    pub(crate) fn share(&self) -> Option<Stdio> {
        Some(self.file.try_clone().ok()?.into())
    }

    /// Where the user's input is now, as a text: which file it is, its state and the position in it.
    pub(crate) fn state(&self) -> io::Result<String> {
        let found = rustix::fs::fstat(&self.file)?;
        let numbers = [found.st_dev, found.st_ino, found.st_size.cast_unsigned()];
        Ok(format!(
            "{numbers:?} {} {} {}",
            found.st_mtime, found.st_mtime_nsec, self.at
        ))
    }

    /// Whether a tool has read from the file.
    pub(crate) fn is_read_on(&self) -> bool {
        (&self.file)
            .stream_position()
            .map_or(true, |now| now != self.at)
    }
}

/// Opens what a tool gets as standard input: the user's file, or a device in its place. The watch library knows it by this
/// mark, which means nothing for a file that is only read.
pub(crate) fn open_marked(path: &Path) -> io::Result<File> {
    let flags = OFlags::APPEND | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}
