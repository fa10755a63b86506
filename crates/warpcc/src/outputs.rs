//! Decides whether warpcc may put outputs in place by renaming a new file over them. This is decided before a step runs and
//! before a hit writes anything.
//!
//! It may if the effect is the same as when the tool writes the output itself: there is no file of that name, or there is a
//! regular file of this user with one name (hard link) and the attributes of a new file. In any other case plain nvcc runs.
//! `docs/design/outputs.md` lists what each tool does with such files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use warpcc_cache::guards;
use warpcc_plan::Unsupported;

use crate::request::Request;

/// The reason that is counted for other outputs.
pub const NOT_A_PLAIN_FILE: &str = "an output is not a plain file";

/// The kind of file that an output is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedKind {
    /// A program or a shared library: made with its `x` bits.
    Program,
    /// Anything else.
    Data,
}

impl ExpectedKind {
    /// The kind of an output; `executable` is the record's.
    pub fn from_record(executable: bool) -> Self {
        if executable {
            Self::Program
        } else {
            Self::Data
        }
    }

    fn mode(self) -> u32 {
        match self {
            Self::Program => 0o777,
            Self::Data => 0o666,
        }
    }
}

/// The outputs of one call that have been decided on so far.
pub struct Outputs<'a> {
    request: &'a Request,
    names: Vec<(u64, u64, OsString)>,
}

impl<'a> Outputs<'a> {
    /// Starts with no outputs.
    ///
    /// # Errors
    /// The command line says `-`, which some tools take for standard output and others for a name.
    pub fn new(request: &'a Request) -> Result<Self, Unsupported> {
        let invocation = &request.invocation;
        let depend = invocation.depend.as_ref().and_then(|d| d.output.as_deref());
        for named in [invocation.output.as_deref(), depend].into_iter().flatten() {
            if named == "-" {
                return Err(Unsupported::new(NOT_A_PLAIN_FILE, "-"));
            }
        }
        Ok(Self {
            request,
            names: Vec::new(),
        })
    }

    /// Decides on one more output, an absolute path.
    ///
    /// # Errors
    /// warpcc must not replace the file, or it is the same file as another output or as an input.
    pub fn decide(&mut self, path: &Path, kind: ExpectedKind) -> Result<(), Unsupported> {
        let refuse = |why: &str| {
            let detail = format!("{}: {why}", path.display());
            Err(Unsupported::new(NOT_A_PLAIN_FILE, detail))
        };
        let place = match examine(path, kind) {
            Ok(place) => place,
            Err(why) => return refuse(&why),
        };
        if self.names.contains(&place.name) {
            return refuse("two outputs have this name");
        }
        self.names.push(place.name);
        let Some(found) = place.found else {
            return Ok(());
        };
        let same = |input: &String| {
            fs::metadata(self.request.absolute(input))
                .is_ok_and(|input| input.ino() == found.ino() && input.dev() == found.dev())
        };
        // `ar` updates an archive, which then is an input too, but not one of the command line.
        if self.request.invocation.inputs.iter().any(same) {
            return refuse("it is an input too");
        }
        Ok(())
    }
}

/// The place of an output.
#[derive(Debug)]
struct Place {
    /// Device and number of the folder, and the name in it.
    name: (u64, u64, OsString),
    /// The file that has the name now; `None` where there is none.
    found: Option<Metadata>,
}

/// Examines an output's path. The error names the thing there that a new file must not replace.
fn examine(path: &Path, kind: ExpectedKind) -> Result<Place, String> {
    let bytes = path.as_os_str().as_bytes();
    let last = bytes.rsplit(|b| *b == b'/').next().unwrap_or_default();
    if last.is_empty() || last == b"." || last == b".." {
        return Err("it names a folder".to_owned());
    }
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let parent = fs::metadata(folder).map_err(|e| format!("its folder: {e}"))?;
    rustix::fs::accessat(
        CWD,
        folder,
        Access::WRITE_OK | Access::EXEC_OK,
        AtFlags::EACCESS,
    )
    .map_err(|e| format!("its folder: {e}"))?;
    let place = |found| Place {
        name: (parent.dev(), parent.ino(), OsStr::from_bytes(last).into()),
        found,
    };
    let mut tries = 0;
    loop {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(place(None)),
            Err(error) => return Err(error.to_string()),
            Ok(found) => found,
        };
        let checked = is_ours_alone(&found).and_then(|()| {
            let is_usual = looks_like_new_file(path, &found, folder, kind);
            match is_usual || guards::is_off("looks-of-outputs") {
                true => Ok(()),
                false => {
                    Err("its permissions or attributes differ from those of a new file".to_owned())
                }
            }
        });
        match checked {
            Ok(()) => return Ok(place(Some(found))),
            // Another call with the same output replaced the file in between.
            Err(_) if tries < MOST_TRIES && !is_still_there(path, &found) => tries += 1,
            Err(why) => return Err(why),
        }
    }
}

/// How often a file that others replace is looked at again.
const MOST_TRIES: u32 = 100;

