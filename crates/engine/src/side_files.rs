//! Side files: files that steps write in addition to their outputs, such as a compiler's trace or a log. After a
//! failure, this removes the side files of the steps that nvcc would not have started.
//!
//! A file is removed only if all of this is true: the file system's clock says that it was created after the call began; a
//! program of the step opened it for writing when it was empty; it is as the step left it; and no step that nvcc would have
//! started wrote to it too. A file that existed before the call stays, even if a step has changed it.
//!
//! If a failing step removed an output, the user's old file of that name is removed too, as with nvcc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use rustix::time::{ClockId, clock_gettime};
use warpcc_watch::{Identity, Observed};

use crate::scene::Scene;

/// A file as a step left it.
#[derive(Debug)]
struct LeftFile {
    path: PathBuf,
    looks: Looks,
}

/// The properties of a file that show whether it is still the same file, and unmodified.
#[derive(Debug, PartialEq, Eq)]
struct Looks {
    device: (u32, u32),
    inode: u64,
    size: u64,
    modified: (i64, u32),
}

/// Seconds and nanoseconds since 1970.
type Time = (i64, i64);

/// The side files of each step.
#[derive(Debug)]
pub struct SideFiles {
    /// The file systems' clock at the start: it ticks every few milliseconds. The call began earlier.
    began: Time,
    made: Mutex<BTreeMap<usize, Vec<LeftFile>>>,
    /// All files that each step wrote or was about to write, new or not.
    written: Mutex<BTreeMap<usize, BTreeSet<PathBuf>>>,
    /// Those among them that the step read as well.
    rewritten: Mutex<BTreeMap<usize, BTreeSet<PathBuf>>>,
    /// Files of the plan that a step removed.
    removed: Mutex<BTreeMap<usize, BTreeSet<PathBuf>>>,
    /// Files of the plan that a step looked for in vain.
    missed: Mutex<BTreeMap<usize, BTreeSet<PathBuf>>>,
}

impl SideFiles {
    /// No files, as at the beginning of a run.
    pub fn new() -> Self {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self {
            began: (now.tv_sec, now.tv_nsec),
            made: Mutex::default(),
            written: Mutex::default(),
            rewritten: Mutex::default(),
            removed: Mutex::default(),
            missed: Mutex::default(),
        }
    }

    /// Whether a step removed a file of the plan, and the file is gone: an assembler that fails removes its output, and with
    /// nvcc that would be the user's old file of that name.
    pub fn has_removed(&self, step: usize, path: &Path) -> bool {
        let removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = removed.get(&step).is_some_and(|paths| paths.contains(path));
        removed && fs::symlink_metadata(path).is_err()
    }

    /// Whether a step looked for a file of the plan and did not find it. A clang that fails looks for its old output,
    /// and removes it if it is there.
    pub fn has_missed(&self, step: usize, path: &Path) -> bool {
        let missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        missed.get(&step).is_some_and(|paths| paths.contains(path))
    }

    /// Notes the files that a run of `step` made.
    pub fn note(&self, step: usize, observed: &Observed, scene: &Scene<'_>) {
        for (seen, noted) in [
            (&observed.removed, &self.removed),
            (&observed.missing, &self.missed),
        ] {
            let own = seen.iter().filter(|path| scene.is_own(path));
            let own: BTreeSet<_> = own.map(|path| scene.directory.join(path)).collect();
            if !own.is_empty() {
                let mut all = noted.lock().unwrap_or_else(PoisonError::into_inner);
                all.entry(step).or_default().extend(own);
            }
        }
        let written = observed.written.iter();
        let foreign = written.filter(|(path, _)| !scene.is_own(path));
        let (mut written, mut rewritten) = (BTreeSet::new(), BTreeSet::new());
        let mut made_anew: Vec<LeftFile> = Vec::new();
        for (path, opened) in foreign {
            let file = scene.directory.join(path);
            if !observed.removed.contains(path) {
                let new = made(file.clone(), opened, self.began);
                made_anew.extend(new.or_else(|| self.continued(file.clone(), opened)));
            }
            if observed.read.contains_key(path) {
                rewritten.insert(file.clone());
            }
            written.insert(file);
        }
        let unfinished = observed.unfinished.iter();
        for path in unfinished.filter(|path| !scene.is_own(path)) {
            let file = scene.directory.join(path);
            made_anew.extend(made_last(file.clone(), self.began));
            // The program may have emptied an older file.
            written.insert(file);
        }
        if !rewritten.is_empty() {
            let mut all = self
                .rewritten
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.entry(step).or_default().extend(rewritten);
        }
        if !written.is_empty() {
            let mut all = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(step).or_default().extend(written);
        }
        if !made_anew.is_empty() {
            let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(step).or_default().extend(made_anew);
        }
    }

