//! Change times in whole seconds: what they say, they say of one mount since one boot.
//!
//! A kernel writes fractions of a second. Whole seconds come out of an image that a program filled (`mke2fs -d` makes
//! such root file systems), or of a file system that counts in seconds. While such a file system stays mounted, every
//! change is the kernel's and gives a later second. But another image in its place, after a boot or in the same loop
//! device, may say the same device, inode, size and seconds of another file. So in place of the device's number a
//! manifest keeps a checksum of the boot and of the mount, whose number no other mount gets before the next boot (Linux
//! 6.8 and later; before that such files are compared by content). A mounted file system's device belongs to nobody else.

use std::ffi::CStr;
use std::sync::OnceLock;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Signature;

/// `STATX_MNT_ID_UNIQUE` of `linux/stat.h`.
const UNIQUE_MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// What the kernel says of a path, with the number of its mount where it has one that no other gets before the next boot.
#[derive(Clone, Copy)]
pub(super) struct Looked {
    /// With the device's number.
    pub signature: Signature,
    mount: Option<u64>,
    /// It has a time of birth.
    pub has_birth: bool,
}

impl Looked {
    /// # Errors
    /// As `stat`'s.
    pub(super) fn at(folder: impl AsFd, path: &CStr, flags: AtFlags) -> Result<Looked, Errno> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | UNIQUE_MOUNT;
        match rustix::fs::statx(&folder, path, flags, wanted) {
            Ok(found) => {
                let known = StatxFlags::from_bits_retain(found.stx_mask);
                Ok(Looked {
                    signature: Signature::from_statx(&found),
                    mount: known.contains(UNIQUE_MOUNT).then_some(found.stx_mnt_id),
                    has_birth: known.contains(StatxFlags::BTIME),
                })
            }
            Err(Errno::NOSYS) => rustix::fs::statat(folder, path, flags).map(|found| Looked {
                signature: Signature::from_stat(&found),
                mount: None,
                has_birth: false,
            }),
            Err(error) => Err(error),
        }
    }

    /// The signature as an input manifest remembers it; `None` where whole seconds have no mount to go with.
    pub(super) fn remembered(&self) -> Option<Signature> {
        let signature = self.signature;
        if signature.ctime_ns % 1_000_000_000 != 0 {
            return Some(signature);
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

/// A checksum of what the kernel calls this boot.
fn boot() -> Option<u64> {
    static BOOT: OnceLock<Option<u64>> = OnceLock::new();
    let read = || {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        Some(xxh3_64(&boot))
    };
    *BOOT.get_or_init(read)
}
