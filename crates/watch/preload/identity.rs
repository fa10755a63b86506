//! What the kernel says of a file: which one it is, its size, its times and its kind.

use core::ffi::{CStr, c_int, c_long, c_void};

use crate::sys::{AT_FDCWD, numbers, syscall};

/// The identity of a file, from the kernel; all zero if the kernel returns none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) mode: u32,
    pub(crate) special: u64,
}

impl Identity {
    /// The size of an identity in a record, in bytes.
    pub(crate) const LENGTH: usize = 52;

    /// The identity of an open file.
    pub(crate) fn of_open(file: c_int) -> Identity {
        let mut stat = Stat::EMPTY;
        // SAFETY: the kernel fills in the structure of this architecture.
        let result = unsafe { syscall(numbers::FSTAT, c_long::from(file), &raw mut stat) };
        stat.identity(result == 0)
    }

    /// The identity of the file that a path leads to.
    pub(crate) fn of_path(path: &CStr) -> Identity {
        Self::at(AT_FDCWD, path, 0)
    }

    /// The same for a path from an open directory, with the flags of `fstatat`.
    pub(crate) fn at(directory: c_int, path: &CStr, flags: c_int) -> Identity {
        let mut stat = Stat::EMPTY;
        // SAFETY: as above; the path ends in NUL.
        let result = unsafe {
            syscall(
                numbers::FSTATAT,
                c_long::from(directory),
                path.as_ptr(),
                &raw mut stat,
                c_long::from(flags),
            )
        };
        stat.identity(result == 0)
    }

    /// The identity in the result of a C library's `stat`.
    ///
    /// # Safety
    /// `to` is a `struct stat`. The kernel's and the C library's have the same layout.
    pub(crate) unsafe fn of_stat(to: *mut c_void) -> Identity {
        // SAFETY: as the caller promises.
        unsafe { &*to.cast::<Stat>() }.identity(true)
    }

    /// The kind, size and time in the result of `statx`.
    ///
    /// # Safety
    /// `to` is a `struct statx`.
    pub(crate) unsafe fn of_statx(to: *mut c_void) -> Identity {
        // SAFETY: as the caller promises; the offsets are the same on all architectures.
        unsafe {
            let at = |place: usize| to.cast::<u8>().add(place);
            let [seconds, rest] = [112, 120].map(|place| at(place));
            Identity {
                inode: at(32).cast::<u64>().read(),
                size: at(40).cast::<u64>().read(),
                mtime_ns: (seconds.cast::<i64>().read().wrapping_mul(1_000_000_000))
                    .wrapping_add(rest.cast::<u32>().read().into()),
                mode: at(28).cast::<u16>().read().into(),
                ..Identity::default()
            }
        }
    }

    pub(crate) fn bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0..8].copy_from_slice(&self.device.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.inode.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.size.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.mtime_ns.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.ctime_ns.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.mode.to_le_bytes());
        bytes[44..52].copy_from_slice(&self.special.to_le_bytes());
        bytes
    }

    /// Whether it is a character device, such as a terminal.
    pub(crate) fn is_character_device(&self) -> bool {
        self.mode & 0o170_000 == 0o020_000
    }

    /// Whether it is a symbolic link.
    pub(crate) fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }

    /// Whether it is a folder.
    pub(crate) fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    /// Whether it is a regular file.
    pub(crate) fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// The kernel's `struct stat`. The two architectures differ only in the offsets of the mode and the device number.
#[repr(C)]
struct Stat {
    device: u64,
    inode: u64,
    #[cfg(target_arch = "x86_64")]
    links: u64,
    mode: u32,
    #[cfg(target_arch = "aarch64")]
    links: u32,
    user: u32,
    group: u32,
    #[cfg(target_arch = "x86_64")]
    _padding: u32,
    special: u64,
    #[cfg(target_arch = "aarch64")]
    _padding: u64,
    size: i64,
    block_size: i64,
    blocks: i64,
    atime: [i64; 2],
    mtime: [i64; 2],
    ctime: [i64; 2],
    _reserved: [i64; 3],
}

impl Stat {
    // SAFETY: all fields are numbers.
    const EMPTY: Stat = unsafe { core::mem::zeroed() };

    fn identity(&self, known: bool) -> Identity {
        if !known {
            return Identity::default();
        }
        let nanoseconds = |time: [i64; 2]| time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1]);
        Identity {
            device: self.device,
            inode: self.inode,
            size: self.size as u64,
            mtime_ns: nanoseconds(self.mtime),
            ctime_ns: nanoseconds(self.ctime),
            mode: self.mode,
            special: self.special,
        }
    }
}
