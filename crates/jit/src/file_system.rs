//! File systems that matter for a driver's cache, by the number that `statfs` returns.

use serde::Serialize;

/// The kind of file system of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// A server is asked for everything.
    Network(&'static str),
    /// Another process answers every request, often over a network.
    Fuse,
    /// A container's own layer, which is deleted with the container.
    Layer,
    /// Memory, which is lost when the machine or the container stops.
    Memory,
    /// A file system that cannot be written, such as the image of a disc.
    ReadOnlyImage(&'static str),
    /// Anything else, taken for a local disk.
    Local(&'static str),
}

impl FileSystem {
    /// The file system with this `f_type`, of which the low 32 bits count.
    pub fn from_number(number: u64) -> Self {
        match number & 0xffff_ffff {
            0x6969 => Self::Network("NFS"),
            0x517b | 0xff53_4d42 | 0xfe53_4d42 => Self::Network("SMB"),
            0x00c3_6400 => Self::Network("Ceph"),
            0x0bd0_0bd0 => Self::Network("Lustre"),
            0x5346_414f => Self::Network("AFS"),
            0x4750_4653 => Self::Network("GPFS"),
            0x1983_0326 => Self::Network("BeeGFS"),
            0x0102_1997 => Self::Network("9p, a folder of the host"),
            0x6573_5546 => Self::Fuse,
            0x794c_7630 | 0x6175_6673 => Self::Layer,
            0x0102_1994 | 0x8584_58f6 => Self::Memory,
            0x7371_7368 => Self::ReadOnlyImage("SquashFS"),
            0xe0f5_e1e2 => Self::ReadOnlyImage("EROFS"),
            0x9660 => Self::ReadOnlyImage("ISO 9660"),
            0xef53 => Self::Local("ext4"),
            0x5846_5342 => Self::Local("XFS"),
            0x9123_683e => Self::Local("btrfs"),
            0x2fc1_2fc1 => Self::Local("ZFS"),
            0xf2f5_2010 => Self::Local("F2FS"),
            _ => Self::Local("an unknown file system"),
        }
    }

    /// Its name in messages.
    pub fn name(self) -> String {
        match self {
            Self::Network(name) => format!("a network share ({name})"),
            Self::Fuse => "FUSE".to_owned(),
            Self::Layer => "a container's own layer (overlay)".to_owned(),
            Self::Memory => "memory (tmpfs)".to_owned(),
            Self::ReadOnlyImage(name) => format!("a read-only image ({name})"),
            Self::Local(name) => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_their_number() {
        assert_eq!(FileSystem::from_number(0x6969), FileSystem::Network("NFS"));
        assert_eq!(FileSystem::from_number(0x794c_7630), FileSystem::Layer);
        assert_eq!(FileSystem::from_number(0x0102_1994), FileSystem::Memory);
        assert_eq!(FileSystem::from_number(0xef53), FileSystem::Local("ext4"));
        // As a signed number of 32 bits, which some architectures give.
        let signed = i64::from(0xff53_4d42_u32 as i32) as u64;
        assert_eq!(FileSystem::from_number(signed), FileSystem::Network("SMB"));
    }
}
