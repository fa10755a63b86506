//! Facts about a path that a run learned besides a file's content: that it is a folder, where a link leads, which names a
//! folder contains.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;

use rustix::fs::{self, AtFlags, Dir, OFlags};
use rustix::io::Errno;

use super::equals::Equals;
use super::links::Links;
use super::signature::{Base, Signature, descriptor_path, means_absent};

/// A fact about a path that does not need the file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fact {
    /// The path is a folder.
    Folder = 1,
    /// The path is neither file nor folder: a device, a pipe.
    Special = 2,
    /// The path is a regular file.
    File = 3,
    /// The path is a link with this text. Without a text it is there and no link.
    Link = 4,
    /// This is the path with all links resolved.
    Resolved = 5,
    /// The path is a folder with these names: the BLAKE3 of them, sorted.
    Names = 6,
    /// The name does not exist, not even as a dangling link.
    Nothing = 7,
    /// The path is a regular file with this size and time of last change, as [`Fact::size_and_time`] writes them.
    SizeAndTime = 8,
    /// The path may be executed.
    Executable = 9,
    /// How this process may use the path: what access(2) says, and the mode, owner, attributes and mount options behind it.
    Access = 10,
    /// The path is a file of procfs or sysfs with this text, as [`Fact::kernel_text`] writes it.
    KernelText = 11,
    /// The file was last changed in the same second as this other one.
    SameTime = 20,
    /// The file was last changed in another second than this other one.
    OtherTime = 21,
    /// The path leads to the same file or folder as this other one.
    Same = 22,
}

impl Fact {
    pub(super) fn from_byte(byte: u8) -> Option<Fact> {
        let all = [
            Fact::Folder,
            Fact::Special,
            Fact::File,
            Fact::Link,
            Fact::Resolved,
            Fact::Names,
            Fact::Nothing,
            Fact::SizeAndTime,
            Fact::Executable,
            Fact::Access,
            Fact::KernelText,
            Fact::SameTime,
            Fact::OtherTime,
            Fact::Same,
        ];
        all.into_iter().find(|fact| *fact as u8 == byte)
    }

    /// Whether the fact is about which paths lead to the same file, or have the same time.
    pub(super) fn is_about_equals(self) -> bool {
        matches!(
            self,
            Fact::Folder | Fact::SameTime | Fact::OtherTime | Fact::Same
        )
    }

    /// Whether the fact follows from the others, and from the files and folders of a run.
    pub fn is_found_anew(self) -> bool {
        matches!(self, Fact::SameTime | Fact::OtherTime | Fact::Same)
    }

    /// The guard that switches off the check of this fact (see [`crate::guards`]).
    pub(super) fn guard(self) -> &'static str {
        match self {
            Fact::Folder | Fact::Special | Fact::File => "kinds",
            Fact::Link => "links",
            Fact::Resolved => "resolved",
            Fact::Names => "listings",
            Fact::Nothing => "nothing",
            Fact::SizeAndTime => "sizes-and-times",
            Fact::Executable => "executables",
            Fact::Access => "permissions",
            Fact::KernelText => "kernel-texts",
            Fact::SameTime | Fact::OtherTime | Fact::Same => "equal-files",
        }
    }

    /// The beginning of the text of [`Fact::Access`]: the errors of being there, being read, written and executed.
    pub fn access_begin(errors: [u8; 4]) -> Vec<u8> {
        let words = errors.map(|error| format!("{error} "));
        words.concat().into_bytes()
    }

    /// The text of [`Fact::KernelText`] for the content of a file: its BLAKE3 in hex.
    pub fn kernel_text(content: &[u8]) -> Vec<u8> {
        blake3::hash(content).to_hex().as_bytes().to_vec()
    }

    /// The text of [`Fact::SizeAndTime`].
    pub fn size_and_time(size: u64, mtime_ns: i64) -> Vec<u8> {
        format!("{size} {mtime_ns}").into_bytes()
    }

    /// Which of the first three facts holds for the target of a path.
    ///
    /// # Errors
    /// The path leads nowhere, or that cannot be found out.
    pub(super) fn of_kind(base: &Base, path: &CStr) -> Result<Fact, Errno> {
        let found = base.stat(path)?;
        Ok(if found.is_file() {
            Fact::File
        } else if found.is_directory() {
            Fact::Folder
        } else {
            Fact::Special
        })
    }

    /// The present text of this fact about a path; `recorded` is the stored one.
    ///
    /// # Errors
    /// The path leads nowhere, to another kind of file, or cannot be examined.
    pub(super) fn text_now(
        self,
        base: &Base,
        path: &CStr,
        recorded: &CStr,
        links: &mut Links,
    ) -> Result<Vec<u8>, Errno> {
        match self {
            Fact::Folder | Fact::Special | Fact::File => {
                let is = Fact::of_kind(base, path)? == self;
                is.then(Vec::new).ok_or(Errno::NOENT)
            }
            Fact::Link => match base.read_link(path) {
                Err(Errno::INVAL) => Ok(Vec::new()),
                target => Ok(target?.into_bytes()),
            },
            Fact::Resolved => resolve(base, path, links),
            Fact::Names => names_in(base, path),
            Fact::SizeAndTime => {
                let found = base.stat(path)?;
                let text = || Fact::size_and_time(found.size, found.mtime_ns);
                found.is_file().then(text).ok_or(Errno::NOENT)
            }
            Fact::Executable => base
                .may(path, fs::Access::EXEC_OK, AtFlags::empty())
                .map(|()| Vec::new()),
            Fact::Access => base.accesses(path),
            Fact::KernelText => kernel_text(base, path),
            Fact::SameTime | Fact::OtherTime | Fact::Same => {
                Equals::default().text_now(self, base, path, recorded)
            }
            Fact::Nothing => match base.stat_link(path) {
                Err(error) if means_absent(error) => Ok(Vec::new()),
                Err(error) => Err(error),
                Ok(_) => Err(Errno::EXIST),
            },
        }
    }
}

