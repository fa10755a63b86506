//! The builds that are remembered: a folder with one log per build. The oldest logs are removed.
//!
//! One log per build and not one file per call: a build of 2,000 calls would leave 2,000 files to
//! create, list and remove, and a log of that size is read in a few milliseconds. Appending is
//! `open(O_APPEND)`, one `write`, `close`, with no lock: a stopped process does not block others.
//! A process that creates a log also removes old ones, so that happens once per build.

use std::cmp::Reverse;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::build_id::{ALONE, BuildId};
use crate::log::{self, Damage};
use crate::record::{CallOutcome, InvocationRecord};

const ENDING: &str = "log";
/// The limits of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// This many builds, and the lone calls of this many sessions.
    pub builds: usize,
    /// The largest size of all logs together, in bytes. The newest log is always kept.
    pub bytes: u64,
    /// The largest size of one log, in bytes. A build with more continues in another file, which counts as a log of its
    /// own.
    pub log_bytes: u64,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            builds: 50,
            bytes: 128 << 20,
            log_bytes: 32 << 20,
        }
    }
}

/// Why a record could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file system refused.
    #[error("failed to {action} {path}: {source}", path = path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A record was written only in part: the disk is full.
    #[error("{path}: the record is truncated", path = path.display())]
    Torn {
        /// The log.
        path: PathBuf,
    },
    /// The record is larger than any sensible one.
    #[error("the record is too long")]
    TooLong,
}

/// The folder of logs.
#[derive(Debug, Clone)]
pub struct History {
    folder: PathBuf,
    limits: HistoryLimits,
    mode: u32,
}

/// One build that is remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// Its id.
    pub id: String,
    /// The command line of the tool that drove the build, where there was one.
    pub driver: Option<String>,
    /// When its first call started, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From the start of its first call to the end of its last.
    pub wall: Duration,
    /// The folder that all its calls were made in.
    pub folder: PathBuf,
    /// The number of its known calls.
    pub calls: usize,
    /// How many of them were answered from the cache as a whole.
    pub direct_hits: usize,
}

/// The records of one build.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BuildRecords {
    /// In the order they ended.
    pub records: Vec<InvocationRecord>,
    /// The damaged part of the logs that the records are in.
    pub damage: Damage,
}

impl Remembered {
    /// A build of this call.
    fn from_call(call: InvocationRecord) -> Self {
        Self {
            driver: call.driver,
            started_unix_ns: call.started_unix_ns,
            wall: call.wall,
            folder: PathBuf::from(call.directory),
            calls: 1,
            direct_hits: usize::from(call.outcome == CallOutcome::DirectHit),
            id: call.build,
        }
    }

    /// Adds a call.
    fn add(&mut self, call: &InvocationRecord) {
        let after = |at: u64, wall: Duration| Duration::from_nanos(at).saturating_add(wall);
        let end = after(self.started_unix_ns, self.wall);
        let end = end.max(after(call.started_unix_ns, call.wall));
        self.started_unix_ns = self.started_unix_ns.min(call.started_unix_ns);
        self.wall = end.saturating_sub(Duration::from_nanos(self.started_unix_ns));
        let shared = self
            .folder
            .components()
            .zip(Path::new(&call.directory).components());
        let shared = shared.take_while(|(one, other)| one == other);
        self.folder = shared.map(|(one, _)| one).collect();
        self.calls += 1;
        self.direct_hits += usize::from(call.outcome == CallOutcome::DirectHit);
    }
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
}

