//! On which file systems an equal signature means an equal content.
//!
//! The change time is the kernel's own on file systems that this kernel writes: no program can set it. Elsewhere it is
//! what an image, a server or a driver says: squashfs gives the modification time, whole seconds, and a second image
//! mounted in the place of the first may say the same of another file. There contents are compared.

use std::collections::HashMap;

use rustix::fd::AsFd;

use super::Signature;
use crate::guards;

/// File systems whose change times this kernel makes, by the numbers of `statfs`.
const OWN_CHANGE_TIMES: [(&str, u64); 9] = [
    ("ext2, ext3, ext4", 0xef53),
    ("xfs", 0x5846_5342),
    ("btrfs", 0x9123_683e),
    ("tmpfs", 0x0102_1994),
    ("overlayfs", 0x794c_7630),
    ("f2fs", 0xf2f5_2010),
    ("zfs", 0x2fc1_2fc1),
    ("bcachefs", 0xca45_1a4e),
    ("jfs", 0x3153_464a),
];

/// What is known of the file systems met so far, by device number.
#[derive(Default)]
pub(crate) struct Trust(HashMap<u64, bool>);

impl Trust {
    /// Whether this signature, taken of `file` just now, will differ when the content does.
    pub(crate) fn holds(&mut self, signature: &Signature, file: impl AsFd) -> bool {
        if guards::is_off("trust") {
            return true;
        }
        // A kernel writes the fraction of a second too; whole seconds are an image's, or of a file system that counts
        // in seconds, where two changes may share one.
        signature.ctime_ns % 1_000_000_000 != 0
            && *self
                .0
                .entry(signature.dev)
                .or_insert_with(|| has_own_change_times(file))
    }
}

fn has_own_change_times(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| {
        // Its width differs between architectures; the numbers are small.
        let kind = u64::try_from(found.f_type).unwrap_or(0);
        OWN_CHANGE_TIMES.iter().any(|(_, known)| *known == kind)
    })
}
