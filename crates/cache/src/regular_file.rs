//! Reads regular files only, whatever lies under the name.
//!
//! A program may have opened anything: a pipe, a terminal, a device. To open or read one of those again could wait for ever, or
//! take what another process waits for. So every file whose name comes from a watched program is read through this module.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file.
///
/// # Errors
/// It cannot be opened, or it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// The content of a regular file.
///
/// # Errors
/// It cannot be read, or it is no regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
            assert!(read(path).is_err(), "{}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "text").expect("a file");
        assert_eq!(read(&file).expect("its content"), b"text");
    }
}
