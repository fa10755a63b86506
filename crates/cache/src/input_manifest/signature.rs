//! Takes a file's signature: fields of `stat` that cannot all stay the same when the file's content changes.

use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, Statx, StatxAttributes, StatxFlags,
    StatxTimestamp, makedev,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::mount::FileStatus;

/// Identity, size and times of the file to which a path leads.
///
/// A user cannot set the change time. So a file whose signature is the same, and was not brand-new when the signature was
/// taken, has the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of the last change of anything, nanoseconds since 1970.
    pub ctime_ns: i64,
    /// The type bits of the mode (`S_IFMT`).
    pub kind: u32,
}

/// The longest tick of a file system's clock; the callers' slack covers it.
pub(crate) const TICK_NS: i64 = 10_000_000;

impl Signature {
    /// The signature of the file to which `path` leads.
    pub fn read(path: &Path) -> io::Result<Signature> {
        Ok(Signature::from_stat(&rustix::fs::stat(path)?))
    }

    pub(crate) fn of_open(file: impl AsFd) -> Result<Signature, Errno> {
        rustix::fs::fstat(file).map(|stat| Signature::from_stat(&stat))
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the widths of stat's fields differ between architectures"
    )]
    pub(super) fn from_stat(stat: &Stat) -> Signature {
        Signature {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            size: stat.st_size as u64,
            mtime_ns: in_nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime_ns: in_nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            kind: FileType::from_raw_mode(stat.st_mode).as_raw_mode() as u32,
        }
    }

    pub(super) fn from_statx(found: &Statx) -> Signature {
        let time = |time: &StatxTimestamp| in_nanoseconds(time.tv_sec, i64::from(time.tv_nsec));
        Signature {
            dev: makedev(found.stx_dev_major, found.stx_dev_minor),
            ino: found.stx_ino,
            size: found.stx_size,
            mtime_ns: time(&found.stx_mtime),
            ctime_ns: time(&found.stx_ctime),
            kind: FileType::from_raw_mode(found.stx_mode.into()).as_raw_mode(),
        }
    }

    /// Whether the file is a regular one.
    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile.as_raw_mode()
    }

    /// Whether the file is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == FileType::Directory.as_raw_mode()
    }

    /// Whether the file is a symbolic link. That is possible only if links were not followed.
    pub(crate) fn is_link(&self) -> bool {
        self.kind == FileType::Symlink.as_raw_mode()
    }

    /// Whether every change after `moment`, which lies before this signature was taken, gives another signature.
    pub(crate) fn was_settled_at(&self, moment: SystemTime) -> bool {
        self.is_older_than(nanoseconds(moment), 2 * TICK_NS, now())
    }

    /// Whether the last change was certainly before `moment`, if the clock ticks every `slack` nanoseconds. `now` separates
    /// a change from a time in the future, which a user set and which proves nothing.
    pub(crate) fn is_older_than(&self, moment: i64, slack: i64, now: i64) -> bool {
        // On file systems with whole seconds, the change may be a second later than it says. FAT counts in steps of two, so
        // its seconds are even.
        let slack = match self.ctime_ns % 2_000_000_000 {
            0 => slack.saturating_add(2_000_000_000),
            1_000_000_000 => slack.saturating_add(1_000_000_000),
            _ => slack,
        };
        let before = moment.saturating_sub(slack);
        let content_is_older = self.mtime_ns < before || self.mtime_ns > now;
        self.ctime_ns < before && content_is_older
    }
}

fn in_nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(error) => i64::try_from(error.duration().as_nanos()).map_or(i64::MIN, |before| -before),
    }
}

pub(crate) fn now() -> i64 {
    nanoseconds(SystemTime::now())
}

/// The directory from which relative paths start.
pub(crate) enum Base {
    /// This process's own directory.
    Current,
    Open(OwnedFd),
    /// The directory cannot be opened: no relative path exists.
    Missing(Errno),
}

