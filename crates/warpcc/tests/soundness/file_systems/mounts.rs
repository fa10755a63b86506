//! Mounts file systems of many kinds for a test, in a mount namespace of its own that ends with the test, and says which
//! kinds this machine cannot mount.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::space::{make_dir, remove_tree};

/// The variable that is set inside of the namespace.
const INSIDE: &str = "WARPCC_TEST_MOUNTS";

/// A way to mount a file system. The scripts are given `$AT`, where to mount, `$FROM`, a folder with the first content,
/// and `$OWN`, an empty folder for images and layers.
pub struct MountKind {
    /// The name for messages and folders.
    pub name: &'static str,
    /// The name that has to be in `/proc/filesystems`.
    needs: &'static str,
    script: &'static str,
}

const fn kind(name: &'static str, needs: &'static str, script: &'static str) -> MountKind {
    MountKind {
        name,
        needs,
        script,
    }
}

/// File systems that can be written where they are mounted.
pub const WRITABLE: &[MountKind] = &[
    kind("tmpfs", "tmpfs", "mount -t tmpfs none $AT"),
    kind("ramfs", "ramfs", "mount -t ramfs none $AT"),
    kind("bind", "proc", "mount --bind $OWN $AT"),
    kind(
        "ext4",
        "ext4",
        "truncate -s 300M $OWN/i; mkfs.ext4 -q $OWN/i; mount -o loop $OWN/i $AT",
    ),
    // Whole seconds.
    kind(
        "ext4-128",
        "ext4",
        "truncate -s 300M $OWN/i; mkfs.ext4 -q -I 128 $OWN/i; mount -o loop $OWN/i $AT",
    ),
    kind(
        "ext2-128",
        "ext2",
        "truncate -s 300M $OWN/i; mkfs.ext2 -q -I 128 $OWN/i; mount -t ext2 -o loop $OWN/i $AT",
    ),
    kind(
        "xfs",
        "xfs",
        "truncate -s 400M $OWN/i; mkfs.xfs -q $OWN/i; mount -o loop $OWN/i $AT",
    ),
    kind(
        "btrfs",
        "btrfs",
        "truncate -s 300M $OWN/i; mkfs.btrfs -q $OWN/i; mount -o loop $OWN/i $AT",
    ),
    kind(
        "overlay",
        "overlay",
        "mkdir $OWN/l $OWN/u $OWN/w
         mount -t overlay -o lowerdir=$OWN/l,upperdir=$OWN/u,workdir=$OWN/w none $AT",
    ),
    // Lower and upper of two devices: other numbers for inodes, another rule for devices.
    kind(
        "overlay-of-two",
        "overlay",
        "mkdir $OWN/l $OWN/t; mount -t tmpfs none $OWN/t; mkdir $OWN/t/u $OWN/t/w
         mount -t overlay -o lowerdir=$OWN/l,upperdir=$OWN/t/u,workdir=$OWN/t/w none $AT",
    ),
    kind("bindfs", "fuse", "bindfs $OWN $AT"),
    // The server is at the other end of a pipe, without a network.
    kind(
        "sshfs",
        "fuse",
        "printf '#!/bin/sh\\nexec /usr/lib/openssh/sftp-server\\n' >$OWN/ssh; chmod +x $OWN/ssh; mkdir $OWN/d
         test -x /usr/lib/openssh/sftp-server; sshfs -o ssh_command=$OWN/ssh nobody:$OWN/d $AT",
    ),
    // Two seconds.
    kind(
        "fat",
        "vfat",
        "truncate -s 64M $OWN/i; mkfs.vfat $OWN/i >$OWN/log; mount -o loop $OWN/i $AT",
    ),
    kind(
        "fusefat",
        "fuse",
        "truncate -s 64M $OWN/i; mkfs.vfat $OWN/i >$OWN/log; fusefat -o rw+ $OWN/i $AT",
    ),
    kind(
        "nfs",
        "nfs4",
        "exportfs -o rw,no_root_squash,fsid=7 localhost:$OWN; mount -t nfs4 localhost:$OWN $AT",
    ),
];