    /// The file, if a step made it and it was as that step left it when a program opened it as `opened`.
    fn continued(&self, path: PathBuf, opened: &Identity) -> Option<LeftFile> {
        let looks = Looks::from_stat(&stat(&path)?);
        let all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let mut earlier = all.values().flatten();
        let is_it = |made: &LeftFile| {
            made.path == path && made.looks.is(opened) && made.looks.inode == looks.inode
        };
        earlier.any(is_it).then_some(LeftFile { path, looks })
    }

    /// A file that these steps and another step wrote. A step that was killed when it was about to write the file
    /// counts too. nvcc would not have started these steps, and the file's content may be theirs.
    pub fn contested(&self, is_undone: impl Fn(usize) -> bool) -> Option<PathBuf> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let (undone, kept): (Vec<_>, Vec<_>) =
            written.iter().partition(|(step, _)| is_undone(**step));
        let mut files = undone.iter().flat_map(|(_, files)| files.iter());
        // `/dev/null` does not count: it keeps nothing.
        let keeps_content = |file: &Path| fs::metadata(file).map_or(true, |found| found.is_file());
        let found = files.find(|file| {
            keeps_content(file) && kept.iter().any(|(_, others)| others.contains(*file))
        });
        found.cloned()
    }

    /// A file that a step wrote and read, and that another step also wrote. If they ran at the same time, one may have
    /// read the other's text. gcc's `-save-temps=cwd` writes the arguments of each of its programs into one file.
    pub fn mixed_up(&self) -> Option<PathBuf> {
        let rewritten = self
            .rewritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let is_anothers = |step: usize, file: &PathBuf| {
            let mut others = written.iter().filter(|(other, _)| **other != step);
            others.any(|(_, files)| files.contains(file))
        };
        let mut files = rewritten
            .iter()
            .flat_map(|(step, files)| files.iter().map(|file| (*step, file)));
        let found = files.find(|(step, file)| is_anothers(*step, file));
        found.map(|(_, file)| file.clone())
    }

    /// Removes a file that was made during the run.
    pub fn remove_new(&self, path: &Path) {
        let is_new = |now: &Statx| born(now).is_some_and(|birth| birth >= self.began);
        if stat(path).is_some_and(|now| is_new(&now) && is_alone(&now)) {
            // The file may be gone already, and that is what is wanted.
            _ = fs::remove_file(path);
        }
    }

    /// Removes the side files of these steps.
    pub fn undo(&self, is_undone: impl Fn(usize) -> bool) {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let is_anothers = |path: &Path| {
            let mut others = written.iter().filter(|(step, _)| !is_undone(**step));
            others.any(|(_, files)| files.contains(path))
        };
        let all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, files) in all.iter().filter(|(step, _)| is_undone(**step)) {
            for file in files {
                let same = |now: &Statx| Looks::from_stat(now) == file.looks && is_alone(now);
                if !is_anothers(&file.path) && stat(&file.path).as_ref().is_some_and(same) {
                    // The file may be gone already, and that is what is wanted.
                    _ = fs::remove_file(&file.path);
                }
            }
        }
    }
}

/// The file, if it was made by a program that opened it as `opened`, and not before `began`.
fn made(path: PathBuf, opened: &Identity, began: Time) -> Option<LeftFile> {
    let now = stat(&path)?;
    let is_new = born(&now).is_some_and(|birth| birth >= began);
    let device = rustix::fs::makedev(now.stx_dev_major, now.stx_dev_minor);
    let is_it = (opened.device, opened.inode) == (device, now.stx_ino) && opened.size == 0;
    (is_new && is_it && is_alone(&now)).then(|| LeftFile {
        looks: Looks::from_stat(&now),
        path,
    })
}

/// The file that a program was about to make when it was killed, if it did. Such a file exists, is not older than `began`,
/// and is empty, because the program could not write to it any more.
fn made_last(path: PathBuf, began: Time) -> Option<LeftFile> {
    let now = stat(&path)?;
    let is_new = born(&now).is_some_and(|birth| birth >= began);
    (is_new && now.stx_size == 0 && is_alone(&now)).then(|| LeftFile {
        looks: Looks::from_stat(&now),
        path,
    })
}

/// When the file was created, if its file system records that.
fn born(found: &Statx) -> Option<Time> {
    let knows = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    knows.then(|| (found.stx_btime.tv_sec, found.stx_btime.tv_nsec.into()))
}

