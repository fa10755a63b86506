//! Records the requests of a program, as a manifest that `warpcc rtc warm` compiles in advance (`WARPCC_RTC_RECORD`).
//!
//! The file is TOML and only grows: it contains each text once, then the requests that use it. Any number of processes may
//! add to it, one at a time under a lock of the file; entries that it has are not written again. A new file with the
//! additions replaces the old one as a whole, so that neither a full disk nor a killed process leaves half an entry, which
//! would make the file unreadable.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::environment::Environment;
use crate::request::{CompileRequest, PrecompiledHeaders, Text};
use crate::target::RealArch;

const OPENING: &str = "\
# What a program asked warpcc-rtc for, recorded by WARPCC_RTC_RECORD: `warpcc rtc warm` on this file compiles it ahead.
# For other GPUs than the recording's: warpcc rtc warm FILE --arch sm_80 --arch sm_90
";

/// How long a program waits for the lock; writing takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file to record in.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    /// The ids of entries that are in the file.
    known: Mutex<HashSet<String>>,
}

impl Recorder {
    /// The recorder for the file that `environment` names.
    pub(crate) fn from_environment(environment: &Environment) -> Option<Self> {
        environment
            .own_path(crate::environment::RECORD)
            .map(Self::at)
    }

    /// A recorder for the file `path`.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    /// Records a program that was compiled or found.
    ///
    /// # Errors
    /// The program cannot be recorded; the error is a text for the user.
    pub(crate) fn program(&self, request: &CompileRequest) -> Result<(), String> {
        if !request.bundles.is_empty() {
            let name = &request.name;
            return Err(self.not_recorded(&format!("{name} has embedded headers or fragments")));
        }
        let mut texts = vec![entry_of_text(&request.source)];
        let mut fields = String::new();
        let mut list = |word: &str, all: &[Text]| {
            if all.is_empty() {
                return;
            }
            let items = all.iter().map(|text| {
                let entry = entry_of_text(&text.text);
                let item = format!(
                    "{{ name = {}, text = \"{}\" }}",
                    quoted(&text.name),
                    entry.id
                );
                texts.push(entry);
                item
            });
            let items: Vec<String> = items.collect();
            _ = writeln!(fields, "{word} = [{}]", items.join(", "));
        };
        list("preamble", &request.preamble);
        list("headers", &request.headers);
        let mut words = |word: &str, all: Vec<&str>| {
            if !all.is_empty() {
                let all: Vec<_> = all.into_iter().map(quoted).collect();
                _ = writeln!(fields, "{word} = [{}]", all.join(", "));
            }
        };
        words(
            "names",
            request.name_expressions.iter().map(|n| &**n).collect(),
        );
        words("options", request.options.iter().map(|o| &**o).collect());
        let folders: Option<Vec<&str>> = request
            .include_folders
            .iter()
            .map(|folder| folder.to_str())
            .collect();
        let folders = folders.ok_or_else(|| {
            let name = &request.name;
            self.not_recorded(&format!("{name} has an include folder that is not UTF-8"))
        })?;
        words("include", folders);
        if request.precompiled_headers == PrecompiledHeaders::Automatic {
            fields.push_str("precompiled_headers = true\n");
        }
        let fields = format!(
            "name = {}\ntarget = \"{}\"\nsource = \"{}\"\n{fields}",
            quoted(&request.name),
            request.target,
            texts[0].id
        );
        texts.push(RecordTable::new("recorded", &fields));
        self.add(&texts)
    }

    /// Records a PTX text that was compiled or found.
    ///
    /// # Errors
    /// As [`Recorder::program`].
    pub(crate) fn ptx(&self, name: &str, ptx: &[u8], target: RealArch) -> Result<(), String> {
        let text = str::from_utf8(ptx)
            .map_err(|_| self.not_recorded(&format!("{name} is not UTF-8 text")))?;
        let text = entry_of_text(text);
        let fields = format!(
            "name = {}\ntarget = \"{target}\"\ntext = \"{}\"\n",
            quoted(name),
            text.id
        );
        self.add(&[text, RecordTable::new("recorded_ptx", &fields)])
    }

    fn not_recorded(&self, why: &str) -> String {
        format!(
            "not everything is recorded in {}: {why}",
            self.path.display()
        )
    }

    /// Records the entries that the file does not have.
    fn add(&self, entries: &[RecordTable]) -> Result<(), String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.iter().all(|entry| known.contains(&entry.id)) {
            return Ok(());
        }
        *known = add(&self.path, entries).map_err(|error| self.not_recorded(&error.to_string()))?;
        Ok(())
    }
}

/// Adds the entries to the file that it does not have. Returns the ids of all entries that it has then.
fn add(path: &Path, entries: &[RecordTable]) -> io::Result<HashSet<String>> {
    // Closing the file releases the lock.
    let (mut file, path) = locked(path)?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    let ids = content.split(|byte| *byte == b'\n').filter_map(|line| {
        let id = line.strip_prefix(b"id = \"")?.strip_suffix(b"\"")?;
        Some(String::from_utf8_lossy(id).into_owned())
    });
    let mut ids: HashSet<String> = ids.collect();
    let before = content.len();
    if content.is_empty() {
        content.extend(OPENING.bytes());
    }
    for entry in entries {
        if ids.insert(entry.id.clone()) {
            content.extend(entry.text.bytes());
        }
    }
    if content.len() > before {
        replace(&path, &file, &content)?;
    }
    Ok(ids)
}

