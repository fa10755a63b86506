//! Hears that a cicc has written its stub, some time before it ends, so that the host compile can start.
//!
//! The watch library in that cicc writes into a pipe of the scratch folder (`preload/announce.rs`). One byte says nothing
//! about the content: the stub is copied when it is announced, and the copy is compared with the stub at cicc's end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use warpcc_plan::{FileId, Part, Step, TaskGraph, Tool};

use crate::artifact::Artifacts;
use crate::options::RunOptions;

/// The option of cicc that names the last file of its front end.
const LAST: &str = "--gen_c_file_name";

/// Ends the wait for announcements.
const NO_MORE: u8 = b'.';

/// Where a step announces a file.
pub struct Announcement {
    /// The file.
    pub file: FileId,
    writer: usize,
    variable: (OsString, OsString),
    pipe: File,
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
        })
    }

    /// The variable for the step with this number, if it is the one that writes the file.
    pub fn variable(&self, step: usize) -> Option<&(OsString, OsString)> {
        (step == self.writer).then_some(&self.variable)
    }

    /// Calls `each` for every announcement, until [`Announcement::until_dropped`]'s result is dropped.
    pub fn hear(&self, each: impl Fn()) {
        let mut byte = [0];
        while (&self.pipe).read_exact(&mut byte).is_ok() && byte != [NO_MORE] {
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
        // The pipe has room: each run of the step writes one byte.
        _ = (&self.0.pipe).write_all(&[NO_MORE]);
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
