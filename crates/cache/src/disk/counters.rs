//! Sums that many processes add to: one appended line per addition, folded into one line when the file grows.
//!
//! ```text
//! file = line*
//! line = '+' name ' ' number (' ' name ' ' number)* '\n'
//! ```
//!
//! A line with any other form (a full disk cut it short) is skipped. Appending takes the file's lock as shared. Folding
//! takes it as exclusive, writes a new file and renames it over the old one. An appender that then gets the lock of the
//! old file sees that the file has no name any more and starts over, so nothing is lost. No process waits long for the
//! lock, because a stopped process must not stop the others. The counts need not be exact: if the wait fails, the
//! process appends without the lock, and its addition is lost if the holder is folding. Its next wait is shorter.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::access::StoreAccess;
use super::error::StoreError;
use super::file::{TempFile, with_folder};

/// How long an addition waits while no other arrives. Folding takes less than a millisecond, and more on a busy disk.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long an addition waits after a wait that failed.
const LITTLE_PATIENCE: Duration = Duration::from_millis(2);
/// How long a reset of all counters by a user waits.
const LONG_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct CounterFile {
    path: PathBuf,
    /// The number of bytes beyond which the file is folded.
    fold_at: u64,
    access: StoreAccess,
    /// How long an addition waits.
    patience: Duration,
    /// Another process held the lock for longer than we wait.
    gave_up: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Shared,
    Alone,
}

impl CounterFile {
    pub(super) fn new(path: PathBuf, fold_at: u64, access: StoreAccess) -> CounterFile {
        CounterFile {
            path,
            fold_at,
            access,
            patience: PATIENCE,
            gave_up: AtomicBool::new(false),
        }
    }

    /// Adds the counts, or gives up if that cannot be done.
    pub(super) fn add(&self, counts: &[(&str, i64)]) {
        if counts.is_empty() {
            return;
        }
        let patience = match self.gave_up.load(Ordering::Relaxed) {
            true => LITTLE_PATIENCE,
            false => self.patience,
        };
        let mut file = match self.lock(Lock::Shared, patience) {
            Ok(file) => {
                self.gave_up.store(false, Ordering::Relaxed);
                file
            }
            Err(StoreError::Busy { .. }) => {
                self.gave_up.store(true, Ordering::Relaxed);
                self.renew_if_exposed();
                let Ok(file) = self.open() else { return };
                file
            }
            Err(_) => return,
        };
        let written = file.write(line(counts.iter().copied()).as_bytes());
        let long = written.is_ok()
            && file
                .metadata()
                .is_ok_and(|found| found.len() > self.fold_at);
        drop(file);
        if long {
            self.fold();
        }
    }

    /// The sums; none if they cannot be read.
    pub(super) fn sums(&self) -> BTreeMap<String, i64> {
        self.read_sums().unwrap_or_default()
    }

    /// The sums; none if nothing was ever counted.
    pub(super) fn read_sums(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        match std::fs::read(&self.path) {
            Ok(bytes) => Ok(sums_of(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(source) => Err(StoreError::io("read", &self.path, source)),
        }
    }

    /// Replaces all sums by these.
    pub(super) fn replace(&self, counts: &[(&str, i64)]) -> Result<(), StoreError> {
        let _locked = self.lock(Lock::Alone, LONG_PATIENCE)?;
        self.write(counts.iter().copied())
    }

    /// Folds the file. If that fails the file stays longer, and the next addition tries again.
    fn fold(&self) {
        let Ok(file) = self.open() else { return };
        // If another process folds, it does this work too.
        if file.try_lock().is_err() || !is_linked(&file) {
            return;
        }
        let sums = self.sums();
        drop(self.write(sums.iter().map(|(name, sum)| (name.as_str(), *sum))));
    }

    /// A private store's file from before the store was closed may still be open in another user's process, which could hold
    /// its lock for ever. So a new file takes its place; an addition at this moment is lost.
    fn renew_if_exposed(&self) {
        let exposed = std::fs::metadata(&self.path).is_ok_and(|found| found.mode() & 0o077 != 0);
        if self.access == StoreAccess::Private && exposed {
            let sums = self.sums();
            drop(self.write(sums.iter().map(|(name, sum)| (name.as_str(), *sum))));
        }
    }

    fn write<'a>(&self, counts: impl Iterator<Item = (&'a str, i64)>) -> Result<(), StoreError> {
        let failed = |source| StoreError::io("write", &self.path, source);
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut temporary = TempFile::create(folder, self.access.file_mode()).map_err(failed)?;
        temporary
            .write_all(line(counts).as_bytes())
            .map_err(failed)?;
        temporary.move_to(&self.path).map_err(failed)
    }