/// Opens and locks the file, and returns its path with links resolved, so that a link stays a link. Creates the file if it
/// is missing.
fn locked(path: &Path) -> io::Result<(File, PathBuf)> {
    let began = Instant::now();
    loop {
        let mut options = File::options();
        let file = options.read(true).append(true).create(true).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if !lock_soon(&file, began)? {
            return Err(io::Error::new(
                ErrorKind::TimedOut,
                "another process keeps it locked",
            ));
        }
        // The process that held the lock may have replaced the file.
        let there = fs::canonicalize(path).and_then(|path| Ok((fs::metadata(&path)?, path)));
        let ours = file.metadata()?;
        match there {
            Ok((found, path)) if (found.dev(), found.ino()) == (ours.dev(), ours.ino()) => {
                return Ok((file, path));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

/// Waits for the lock for at most [`PATIENCE`], because a holder that was stopped must not stop others. Returns whether it
/// has the lock.
pub(crate) fn lock_soon(file: &File, began: Instant) -> io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Puts a file with `content` in the place of `file`, which is at `path` and locked by us.
fn replace(path: &Path, file: &File, content: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    // Only one process has the lock, so a file of this name was left by a killed process.
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    drop(fs::remove_file(&temporary));
    // The file must be new, so that nothing is written through a link.
    let written = File::create_new(&temporary).and_then(|mut new| {
        new.set_permissions(file.metadata()?.permissions())?;
        new.write_all(content)
    });
    let written = written.and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        drop(fs::remove_file(&temporary));
    }
    written
}

/// A table in the file.
struct RecordTable {
    /// A hash of its content.
    id: String,
    text: String,
}

impl RecordTable {
    fn new(table: &str, fields: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(table.as_bytes()).update(b"\n");
        let hash = hasher.update(fields.as_bytes()).finalize().to_hex();
        let id = hash[..32].to_owned();
        let text = format!("\n[[{table}]]\nid = \"{id}\"\n{fields}");
        Self { id, text }
    }
}

fn entry_of_text(text: &str) -> RecordTable {
    RecordTable::new("text", &format!("text = {}\n", long(text)))
}

/// A text on several lines, if TOML would return every byte of it: TOML may change other line ends.
fn long(text: &str) -> String {
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    match text.chars().all(plain) && !text.contains("'''") && !text.ends_with('\'') {
        true => format!("'''\n{text}'''"),
        false => quoted(text),
    }
}

/// A text in one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => _ = write!(quoted, "\\U{:08X}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn entries_are_whole_with_many_writers_and_readers() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link.toml");
        let path = folder.path().join("recorded.toml");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        // This is the file of a killed process.
        fs::write(folder.path().join("recorded.toml.new"), "[[tex").expect("written");
        let entry = |number: usize| entry_of_text(&format!("{number}\n").repeat(3000));
        let recorded = |writer: usize| {
            // Each writer is like a process of its own.
            let recorder = Recorder::at(if writer == 0 { &link } else { &path }.clone());
            for number in 0..20 {
                // All writers share every second entry.
                let own = (number % 2) * (writer + 1) * 100 + number;
                recorder.add(&[entry(own)]).expect("recorded");
            }
        };
        let seen = thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| scope.spawn(move || recorded(writer)))
                .collect();
            let mut seen = Vec::new();
            while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
                seen.push(fs::read(&path).unwrap_or_default());
            }
            seen
        });
        let all = fs::read(&path).expect("recorded");
        for part in seen {
            let rest = all.strip_prefix(&*part).expect("it only grows");
            let whole = part.is_empty() || rest.is_empty() || rest.starts_with(b"\n[[text]]\n");
            assert!(whole, "it ends within an entry: {} bytes", part.len());
        }
        let count = all.windows(10).filter(|at| at == b"\n[[text]]\n").count();
        assert_eq!(count, 10 + 4 * 10, "each once");
        assert!(link.is_symlink(), "the link was replaced");
        let left = fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(left, 2, "something was left next to it");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recorded.toml");
        let recorder = Recorder::at(path.clone());
        recorder.add(&[entry_of_text("one")]).expect("recorded");
        let before = fs::read(&path).expect("recorded");
        // A folder has the name of the new file.
        let beside = folder.path().join("recorded.toml.new");
        fs::create_dir(&beside).expect("a folder");
        let error = recorder.add(&[entry_of_text("two")]).expect_err("recorded");
        assert!(error.contains("not everything is recorded in"), "{error}");
        assert_eq!(fs::read(&path).expect("recorded"), before);
        // It is tried again.
        fs::remove_dir(&beside).expect("removed");
        recorder.add(&[entry_of_text("two")]).expect("recorded");
        assert!(fs::read(&path).expect("recorded").starts_with(&before));
        let device = Recorder::at(PathBuf::from("/dev/null"));
        let error = device.add(&[entry_of_text("one")]).expect_err("recorded");
        assert!(error.contains("not a regular file"), "{error}");
    }
}