/// File systems made as an image of `$FROM`.
pub const IMAGES: &[MountKind] = &[
    kind(
        "squashfs",
        "squashfs",
        "mksquashfs $FROM $OWN/i -quiet -no-progress >$OWN/log; mount -t squashfs -o loop $OWN/i $AT",
    ),
    kind(
        "squashfuse",
        "fuse",
        "mksquashfs $FROM $OWN/i -quiet -no-progress >$OWN/log; squashfuse $OWN/i $AT",
    ),
    kind(
        "erofs",
        "erofs",
        "mkfs.erofs -Eforce-inode-compact $OWN/i $FROM >$OWN/log; mount -t erofs -o loop $OWN/i $AT",
    ),
    // Keeps fractions of a second, but of times that any program may set.
    kind(
        "erofs-extended",
        "erofs",
        "mkfs.erofs -Eforce-inode-extended $OWN/i $FROM >$OWN/log; mount -t erofs -o loop $OWN/i $AT",
    ),
    // Images of equal files are the same, as a reproducible build makes them.
    kind(
        "ext4-image",
        "ext4",
        "truncate -s 64M $OWN/i; id=11111111-1111-1111-1111-111111111111
         mkfs.ext4 -q -U $id -E hash_seed=$id -d $FROM $OWN/i
         for name in / /a.h; do for time in ctime mtime crtime; do
             debugfs -w -R \"set_inode_field $name $time @1700000000\" $OWN/i 2>$OWN/log
         done; done
         mount -o loop $OWN/i $AT",
    ),
    // Files of two disks that were written in the same tick.
    kind(
        "ext4-twin",
        "ext4",
        "truncate -s 64M $OWN/i; mkfs.ext4 -q -d $FROM $OWN/i
         for name in / /a.h; do for time in ctime mtime; do
             debugfs -w -R \"set_inode_field $name $time @1700000000\" $OWN/i 2>$OWN/log
             debugfs -w -R \"set_inode_field $name ${time}_extra 0x77359400\" $OWN/i 2>$OWN/log
         done; done
         mount -o loop $OWN/i $AT",
    ),
    kind(
        "btrfs-image",
        "btrfs",
        "truncate -s 300M $OWN/i; mkfs.btrfs -q --rootdir $FROM $OWN/i; mount -o loop $OWN/i $AT",
    ),
    kind(
        "overlay-of-squashfs",
        "overlay",
        "mkdir $OWN/l $OWN/u $OWN/w; mksquashfs $FROM $OWN/i -quiet -no-progress >$OWN/log
         mount -t squashfs -o loop $OWN/i $OWN/l
         mount -t overlay -o lowerdir=$OWN/l,upperdir=$OWN/u,workdir=$OWN/w none $AT",
    ),
    kind(
        "overlay-of-erofs",
        "overlay",
        "mkdir $OWN/l $OWN/u $OWN/w; mkfs.erofs -Eforce-inode-extended $OWN/i $FROM >$OWN/log
         mount -t erofs -o loop $OWN/i $OWN/l
         mount -t overlay -o lowerdir=$OWN/l,upperdir=$OWN/u,workdir=$OWN/w none $AT",
    ),
    kind(
        "overlay-of-bindfs",
        "overlay",
        "mkdir $OWN/l $OWN/u $OWN/w; bindfs $FROM $OWN/l
         mount -t overlay -o lowerdir=$OWN/l,upperdir=$OWN/u,workdir=$OWN/w none $AT",
    ),
];

/// Every file has the mode 0700, whatever the tool that made it asked for, as on FAT and NTFS.
pub const ONE_MODE: MountKind = kind("one-mode", "fuse", "bindfs -p 0700 --chmod-ignore $OWN $AT");

/// An image of `$FROM` below a layer that stays: `upper` next to `$AT`.
pub const RELAYERED: MountKind = kind(
    "relayered",
    "overlay",
    "mkdir -p $OWN/l $OWN/w ${AT%/*}/upper; mksquashfs $FROM $OWN/i -quiet -no-progress >$OWN/log
     mount -t squashfs -o loop $OWN/i $OWN/l
     mount -t overlay -o lowerdir=$OWN/l,upperdir=${AT%/*}/upper,workdir=$OWN/w none $AT",
);

/// Whether this process is in a namespace in which it may mount. Otherwise the test runs again in a namespace of its own,
/// if this machine allows one.
pub fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]);
        command
    };
    let can = unshare().arg("true").stderr(Stdio::null()).status();
    if !rustix::process::geteuid().is_root() || !can.is_ok_and(|ended| ended.success()) {
        say("nothing was tried: no mount namespace for this user");
        return false;
    }
    let ended = unshare()
        .arg(std::env::current_exe().expect("the test's own program"))
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare runs");
    assert!(ended.success(), "{test} failed in its mount namespace");
    false
}

/// A mounted file system; unmounted when dropped.
pub struct Mounted {
    at: PathBuf,
    own: PathBuf,
}

impl MountKind {
    /// Mounts the file system at `at`, with its images and layers in `own`. `None`, after a message, where this machine
    /// cannot.
    pub fn mount(&self, at: &Path, own: &Path, from: &Path) -> Option<Mounted> {
        make_dir(at);
        make_dir(own);
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.split_whitespace().any(|word| word == self.needs) {
            say(&format!(
                "{} was not tried: this kernel has no {}",
                self.name, self.needs
            ));
            return None;
        }
        let mounted = Mounted {
            at: at.to_owned(),
            own: own.to_owned(),
        };
        let done = Command::new("sh")
            .args(["-euc", self.script])
            .env("AT", at)
            .env("OWN", own)
            .env("FROM", from)
            .output()
            .expect("sh runs");
        if done.status.success() {
            return Some(mounted);
        }
        let why = String::from_utf8_lossy(&done.stderr);
        say(&format!("{} was not tried: {}", self.name, why.trim()));
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Layers after what depends on them. A daemon that still writes is given its time.
        for at in [self.at.clone(), self.own.join("t"), self.own.join("l")] {
            for _ in 0..50 {
                let gone = Command::new("umount")
                    .arg(&at)
                    .stderr(Stdio::null())
                    .status();
                if !gone.is_ok_and(|ended| !ended.success()) || !is_mount(&at) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
        remove_tree(&self.own);
    }
}

fn is_mount(at: &Path) -> bool {
    Command::new("mountpoint")
        .arg("-q")
        .arg(at)
        .status()
        .is_ok_and(|ended| ended.success())
}

/// Prints a message to the test's output.
#[expect(clippy::print_stderr, reason = "tells a person what was not tried")]
pub fn say(what: &str) {
    eprintln!("file systems: {what}");
}
