//! Writes to files through memory: a process that has a file of tmpfs mapped changes its content and none of its times.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::files_open;

/// A process that has a file mapped.
#[derive(Debug)]
struct Mapper {
    child: Child,
    inode: u64,
}

/// The mappers of one history.
#[derive(Debug, Default)]
pub struct Mappers(BTreeMap<PathBuf, Mapper>);

impl Mappers {
    /// Makes `program` write a line over the file's beginning.
    ///
    /// # Errors
    /// The file is not there, or is empty.
    pub fn write(&mut self, program: &Path, path: &Path, line: &str) -> io::Result<()> {
        let inode = path.metadata()?.ino();
        if self.0.get(path).is_some_and(|mapper| mapper.inode != inode) {
            self.0.remove(path).map_or(Ok(()), Mapper::end)?;
        }
        if !self.0.contains_key(path) {
            let mut command = Command::new(program);
            command
                .arg(path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let child = {
                let _quiet = files_open::no_file_open();
                command.spawn()?
            };
            self.0.insert(path.to_owned(), Mapper { child, inode });
        }
        let written = match self.0.get_mut(path) {
            Some(mapper) => mapper.write(line),
            None => Ok(()),
        };
        if written.is_err() {
            self.0.remove(path).map_or(Ok(()), Mapper::end)?;
        }
        written
    }

    /// Ends all mappers.
    pub fn clear(&mut self) {
        for (_, mapper) in std::mem::take(&mut self.0) {
            // It does not matter how the mapper ended.
            _ = mapper.end();
        }
    }
}

impl Mapper {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let (Some(to), Some(from)) = (self.child.stdin.as_mut(), self.child.stdout.as_mut()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        writeln!(to, "{line}")?;
        // The mapper answers when it is done. If it ends, the reading ends, too.
        from.read_exact(&mut [0])
    }

    fn end(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(drop)
    }
}