impl History {
    /// The history in a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>, limits: HistoryLimits) -> Self {
        Self {
            folder: folder.into(),
            limits,
            mode: 0o666,
        }
    }

    /// New logs are created with `mode`, and their folder with a mode like it, before the umask.
    pub fn with_mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Remembers a call.
    ///
    /// # Errors The folder cannot be written, or the disk is full. The caller prints a warning; the build never fails.
    pub fn append(&self, build: &BuildId, mut call: InvocationRecord) -> Result<(), HistoryError> {
        call.shorten();
        let bytes = log::encode(&call).ok_or(HistoryError::TooLong)?;
        let path = self.folder.join(format!("{}.{ENDING}", build.log));
        let (mut file, new) = self.open(&path)?;
        let failed = |source| HistoryError::io("append to", &path, source);
        // A single call: after a short write, the rest would be placed after other processes' records.
        let written = file.write(&bytes).map_err(failed)?;
        if written < bytes.len() {
            return Err(HistoryError::Torn { path });
        }
        if new {
            self.remove_old(&path);
        } else if file.metadata().map_err(failed)?.len() > self.limits.log_bytes {
            self.continue_elsewhere(&path);
        }
        Ok(())
    }

    /// The log, and whether it is new.
    fn open(&self, path: &Path) -> Result<(File, bool), HistoryError> {
        let open = |new: bool| {
            let mut options = OpenOptions::new();
            options.append(true).create_new(new);
            options.mode(self.mode).open(path)
        };
        // It nearly always exists. If two processes create it, one succeeds and the other appends.
        for _ in 0..8 {
            match open(false) {
                Ok(file) => return Ok((file, false)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(HistoryError::io("open", path, error)),
            }
            match open(true) {
                Ok(file) => return Ok((file, true)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    // A user who may read a log may also search the folder.
                    let mode = self.mode | (self.mode & 0o444) >> 2;
                    let mut folder = fs::DirBuilder::new();
                    folder.recursive(true).mode(mode);
                    folder
                        .create(&self.folder)
                        .map_err(|source| HistoryError::io("create", &self.folder, source))?;
                }
                Err(error) => return Err(HistoryError::io("create", path, error)),
            }
        }
        let gone = io::Error::from(ErrorKind::NotFound);
        Err(HistoryError::io("open", path, gone))
    }

    /// The next append starts a new file. If two processes do this at once, there is one more short file.
    fn continue_elsewhere(&self, path: &Path) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let stamp = since.map_or(0, |since| since.as_nanos());
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let piece = format!("{stem}~{stamp:x}.{ENDING}");
        // If this fails, the log only becomes longer than it should be.
        drop(fs::rename(path, self.folder.join(piece)));
        self.remove_old(path);
    }

    /// Removes the oldest logs beyond the limits, but never `own`.
    fn remove_old(&self, own: &Path) {
        let Ok(logs) = self.logs() else { return };
        let (mut builds, mut sessions, mut bytes) = (0, 0, 0_u64);
        for log in logs {
            let alone = file_name(&log.path).starts_with(ALONE);
            let count = if alone { &mut sessions } else { &mut builds };
            *count += 1;
            bytes = bytes.saturating_add(log.bytes);
            let many = *count > self.limits.builds || bytes > self.limits.bytes;
            if many && log.path != own {
                // Another process may have removed it. A log that cannot be removed stays.
                drop(fs::remove_file(&log.path));
            }
        }
    }

    /// Every log, the one written last first.
    fn logs(&self) -> Result<Vec<LogFile>, HistoryError> {
        let failed = |source| HistoryError::io("list", &self.folder, source);
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut logs = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_none_or(|ending| ending != ENDING) {
                continue;
            }
            // A log that was removed meanwhile counts as if it had never existed.
            if let Ok(found) = fs::symlink_metadata(&path)
                && found.is_file()
            {
                logs.push(LogFile {
                    modified: found.modified().unwrap_or(UNIX_EPOCH),
                    bytes: found.len(),
                    path,
                });
            }
        }
        logs.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
        Ok(logs)
    }

    /// Every build that is remembered, the newest first. Reads all logs.
    ///
    /// # Errors
    /// The folder is there and cannot be listed. A log that cannot be read is passed over.
    pub fn builds(&self) -> Result<Vec<Remembered>, HistoryError> {
        let mut builds: Vec<Remembered> = Vec::new();
        let mut place = std::collections::HashMap::new();
        self.visit(|call| {
            let at = *place.entry(call.build.clone()).or_insert(builds.len());
            match builds.get_mut(at) {
                Some(known) => known.add(&call),
                None => builds.push(Remembered::from_call(call)),
            }
        })?;
        builds.sort_by_key(|build| Reverse(build.started_unix_ns));
        Ok(builds)
    }

    /// Every call that is remembered, in no particular order. Reads each log once, and holds one at a time.
    ///
    /// # Errors
    /// The folder is there and cannot be listed. A log that cannot be read is passed over.
    pub fn visit(&self, mut visit: impl FnMut(InvocationRecord)) -> Result<(), HistoryError> {
        for log in self.logs()? {
            if let Ok(reading) = self.read(&log.path) {
                reading.records.into_iter().for_each(&mut visit);
            }
        }
        Ok(())
    }

    /// The records of the build that was active last.
    ///
    /// # Errors
    /// The folder cannot be listed, or none of its logs can be read.
    pub fn last(&self) -> Result<Option<BuildRecords>, HistoryError> {
        let mut failure = None;
        for log in self.logs()? {
            match self.read(&log.path) {
                Ok(reading) => {
                    if let Some(id) = reading.records.last().map(|call| call.build.clone()) {
                        return self.build(&id);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// The records of one build; `None` where it is not remembered.
    ///
    /// # Errors
    /// The folder cannot be listed. A log that cannot be read is passed over.
    pub fn build(&self, id: &str) -> Result<Option<BuildRecords>, HistoryError> {
        let mut build = BuildRecords::default();
        let mut logs = self.logs()?;
        logs.reverse();
        // A log is named after its build, but for lone calls.
        let named = crate::build_id::log_name(id);
        for log in logs {
            let name = file_name(&log.path);
            if !(name.starts_with(&named) || name.starts_with(ALONE)) {
                continue;
            }
            let Ok(reading) = self.read(&log.path) else {
                continue;
            };
            let before = build.records.len();
            let calls = reading.records.into_iter();
            build.records.extend(calls.filter(|call| call.build == id));
            if build.records.len() > before {
                build.damage.bytes += reading.damage.bytes;
                build.damage.places += reading.damage.places;
                build.damage.unfinished |= reading.damage.unfinished;
            }
        }
        Ok((!build.records.is_empty()).then_some(build))
    }

    fn read(&self, path: &Path) -> Result<log::Reading, HistoryError> {
        let failed = |source| HistoryError::io("read", path, source);
        let file = File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        // Far more than warpcc writes: a file that another user put there must not fill the memory.
        let most = self.limits.log_bytes.saturating_mul(4).max(64 << 20);
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
        Ok(log::decode(&bytes))
    }
}

impl HistoryError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
