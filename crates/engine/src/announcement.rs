//! Hears that a cicc has written its stub, some time before it ends, so that the host compile can start.
//!
//! The watch library in that cicc writes into a pipe of the scratch folder (`preload/announce.rs`). One byte says nothing
//! about the content: the stub is copied when it is announced, and the copy is compared with the stub at cicc's end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use warpcc_plan::{FileId, Part, Step, TaskGraph, Tool};

use crate::artifact::Artifacts;
use crate::options::RunOptions;

/// The option of cicc that names the last file of its front end.
const LAST: &str = "--gen_c_file_name";

/// Where a step announces a file.
pub struct Announcement {
    /// The file.
    pub file: FileId,
    writer: usize,
    variable: (OsString, OsString),
    pipe: File,
    /// Whether nobody waits for announcements any more.
    is_over: AtomicBool,
}

impl Announcement {
    /// Prepares for the announcement of the stub, if the plan assumes what it is. `None` also where nothing can be announced:
    /// the file then counts at the end of its step.
    pub fn expect(
        graph: &TaskGraph,
        artifacts: &Artifacts<'_>,
        options: &RunOptions<'_>,
    ) -> Option<Self> {
        options.watch?;
        let is_by_cicc = |file: FileId| {
            let writer = graph.file(file).writer?;
            let step = &graph.steps[writer];
            (step.tool == Tool::Cicc && !step.is_front_end()).then_some((file, writer))
        };
        let (file, writer) = (graph.assumed.iter()).find_map(|assumed| is_by_cicc(assumed.file))?;
        let last = path_after(LAST, &graph.steps[writer], artifacts)?;
        let name = options.scratch.join("announced");
        let variable = warpcc_watch::announce(&name, artifacts.path(file), &last)?;
        // One may be left of a run that was killed.
        _ = std::fs::remove_file(&name);
        rustix::fs::mkfifoat(rustix::fs::CWD, &name, Mode::RUSR | Mode::WUSR).ok()?;
        // As a writer too, it neither waits for one here nor reads an end when cicc closes the pipe.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let pipe = rustix::fs::open(&name, flags, Mode::empty()).ok()?;
        Some(Self {
            file,
            writer,
            variable,
            pipe: pipe.into(),
            is_over: AtomicBool::new(false),
        })
    }

    /// The variable for the step with this number, if it is the one that writes the file.
    pub fn variable(&self, step: usize) -> Option<&(OsString, OsString)> {
        (step == self.writer).then_some(&self.variable)
    }

    /// Calls `each` for every announcement, until [`Announcement::until_dropped`]'s result is dropped.
    pub fn hear(&self, each: impl Fn()) {
        while (&self.pipe).read_exact(&mut [0]).is_ok() && !self.is_over.load(Ordering::SeqCst) {
            each();
        }
    }

    /// As long as the result lives, announcements are heard.
    pub fn until_dropped(&self) -> Hearing<'_> {
        Hearing(self)
    }
}

/// Ends the wait for announcements when it is dropped.
pub struct Hearing<'a>(&'a Announcement);

impl Drop for Hearing<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        // A byte ends a read that waits for one. A wrapper of cicc may have filled the pipe: then no read waits, and a write would.
        _ = rustix::fs::fcntl_setfl(&self.0.pipe, OFlags::NONBLOCK);
        _ = (&self.0.pipe).write_all(b"!");
    }
}

/// The file after an option, by the name that the step uses.
fn path_after(option: &str, step: &Step, artifacts: &Artifacts<'_>) -> Option<PathBuf> {
    let at = (step.args.iter()).position(|arg| arg.as_text() == Some(option))?;
    match step.args.get(at + 1)?.0.as_slice() {
        [Part::File(id)] => Some(artifacts.path(*id).to_owned()),
        [Part::Text(text)] => Some(text.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// An announcement whose pipe has these bytes in it, or is full.
    fn announcement(bytes: Option<&[u8]>) -> Announcement {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &name, Mode::RUSR | Mode::WUSR).expect("a pipe");
        let open = |flags| rustix::fs::open(&name, OFlags::RDWR | flags, Mode::empty());
        let writer = File::from(open(OFlags::NONBLOCK).expect("the pipe"));
        match bytes {
            Some(bytes) => (&writer).write_all(bytes).expect("room"),
            None => while (&writer).write(&[b'.'; 4096]).is_ok() {},
        }
        Announcement {
            file: FileId(0),
            writer: 0,
            variable: (OsString::new(), OsString::new()),
            pipe: open(OFlags::CLOEXEC).expect("the pipe").into(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Every byte counts, whatever a wrapper of cicc writes.
    #[test]
    fn announcements_are_heard_until_they_are_dropped() {
        let announcement = announcement(Some(b"!.\0"));
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            let hearing = announcement.until_dropped();
            scope.spawn(|| announcement.hear(|| _ = send.send(())));
            for _ in 0..3 {
                let heard = receive.recv_timeout(Duration::from_secs(60));
                heard.expect("an announcement");
            }
            drop(hearing);
        });
        assert!(receive.try_recv().is_err());
    }

    #[test]
    fn a_full_pipe_does_not_stop_the_run() {
        for is_heard in [true, false] {
            let (send, receive) = mpsc::channel();
            std::thread::spawn(move || {
                let announcement = announcement(None);
                std::thread::scope(|scope| {
                    let hearing = announcement.until_dropped();
                    if is_heard {
                        scope.spawn(|| announcement.hear(|| {}));
                    }
                    drop(hearing);
                });
                send.send(())
            });
            let end = receive.recv_timeout(Duration::from_secs(60));
            end.expect("the end of the run");
        }
    }
}