impl Base {
    pub(crate) fn open(path: &Path) -> Base {
        if path.as_os_str().is_empty() || path == Path::new(".") {
            return Base::Current;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(open) => Base::Open(open),
            Err(error) => Base::Missing(error),
        }
    }

    pub(crate) fn stat(&self, path: &CStr) -> Result<Signature, Errno> {
        self.stat_with(path, AtFlags::empty())
    }

    /// Examines the file to which a path leads; also returns whether the last name of the path is a link.
    pub(super) fn look_at(&self, path: &CStr) -> Result<(FileStatus, bool), Errno> {
        let looked = |flags| match self {
            Base::Open(open) => FileStatus::at(open, path, flags),
            Base::Missing(error) if is_relative(path) => Err(*error),
            Base::Current | Base::Missing(_) => FileStatus::at(CWD, path, flags),
        };
        let mut found = looked(AtFlags::SYMLINK_NOFOLLOW)?;
        let link = found.signature.is_link();
        if link {
            found = looked(AtFlags::empty())?;
        }
        Ok((found, link))
    }

    /// The signature of a path's file for an input manifest, and whether the last name of the path is a link.
    pub(crate) fn sign(&self, path: &CStr) -> Result<(Signature, bool), Errno> {
        let (found, link) = self.look_at(path)?;
        // The device number does not exist, so an untrusted file differs from every manifest. So does one that another user,
        // group or privilege could read, and this process cannot: a closer look then fails.
        let nobodys = Signature {
            dev: 0,
            ..found.signature
        };
        let is_readable =
            !found.signature.is_file() || found.is_surely_readable() || self.may_read(path);
        let signature = found.remembered().filter(|_| is_readable);
        Ok((signature.unwrap_or(nobodys), link))
    }

    pub(crate) fn stat_link(&self, path: &CStr) -> Result<Signature, Errno> {
        self.stat_with(path, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn stat_with(&self, path: &CStr, flags: AtFlags) -> Result<Signature, Errno> {
        let stat = match self {
            Base::Open(open) => rustix::fs::statat(open, path, flags),
            Base::Missing(error) if is_relative(path) => return Err(*error),
            Base::Current | Base::Missing(_) => rustix::fs::statat(CWD, path, flags),
        };
        stat.map(|stat| Signature::from_stat(&stat))
    }

    /// Whether an `open` for reading would succeed.
    fn may_read(&self, path: &CStr) -> bool {
        self.may(path, Access::READ_OK, AtFlags::EACCESS).is_ok()
    }

    /// Whether this user may use it so; with `AtFlags::EACCESS`, whether this process may.
    pub(crate) fn may(&self, path: &CStr, access: Access, flags: AtFlags) -> Result<(), Errno> {
        match self {
            Base::Open(open) => rustix::fs::accessat(open, path, access, flags),
            Base::Missing(error) if is_relative(path) => Err(*error),
            Base::Current | Base::Missing(_) => rustix::fs::accessat(CWD, path, access, flags),
        }
    }

    /// What decides how this process may use a path: the errors for being there, being read, written and executed, as numbers (0
    /// where there is none), for its real and for its effective user; and if the path leads somewhere, its mode, owner, group,
    /// attributes and the options of its mount. access(2) is silent about some of these: files that only grow, sticky folders,
    /// devices on a mount without devices.
    ///
    /// # Errors
    /// The path does not exist, or the errors are not about the path and the user, and may be others next time.
    pub(crate) fn accesses(&self, path: &CStr) -> Result<Vec<u8>, Errno> {
        let uses = [
            Access::EXISTS,
            Access::READ_OK,
            Access::WRITE_OK,
            Access::EXEC_OK,
        ];
        let mut words = Vec::new();
        for flags in [AtFlags::empty(), AtFlags::EACCESS] {
            for access in uses {
                let error = self.may(path, access, flags).err();
                if let Some(error) = error.filter(|error| !is_refusal(*error)) {
                    return Err(error);
                }
                words.push(error.map_or(0, Errno::raw_os_error).to_string());
            }
        }
        if let Ok(place) = self.open_at(path, OFlags::PATH) {
            let wanted = StatxFlags::MODE | StatxFlags::UID | StatxFlags::GID;
            let found = rustix::fs::statx(&place, c"", AtFlags::EMPTY_PATH, wanted)?;
            let lasting = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
            let mount = rustix::fs::fstatvfs(&place)?.f_flag;
            words.push(format!("{:o}", found.stx_mode));
            words.push(found.stx_uid.to_string());
            words.push(found.stx_gid.to_string());
            words.push((found.stx_attributes & lasting).bits().to_string());
            words.push(mount.bits().to_string());
        }
        Ok(words.join(" ").into_bytes())
    }

    pub(crate) fn read_link(&self, path: &CStr) -> Result<CString, Errno> {
        match self {
            Base::Open(open) => rustix::fs::readlinkat(open, path, Vec::new()),
            Base::Missing(error) if is_relative(path) => Err(*error),
            Base::Current | Base::Missing(_) => rustix::fs::readlinkat(CWD, path, Vec::new()),
        }
    }

    pub(crate) fn open_at(&self, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        match self {
            Base::Open(open) => rustix::fs::openat(open, path, flags, Mode::empty()),
            Base::Missing(error) if is_relative(path) => Err(*error),
            Base::Current | Base::Missing(_) => rustix::fs::openat(CWD, path, flags, Mode::empty()),
        }
    }
}

/// A path that leads to an open file.
pub(crate) fn descriptor_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn is_relative(path: &CStr) -> bool {
    path.to_bytes().first() != Some(&b'/')
}

/// Whether an error means that a path does not exist. Any other error is another answer for a run that looks for the path: gcc
/// passes a missing folder by, and complains of one that it may not search, or of a link that leads to itself.
pub(crate) fn means_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR)
}