/// The present text of a file of the kernel's. Such a file has no signature that shows whether its text is another one.
fn kernel_text(base: &Base, path: &CStr) -> Result<Vec<u8>, Errno> {
    const PROCFS: u64 = 0x9fa0;
    const SYSFS: u64 = 0x6265_6572;
    /// More than the watch library logs.
    const MOST: u64 = 4096;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    // Somebody who waits to write into a pipe would take this for the reader.
    if !base.stat(path)?.is_file() {
        return Err(Errno::NOENT);
    }
    let file = File::from(base.open_at(path, flags)?);
    let system = fs::fstatfs(&file)?.f_type.cast_unsigned();
    if ![PROCFS, SYSFS].contains(&system) || !Signature::of_open(&file)?.is_file() {
        return Err(Errno::NOENT);
    }
    let mut content = Vec::new();
    let read = file.take(MOST).read_to_end(&mut content);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(Fact::kernel_text(&content))
}

/// The path with all links resolved.
fn resolve(base: &Base, path: &CStr, links: &mut Links) -> Result<Vec<u8>, Errno> {
    let mut whole = match base {
        _ if path.to_bytes().first() == Some(&b'/') => return links.resolve(path.to_bytes()),
        Base::Open(open) => rustix::fs::readlink(descriptor_path(open), Vec::new())?.into_bytes(),
        Base::Missing(error) => return Err(*error),
        Base::Current => rustix::process::getcwd(Vec::new())?.into_bytes(),
    };
    whole.push(b'/');
    whole.extend_from_slice(path.to_bytes());
    links.resolve(&whole)
}

/// The BLAKE3 of a folder's names, in hex.
fn names_in(base: &Base, path: &CStr) -> Result<Vec<u8>, Errno> {
    let open = base.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut names: Vec<CString> = Vec::new();
    for entry in Dir::read_from(&open)? {
        names.push(entry?.file_name().to_owned());
    }
    names.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for name in &names {
        hasher.update(name.to_bytes_with_nul());
    }
    Ok(hasher.finalize().to_hex().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InputManifestBuilder;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_size_a_time_and_a_permission_are_facts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notes");
        std::fs::write(&path, "four").expect("a file");
        let base = Base::open(folder.path());
        let now = |fact: Fact| fact.text_now(&base, c"notes", c"", &mut Links::default());
        let found = base.stat(c"notes").expect("it is there");
        let first = Fact::size_and_time(4, found.mtime_ns);
        assert_eq!(now(Fact::SizeAndTime), Ok(first.clone()));
        let file = std::fs::File::open(&path).expect("it is there");
        file.set_modified(std::time::UNIX_EPOCH).expect("utimens");
        assert_ne!(now(Fact::SizeAndTime), Ok(first));
        let folder = Fact::SizeAndTime.text_now(&base, c".", c"", &mut Links::default());
        assert!(folder.is_err());

        assert_eq!(now(Fact::Executable), Err(Errno::ACCESS));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("chmod");
        assert_eq!(now(Fact::Executable), Ok(Vec::new()));
        assert_eq!(Fact::from_byte(8), Some(Fact::SizeAndTime));
        assert_eq!(Fact::from_byte(9), Some(Fact::Executable));
    }

    /// Somebody changes the permissions after a program was refused, and before the manifest is made.
    #[test]
    fn permissions_count_as_the_run_saw_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notes");
        std::fs::write(&path, "four").expect("a file");
        let made = |errors: [u8; 4]| {
            let mut builder = InputManifestBuilder::new(std::time::SystemTime::now());
            builder.fact(&path, Fact::Access, Some(&Fact::access_begin(errors)));
            builder.finish()
        };
        assert!(made([0, 0, 0, 13]).is_ok(), "it is no program");
        assert!(made([0, 13, 13, 13]).is_err(), "it could not be read");
    }
}
