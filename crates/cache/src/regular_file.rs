//! Reads regular files only, whatever lies under the name.
//!
//! A program may have opened anything: a pipe, a terminal, a device. To open or read one of those again could wait for ever, or
//! take what another process waits for. So every file whose name comes from a watched program is read through this module.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

/// Opens a regular file. Nothing else is opened, not even for a moment: somebody who waits to write into a pipe would take that
/// for the reader, and a device may do something.
///
/// # Errors
/// It cannot be opened, or it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let refused = || io::Error::other("not a regular file");
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    // Where a pipe has taken its place since, opening it without NONBLOCK would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    // On some file systems a signal interrupts an open.
    let open_with = |flags| retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
    let opened = match open_with(flags | OFlags::NONBLOCK) {
        // Another process has a lease on the file, and gives it back when asked.
        Err(Errno::WOULDBLOCK) => open_with(flags),
        opened => opened,
    };
    let file = File::from(opened?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused()),
    }
}

/// What is read at most of a file that says it is empty, as those of `/proc` do.
const MOST_WITHOUT_SIZE: u64 = 16 << 20;

/// The content of a regular file when it is opened. A file to which another process adds without end has an end here.
///
/// # Errors
/// It cannot be read, or it is no regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let size = size_of(&file)?;
    read_until(file, size)
}

fn size_of(file: &File) -> io::Result<u64> {
    Ok(match file.metadata()?.len() {
        0 => MOST_WITHOUT_SIZE,
        size => size,
    })
}

fn read_until(file: File, size: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(size).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::inotify;

    /// A writer that waits gets a reader where anybody opens the pipe, and is killed when it writes after that.
    #[test]
    fn a_pipe_is_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let [pipe, file] = ["pipe", "file"].map(|name| folder.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        std::fs::write(&file, "text").expect("a file");
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("a watch");
        for path in [&pipe, &file] {
            let opened = inotify::WatchFlags::OPEN;
            inotify::add_watch(&watch, path, opened).expect("a watched file");
        }
        let mut space = [const { std::mem::MaybeUninit::uninit() }; 512];
        let mut events = inotify::Reader::new(watch, &mut space);
        assert!(read(&pipe).is_err());
        assert!(events.next().is_err(), "the pipe was opened");
        assert!(read(&file).is_ok());
        assert!(events.next().is_ok(), "opening is not noticed at all");
    }

    /// A file server that has a lease on the file gives it back when it gets the signal.
    #[test]
    fn a_file_on_which_another_process_has_a_lease_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "text").expect("a file");
        let holder = "import fcntl, os, signal, sys\n\
            file = os.open(sys.argv[1], os.O_WRONLY)\n\
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])\n\
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
            print('held', flush=True)\n\
            signal.sigwait([signal.SIGIO])\n\
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)\n";
        let mut holder = std::process::Command::new("python3")
            .args(["-c", holder])
            .arg(&file)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("python3");
        let mut line = [0; 5];
        let said = holder.stdout.as_mut().expect("a pipe");
        said.read_exact(&mut line).expect("a lease");
        assert_eq!(read(&file).expect("its content"), b"text");
        assert!(holder.wait().expect("an end").success());
    }

    /// As a log does to which another process adds all the time.
    #[test]
    fn a_file_that_grows_while_it_is_read_has_an_end() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "text").expect("a file");
        let opened = open(&path).expect("the file");
        let size = size_of(&opened).expect("its size");
        let mut log = File::options().append(true).open(&path).expect("the file");
        log.write_all(b"more").expect("room");
        assert_eq!(read_until(opened, size).expect("its content"), b"text");
        let own = read(Path::new("/proc/self/status")).expect("a file without a size");
        assert!(own.starts_with(b"Name:"));
    }

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