/// Whether an error says that this user may not use a path, or that it leads nowhere and cannot be missing either. As long as
/// nobody changes the path or its folders, each look gives the same.
pub(crate) fn is_refusal(error: Errno) -> bool {
    matches!(
        error,
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::LOOP | Errno::NAMETOOLONG
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(mtime_ns: i64, ctime_ns: i64) -> Signature {
        Signature {
            dev: 1,
            ino: 1,
            size: 1,
            mtime_ns,
            ctime_ns,
            kind: 0o100_000,
        }
    }

    #[test]
    fn settled_needs_both_times_old() {
        let second = 1_000_000_000;
        let (start, now) = (10 * second + 7, 11 * second + 7);
        let old = 9 * second + 1;
        assert!(signature(old, old).is_older_than(start, TICK_NS, now));
        assert!(!signature(start, old).is_older_than(start, TICK_NS, now));
        assert!(!signature(old, start).is_older_than(start, TICK_NS, now));
        assert!(!signature(old, start - TICK_NS).is_older_than(start, TICK_NS, now));
        // A time in the future that a user set is not a change.
        assert!(signature(99 * second, old).is_older_than(start, TICK_NS, now));
        // Whole seconds may hide a later change.
        assert!(!signature(9 * second + 1, 10 * second).is_older_than(start, TICK_NS, now));
        // FAT stores 8 for a change at 9.9.
        let late = 9 * second + 950_000_000;
        assert!(!signature(8 * second, 8 * second).is_older_than(late, TICK_NS, now));
        assert!(signature(7 * second, 7 * second).is_older_than(late, TICK_NS, now));
    }

    #[test]
    fn a_missing_base_hides_relative_paths_only() {
        let base = Base::open(Path::new("/nowhere/at/all"));
        assert_eq!(base.stat(c"."), Err(Errno::NOENT));
        assert!(base.stat(c"/").is_ok());
    }
}