/// Whether the path still leads to the file that was found there.
fn is_still_there(path: &Path, found: &Metadata) -> bool {
    let now = fs::symlink_metadata(path);
    now.is_ok_and(|now| {
        (now.dev(), now.ino(), now.nlink()) == (found.dev(), found.ino(), found.nlink())
    })
}

/// Checks that this is a regular file of this user with one name. warpcc replaces, removes and truncates no other file.
///
/// # Errors
/// It is something else, which the error names.
pub fn is_ours_alone(found: &Metadata) -> Result<(), String> {
    let kind = found.file_type();
    if kind.is_symlink() {
        return match guards::is_off("outputs-that-are-links") {
            true => Ok(()),
            false => Err("it is a symbolic link".to_owned()),
        };
    }
    if kind.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if kind.is_char_device() || kind.is_block_device() {
        return Err("it is a device".to_owned());
    }
    if !kind.is_file() {
        return Err("it is a pipe or a socket".to_owned());
    }
    if found.nlink() != 1 && !guards::is_off("outputs-with-two-names") {
        return Err(format!("it has {} names", found.nlink()));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    Ok(())
}

/// Whether a file has the mode, group and attributes that a new file would have there. A tool that writes into an old file
/// keeps the old ones.
fn looks_like_new_file(path: &Path, found: &Metadata, folder: &Path, kind: ExpectedKind) -> bool {
    let own = attributes(|buffer| rustix::fs::llistxattr(path, buffer));
    let Some(own) = own else {
        return false;
    };
    let usual = UMASK.get().is_some_and(|umask| {
        found.mode() & 0o7777 == kind.mode() & !umask
            && found.gid() == rustix::process::getegid().as_raw()
            && own.is_empty()
    });
    // New files may inherit group, mode and labels from the folder, and some file systems have one mode for all files. Only
    // a new file shows that.
    usual
        || look_of_new_file(folder, kind).is_ok_and(|(there, labels)| {
            found.mode() == there.mode()
                && found.gid() == there.gid()
                && own == labels
                // The names of the attributes do not tell what is in an access control list.
                && memchr::memmem::find(&own, b"posix_acl").is_none()
        })
}

/// Makes a new file, and gives its metadata and the names of its attributes. The file is removed again.
fn look_of_new_file(folder: &Path, kind: ExpectedKind) -> io::Result<(Metadata, Vec<u8>)> {
    let looks = |file: &File| {
        let labels = attributes(|buffer| rustix::fs::flistxattr(file.as_fd(), buffer));
        let labels = labels.ok_or_else(|| io::Error::other("no attributes"))?;
        Ok((file.metadata()?, labels))
    };
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(folder, flags, Mode::from_raw_mode(kind.mode())) {
        return looks(&File::from(file));
    }
    let path = private_name(folder);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(kind.mode());
    let seen = looks(&options.open(&path)?);
    fs::remove_file(&path)?;
    seen
}

/// The names of a file's extended attributes; empty on a file system without attributes, `None` after an error.
fn attributes(list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Option<Vec<u8>> {
    let mut few = [0; 256];
    let listed = match list(&mut few) {
        // XATTR_LIST_MAX, the longest list that the kernel gives.
        Err(rustix::io::Errno::RANGE) => {
            let mut many = vec![0; 64 * 1024];
            list(&mut many).map(|length| {
                many.truncate(length);
                many
            })
        }
        listed => listed.map(|length| few[..length].to_vec()),
    };
    match listed {
        Ok(names) => Some(names),
        Err(rustix::io::Errno::NOTSUP) => Some(Vec::new()),
        Err(_) => None,
    }
}

/// Whether new files inherit the folder's group or its default access control list. A file that is made in another folder
/// and moved there would not have them.
pub fn new_files_inherit(folder: &Path) -> bool {
    const SETGID: u32 = 0o2000;
    let Ok(found) = fs::metadata(folder) else {
        return true;
    };
    let default = || rustix::fs::getxattr(folder, "system.posix_acl_default", &mut [0_u8; 0][..]);
    found.mode() & SETGID != 0 || default().is_ok()
}

/// A path in `folder` that no other process uses.
pub fn private_name(folder: &Path) -> PathBuf {
    folder.join(format!(".warpcc-output-{}", std::process::id()))
}

static UMASK: OnceLock<u32> = OnceLock::new();

/// Reads the umask. To be called while there is one thread: reading the umask sets it for a moment.
pub fn learn_umask() {
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(umask);
    UMASK.get_or_init(|| umask.as_raw_mode());
}

/// Whether a file's permissions are not those that a new file of this process gets.
pub fn is_chosen(permissions: u32) -> bool {
    let usual = |umask: &u32| (0o666 | permissions & 0o111) & !umask;
    UMASK.get().is_some_and(|umask| usual(umask) != permissions)
}

/// Whether the umask takes permissions from the user, so that this process could not use the files that it makes. It
/// could not use a cache made in this way either, and that cache would stay after the umask is changed.
pub fn umask_locks_out_owner() -> bool {
    UMASK.get().is_some_and(|umask| umask & 0o700 != 0)
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
