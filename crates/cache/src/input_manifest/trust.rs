//! Decides on which file systems an equal signature means an equal content.
//!
//! If this kernel writes the file system, it also writes the change time: no program can set it. Otherwise an image, a
//! server or a driver provides it: squashfs repeats the modification time in whole seconds, and a second image that is
//! mounted in place of the first may have the same for another file. There, contents are compared. They are also compared on
//! tmpfs, where a write through a shared mapping changes no time.
//!
//! overlayfs shows the times of its layers, whatever file systems those are on. A file that a kernel wrote has a time of
//! birth; a file from an image (EROFS, which also stores fractions of a second) or from a FUSE daemon has none. A folder
//! there has the times of its uppermost layer, and the names of every layer: mounted again with another lower layer, it may
//! have more names and the same times. So its times never prove that no name was added.

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};

use super::Signature;
use super::mount::FileStatus;
use super::signature::Base;
use crate::guards;

/// File systems whose change times this kernel writes, by the numbers of `statfs`, and whether their device numbers are a
/// disk's. 9p has the number of its server's file system, and a device number that is no disk's (seen with 6.1).
const OWN_CHANGE_TIMES: [(&str, u64, bool); 7] = [
    ("ext2, ext3, ext4", 0xef53, true),
    ("xfs", 0x5846_5342, true),
    ("f2fs", 0xf2f5_2010, true),
    ("jfs", 0x3153_464a, true),
    ("btrfs", 0x9123_683e, false),
    ("zfs", 0x2fc1_2fc1, false),
    ("bcachefs", 0xca45_1a4e, false),
];

pub(super) const OVERLAYFS: u64 = 0x794c_7630;

/// Who provides a file system's change times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Own,
    /// The file systems of its layers.
    Layers,
    /// An image, a server, a driver, or an unknown source.
    Others,
}

/// The file systems met so far, by device number, and how far their times can be trusted.
#[derive(Default)]
pub(crate) struct Trust(HashMap<u64, Times>);

impl Trust {
    /// The signature of `file` to store, if a later one will differ when the content does. The signature was just taken.
    pub(crate) fn of_file(&mut self, signature: &Signature, file: impl AsFd) -> Option<Signature> {
        let is_trusted = guards::is_off("trust")
            || match self.times(signature, &file) {
                Times::Own => true,
                Times::Layers => has_birth_time(&file),
                Times::Others => false,
            };
        is_trusted.then(|| remembered(signature, file)).flatten()
    }

    /// The same for a file that was examined by its path.
    pub(super) fn of_status(
        &mut self,
        looked: &FileStatus,
        base: &Base,
        path: &CStr,
    ) -> Option<Signature> {
        let device = looked.signature.dev;
        let times = match self.0.get(&device) {
            Some(times) => *times,
            None => {
                let file = base.open_at(path, OFlags::PATH).ok()?;
                // The path may lie on another file system by now.
                (Signature::of_open(&file).ok()? == looked.signature).then_some(())?;
                self.times(&looked.signature, &file)
            }
        };
        let is_trusted = match times {
            Times::Own => true,
            Times::Layers => looked.has_birth,
            Times::Others => false,
        };
        (is_trusted || guards::is_off("trust")).then(|| looked.remembered())?
    }

    /// The same for a folder, if a later signature will differ when a name is added.
    pub(crate) fn of_names(
        &mut self,
        signature: &Signature,
        folder: impl AsFd,
    ) -> Option<Signature> {
        let is_trusted = self.times(signature, &folder) == Times::Own;
        is_trusted.then(|| remembered(signature, folder)).flatten()
    }

    fn times(&mut self, signature: &Signature, file: impl AsFd) -> Times {
        let known = self.0.entry(signature.dev);
        *known.or_insert_with(|| times_of(signature.dev, file))
    }
}

/// The signature that [`Base::sign`](super::signature::Base::sign) will return.
fn remembered(signature: &Signature, file: impl AsFd) -> Option<Signature> {
    let now = FileStatus::at(file, c"", AtFlags::EMPTY_PATH).ok()?;
    (now.signature == *signature).then(|| now.remembered())?
}

/// The signature of a file to store, if an equal one will mean an equal content.
pub(crate) fn trusted_signature(path: &Path) -> io::Result<Option<Signature>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let signature = Signature::of_open(&file)?;
    Ok(Trust::default().of_file(&signature, &file))
}

fn times_of(device: u64, file: impl AsFd) -> Times {
    let Ok(found) = rustix::fs::fstatfs(file) else {
        return Times::Others;
    };
    // Its width differs between architectures; the numbers are small.
    let kind = u64::try_from(found.f_type).unwrap_or(0);
    let is_disk = rustix::fs::major(device) != 0;
    let mut own = OWN_CHANGE_TIMES.iter();
    match kind {
        OVERLAYFS => Times::Layers,
        _ if own.any(|(_, known, on_disk)| *known == kind && (is_disk || !on_disk)) => Times::Own,
        _ => Times::Others,
    }
}

fn has_birth_time(file: impl AsFd) -> bool {
    let (flags, wanted) = (AtFlags::EMPTY_PATH, StatxFlags::BTIME);
    rustix::fs::statx(file, c"", flags, wanted)
        .is_ok_and(|found| StatxFlags::from_bits_retain(found.stx_mask).contains(wanted))
}