    fn open(&self) -> Result<File, StoreError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        options.mode(self.access.file_mode());
        with_folder(self.path.parent(), self.access, || options.open(&self.path))
            .map_err(|source| StoreError::io("open", &self.path, source))
    }

    /// Opens and locks the file, and makes sure that it is the one in place.
    fn lock(&self, lock: Lock, patience: Duration) -> Result<File, StoreError> {
        let start = Instant::now();
        let mut seen = (0, 0);
        let mut since = start;
        loop {
            let file = self.open()?;
            let now = file
                .metadata()
                .map_or((0, 0), |found| (found.ino(), found.len()));
            if now != seen && start.elapsed() < LONG_PATIENCE {
                (seen, since) = (now, Instant::now());
            }
            let locked = match lock {
                Lock::Shared => file.try_lock_shared(),
                Lock::Alone => file.try_lock(),
            };
            match locked {
                Ok(()) if is_linked(&file) => return Ok(file),
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => {
                    return Err(StoreError::io("lock", &self.path, source));
                }
            }
            if since.elapsed() > patience {
                return Err(StoreError::Busy {
                    path: self.path.clone(),
                });
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

fn is_linked(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.nlink() > 0)
}

fn line<'a>(counts: impl Iterator<Item = (&'a str, i64)>) -> String {
    let mut line = String::new();
    for (name, n) in counts {
        line.push(if line.is_empty() { '+' } else { ' ' });
        push_name(&mut line, name);
        line.push_str(&format!(" {n}"));
    }
    if !line.is_empty() {
        line.push('\n');
    }
    line
}

/// Appends a name. Characters that the grammar uses are escaped as in a URL.
fn push_name(line: &mut String, name: &str) {
    for c in name.chars() {
        if matches!(c, '+' | '%') || c.is_whitespace() || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                line.push_str(&format!("%{byte:02x}"));
            }
        } else {
            line.push(c);
        }
    }
}

fn name_of(written: &str) -> String {
    percent_encoding::percent_decode_str(written)
        .decode_utf8_lossy()
        .into_owned()
}

fn sums_of(bytes: &[u8]) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    // Text behind the last line end is an incomplete line.
    let whole = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    for line in bytes[..whole].split(|b| *b == b'\n') {
        for (name, n) in counts_of(line).unwrap_or_default() {
            let sum: &mut i64 = sums.entry(name_of(name)).or_default();
            *sum = sum.saturating_add(n);
        }
    }
    sums
}

fn counts_of(line: &[u8]) -> Option<Vec<(&str, i64)>> {
    let line = std::str::from_utf8(line).ok()?.strip_prefix('+')?;
    if line.contains('+') {
        return None;
    }
    let mut counts = Vec::new();
    let mut words = line.split(' ');
    while let Some(name) = words.next() {
        let n = words.next()?.parse().ok()?;
        if name.is_empty() {
            return None;
        }
        counts.push((name, n));
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_lines_are_passed_over() {
        let sums = sums_of(b"+a 1 b 2\n+a 1 b+a 5\n\xff\n+a\n+a x\n+a  1\n+a 10\n+a 100");
        assert_eq!(sums, BTreeMap::from([("a".into(), 11), ("b".into(), 2)]));
    }

    #[test]
    fn a_lock_of_somebody_elses_costs_little_and_loses_nothing() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("t");
        let counters = CounterFile::new(path.clone(), 1000, StoreAccess::Private);
        counters.add(&[("hits", 1)]);
        // As another user with read access may do.
        let theirs = File::open(&path).expect("open");
        theirs.lock().expect("lock");
        let start = Instant::now();
        for _ in 0..50 {
            counters.add(&[("hits", 1)]);
        }
        assert!(start.elapsed() < 20 * PATIENCE, "{:?}", start.elapsed());
        assert_eq!(counters.sums(), BTreeMap::from([("hits".into(), 51)]));
        let ino = || std::fs::metadata(&path).expect("look").ino();
        assert_eq!(ino(), theirs.metadata().expect("look").ino());
        // The file is from before the store was closed to others: a new file replaces it, so their lock has no effect.
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(&path, readable).expect("chmod");
        let counters = CounterFile::new(path.clone(), 1000, StoreAccess::Private);
        counters.add(&[("hits", 1)]);
        assert_ne!(ino(), theirs.metadata().expect("look").ino());
        assert_eq!(counters.sums(), BTreeMap::from([("hits".into(), 52)]));
    }

    #[test]
    fn additions_from_many_threads_survive_folding() {
        let folder = tempfile::tempdir().expect("temporary folder");
        // Folds every few lines.
        let mut counters = CounterFile::new(folder.path().join("new/t"), 100, StoreAccess::Private);
        // However busy the machine is.
        counters.patience = Duration::from_secs(60);
        let counters = &counters;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        counters.add(&[("hits", 1), ("odd name+", 2)]);
                    }
                });
            }
        });
        let expected = BTreeMap::from([("hits".into(), 2400), ("odd name+".into(), 4800)]);
        assert_eq!(counters.sums(), expected);
        counters.replace(&[]).expect("replace");
        assert_eq!(counters.sums(), BTreeMap::new());
    }
}