impl Looks {
    fn from_stat(found: &Statx) -> Self {
        Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            size: found.stx_size,
            modified: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
        }
    }
}

impl Looks {
    /// Whether a program that opened the file as `opened` found it like this.
    fn is(&self, opened: &Identity) -> bool {
        let device = rustix::fs::makedev(self.device.0, self.device.1);
        let modified = i128::from(self.modified.0) * 1_000_000_000 + i128::from(self.modified.1);
        (device, self.inode, self.size) == (opened.device, opened.inode, opened.size)
            && modified == i128::from(opened.mtime_ns)
    }
}

/// The properties of a regular file that belongs to this user and has one name only.
fn is_alone(found: &Statx) -> bool {
    found.stx_mode & 0o170_000 == 0o100_000
        && found.stx_nlink == 1
        && found.stx_uid == rustix::process::geteuid().as_raw()
}

fn stat(path: &Path) -> Option<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_what_a_step_made_goes_and_only_as_it_was_left() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("trace");
        let note = |began| {
            fs::write(&path, "text").expect("written");
            let found = fs::metadata(&path).expect("a file");
            let opened = Identity {
                device: found.dev(),
                inode: found.ino(),
                mode: found.mode(),
                ..Identity::default()
            };
            made(path.clone(), &opened, began)
        };
        let undo = |made: LeftFile, is_undone: fn(usize) -> bool| {
            let files = SideFiles::new();
            *files.made.lock().expect("nobody else") = [(3, vec![made])].into();
            files.undo(is_undone);
        };
        let (long_ago, later) = ((0, 0), (i64::MAX, 0));
        assert!(note(later).is_none(), "it was there before");
        // On a file system that does not record the time of creation no file is removed.
        let Some(first) = note(long_ago) else { return };
        undo(first, |step| step > 3);
        assert!(path.exists(), "the step counts");
        let second = note(long_ago).expect("as before");
        fs::write(&path, "others wrote more").expect("written");
        undo(second, |_| true);
        assert!(path.exists(), "others wrote to it");
        let shared = note(long_ago).expect("as before");
        let files = SideFiles::new();
        *files.made.lock().expect("nobody else") = [(3, vec![shared])].into();
        *files.written.lock().expect("nobody else") = [(1, [path.clone()].into())].into();
        files.undo(|step| step > 2);
        assert!(path.exists(), "a step that counts wrote it too");
        assert_eq!(files.contested(|step| step > 2), None, "only one wrote it");
        let of_another = [(1, [path.clone()].into()), (3, [path.clone()].into())];
        *files.written.lock().expect("nobody else") = of_another.into();
        assert_eq!(files.contested(|step| step > 2), Some(path.clone()));
        assert_eq!(files.contested(|_| false), None, "nothing failed");
        let null = PathBuf::from("/dev/null");
        let of_null = [(1, [null.clone()].into()), (3, [null].into())];
        *files.written.lock().expect("nobody else") = of_null.into();
        assert_eq!(files.contested(|step| step > 2), None, "a device");
        let third = note(long_ago).expect("as before");
        undo(third, |_| true);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_is_mixed_up_where_one_step_reads_what_two_write() {
        let file = || BTreeSet::from([PathBuf::from("words")]);
        let files = SideFiles::new();
        *files.written.lock().expect("nobody else") = [(1, file()), (3, file())].into();
        assert_eq!(files.mixed_up(), None, "nobody reads it");
        *files.rewritten.lock().expect("nobody else") = [(3, file())].into();
        assert_eq!(files.mixed_up(), Some(PathBuf::from("words")));
        *files.written.lock().expect("nobody else") = [(3, file())].into();
        assert_eq!(files.mixed_up(), None, "only one writes it");
    }

    #[test]
    fn a_file_that_a_killed_program_made_last_goes_while_it_is_empty() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("trace");
        let (long_ago, later) = ((0, 0), (i64::MAX, 0));
        assert!(
            made_last(path.clone(), long_ago).is_none(),
            "it came to nothing"
        );
        fs::write(&path, "").expect("written");
        assert!(
            made_last(path.clone(), later).is_none(),
            "it was there before"
        );
        let Some(made) = made_last(path.clone(), long_ago) else {
            return; // A file system that does not know births.
        };
        let files = SideFiles::new();
        *files.made.lock().expect("nobody else") = [(3, vec![made])].into();
        files.undo(|_| true);
        assert!(!path.exists());
        fs::write(&path, "another's").expect("written");
        assert!(made_last(path, long_ago).is_none(), "somebody wrote to it");
    }
}
