//! Finds the file system, or the mount, to which times and inodes belong: a device's number identifies it only while it is
//! mounted.
//!
//! Another disk image in the same loop device, or another subvolume of btrfs, may get the same number later. It may
//! contain another file with the same inode, written in the same tick of the clock. So a manifest contains a checksum
//! of the number and of the file system's own ID (`f_fsid`: ext4 uses its UUID, btrfs that and the subvolume; XFS and
//! F2FS repeat the device's number). overlayfs has a new ID for each container, and its layers' times.
//!
//! Change times in whole seconds are valid for one mount in one boot only.
//!
//! A kernel writes fractions of a second. Whole seconds come from an image that a program filled (`mke2fs -d` makes
//! such root file systems), or from a file system that counts in seconds. While such a file system stays mounted, the
//! kernel makes every change and writes a later second. But another image in its place, after a boot or in the same
//! loop device, may have the same device, inode, size and seconds for another file. So in place of the device's number,
//! a manifest contains a checksum of the boot and of the mount's number, which no other mount gets before the next boot
//! (Linux 6.8 and later; with older kernels such files are compared by content). No other file system has the device
//! number of a mounted one.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::OnceLock;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Signature;
use super::trust::OVERLAYFS;

/// `STATX_MNT_ID_UNIQUE` of `linux/stat.h`.
const UNIQUE_MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// A path's `statx`, with its mount's number if the kernel returns one that no other mount gets before the next boot.
#[derive(Clone, Copy)]
pub(super) struct FileStatus {
    /// The signature, with the device's number.
    pub signature: Signature,
    mount: Option<u64>,
    /// The device's number combined with the ID of its file system; `None` if there is no such ID.
    file_system: Option<u64>,
    /// Whether the file has a time of birth.
    pub has_birth: bool,
    /// The permissions, as in `st_mode`, and the owner.
    mode: u32,
    owner: u32,
}

impl FileStatus {
    /// # Errors
    /// The errors of `stat`.
    pub(super) fn at(folder: impl AsFd, path: &CStr, flags: AtFlags) -> Result<FileStatus, Errno> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | UNIQUE_MOUNT;
        let mut status = match rustix::fs::statx(&folder, path, flags, wanted) {
            Ok(found) => {
                let known = StatxFlags::from_bits_retain(found.stx_mask);
                FileStatus {
                    signature: Signature::from_statx(&found),
                    mount: known.contains(UNIQUE_MOUNT).then_some(found.stx_mnt_id),
                    file_system: None,
                    has_birth: known.contains(StatxFlags::BTIME),
                    mode: found.stx_mode.into(),
                    owner: found.stx_uid,
                }
            }
            Err(Errno::NOSYS) => {
                let found = rustix::fs::statat(&folder, path, flags)?;
                FileStatus {
                    signature: Signature::from_stat(&found),
                    mount: None,
                    file_system: None,
                    has_birth: false,
                    mode: found.st_mode,
                    owner: found.st_uid,
                }
            }
            Err(error) => return Err(error),
        };
        let signature = status.signature;
        if !signature.is_link() {
            status.file_system = file_system((signature.dev, status.mount), folder, path, flags);
        }
        Ok(status)
    }

    /// Whether its mode alone says that this process may read the file.
    pub(super) fn is_surely_readable(&self) -> bool {
        const ALL: u32 = 0o444;
        const OWNER: u32 = 0o400;
        let of_owner = || self.mode & OWNER != 0 && self.owner == geteuid().as_raw();
        self.mode & ALL == ALL || of_owner()
    }

    /// The signature for an input manifest; `None` if it has whole seconds and its mount is not known.
    pub(super) fn remembered(&self) -> Option<Signature> {
        let signature = self.signature;
        if signature.ctime_ns % 1_000_000_000 != 0 {
            return Some(Signature {
                dev: self.file_system?,
                ..signature
            });
        }
        let (mount, boot) = (self.mount?, boot()?);
        let mut of = [0; 16];
        of[..8].copy_from_slice(&mount.to_le_bytes());
        of[8..].copy_from_slice(&signature.dev.to_le_bytes());
        Some(Signature {
            dev: xxh3_64_with_seed(&of, boot),
            ..signature
        })
    }
}

/// A device's number and its mount's.
type Mounted = (u64, Option<u64>);

/// The ID of a path's file system, looked up once for each mount in a thread.
fn file_system(mounted: Mounted, folder: impl AsFd, path: &CStr, flags: AtFlags) -> Option<u64> {
    thread_local! {
        static KNOWN: RefCell<Vec<(Mounted, Option<u64>)>> = const { RefCell::new(Vec::new()) };
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, name)) = known.iter().find(|(other, _)| *other == mounted) {
            return *name;
        }
        let name = if flags.contains(AtFlags::EMPTY_PATH) {
            name_of(mounted.0, folder)
        } else {
            let open = OFlags::PATH | OFlags::CLOEXEC;
            let file = rustix::fs::openat(folder, path, open, Mode::empty()).ok()?;
            name_of(mounted.0, file)
        };
        known.push((mounted, name));
        name
    })
}

fn name_of(device: u64, file: impl AsFd) -> Option<u64> {
    // The path may lie on another file system by now.
    (Signature::of_open(&file).ok()?.dev == device).then_some(())?;
    let kind = rustix::fs::fstatfs(&file).ok()?.f_type;
    if u64::try_from(kind).is_ok_and(|kind| kind == OVERLAYFS) {
        return Some(device);
    }
    let name = rustix::fs::fstatvfs(&file).ok()?.f_fsid;
    Some(xxh3_64_with_seed(&name.to_le_bytes(), device))
}

/// A checksum of the kernel's ID for this boot.
fn boot() -> Option<u64> {
    static BOOT: OnceLock<Option<u64>> = OnceLock::new();
    let read = || {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        Some(xxh3_64(&boot))
    };
    *BOOT.get_or_init(read)
}
