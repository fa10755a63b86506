//! The names that a run did not find, with the directories that would change if one of them appeared.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::guards;

use super::build::sorted;
use super::check::DIRECTORY_SLACK_NS;
use super::signature::{self, Base, Signature, is_refusal, means_absent};
use super::trust::Trust;
use super::unsettled::Unsettled;
use super::{DirectoryEntry, InputManifest, NameEntry, NameSeen};

/// Adds the names, each below the nearest directory that exists. Those in `no_files` may be folders. Returns the paths that
/// this user may not look at: they are not missing, and no directory's times say whether they will be.
pub(super) fn add(
    absent: &HashSet<OsString>,
    no_files: &HashSet<OsString>,
    base: &Base,
    manifest: &mut InputManifest,
) -> Result<Vec<PathBuf>, Unsettled> {
    let mut refused = Vec::new();
    let now = signature::now();
    let mut nearest = Nearest::new(base);
    let mut trust = Trust::default();
    // The directories are examined before the names in them, so that a name that appears later makes a difference.
    let mut placed: Vec<(usize, &Path, NameSeen)> = Vec::with_capacity(absent.len());
    for path in sorted(absent) {
        let directory = nearest.directory_of(path);
        let Some((seen, surely)) = look_for(base, path)? else {
            refused.push(path.to_path_buf());
            continue;
        };
        if seen == NameSeen::Folder && !no_files.contains(path.as_os_str()) {
            return Err(Unsettled::Appeared {
                path: path.to_path_buf(),
            });
        }
        nearest.found[directory].sure &= surely;
        let name = match path.strip_prefix(&nearest.found[directory].path) {
            Ok(name) if !name.as_os_str().is_empty() => name,
            _ => path,
        };
        placed.push((directory, name, seen));
    }
    // The sort is stable, so that the names of a directory stay sorted.
    placed.sort_by_key(|(directory, ..)| *directory);
    let mut placed = placed.into_iter().peekable();
    for (index, directory) in nearest.found.iter().enumerate() {
        let Some(signature) = directory.signature else {
            return Err(Unsettled::Vanished {
                path: directory.path.clone(),
            });
        };
        let path = manifest.push_text(directory.path.as_os_str().as_bytes());
        let first = manifest.names.len();
        while let Some((_, name, seen)) = placed.next_if(|(at, ..)| *at == index) {
            let at = manifest.push_text(name.as_os_str().as_bytes());
            manifest.names.push(NameEntry { at, seen });
        }
        let unchanging = signature.is_older_than(now, DIRECTORY_SLACK_NS, now);
        let mut remembered = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let open = base.open_at(manifest.text_at(path), flags).ok()?;
            trust.of_names(&signature, &open)
        };
        let is_settled = unchanging && directory.sure || guards::is_off("settled-folders");
        let remembered = is_settled.then(&mut remembered).flatten();
        let settled = remembered.is_some();
        let signature = remembered.unwrap_or(signature);
        manifest.directories.push(DirectoryEntry {
            path,
            signature,
            settled,
            names: first..manifest.names.len(),
        });
    }
    Ok(refused)
}

/// Makes sure that a path is no file, and returns whether the signature of the directory proves that it stays absent; `None`
/// if this user may not look.
fn look_for(base: &Base, path: &Path) -> Result<Option<(NameSeen, bool)>, Unsettled> {
    let broken = |error: Errno| Unsettled::Unreadable {
        path: path.to_path_buf(),
        source: error.into(),
    };
    let appeared = || Unsettled::Appeared {
        path: path.to_path_buf(),
    };
    let text = CString::new(path.as_os_str().as_bytes()).map_err(|_| broken(Errno::INVAL))?;
    let mut is_link = false;
    let mut found = base.stat_link(&text);
    if found.as_ref().is_ok_and(Signature::is_link) {
        // A link's target can appear and disappear without a change of the link's directory.
        is_link = true;
        found = base.stat(&text);
    }
    match found {
        Err(error) if means_absent(error) => Ok(Some((NameSeen::Nothing, !is_link))),
        Err(error) if is_refusal(error) => Ok(None),
        Err(error) => Err(broken(error)),
        Ok(found) if found.is_directory() => Ok(Some((NameSeen::Folder, !is_link))),
        Ok(_) => Err(appeared()),
    }
}

/// Finds the directory that would have to change for a missing path to appear, and remembers it.
struct Nearest<'a> {
    base: &'a Base,
    found: Vec<NearestDirectory>,
    /// The index in `found` of each directory, existing or missing.
    known: HashMap<OsString, usize>,
}

struct NearestDirectory {
    path: PathBuf,
    /// `None` only if the base is missing: then no signature proves that a name stays absent.
    signature: Option<Signature>,
    /// Whether a new name would change this directory's own times.
    sure: bool,
}

impl Nearest<'_> {
    fn new(base: &Base) -> Nearest<'_> {
        Nearest {
            base,
            found: Vec::new(),
            known: HashMap::new(),
        }
    }

    fn directory_of(&mut self, path: &Path) -> usize {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.existing(parent),
            // This is "/" itself, or a plain name.
            _ if path.is_absolute() => self.existing(Path::new("/")),
            _ => self.existing(Path::new(".")),
        }
    }

    fn existing(&mut self, directory: &Path) -> usize {
        if let Some(index) = self.known.get(directory.as_os_str()) {
            return *index;
        }
        let text = CString::new(directory.as_os_str().as_bytes()).unwrap_or_default();
        let signature = self.base.stat(&text).ok().filter(Signature::is_directory);
        let top = directory == Path::new("/") || directory == Path::new(".");
        let index = if signature.is_some() || top {
            self.found.push(NearestDirectory {
                path: directory.to_path_buf(),
                signature,
                sure: true,
            });
            self.found.len() - 1
        } else {
            let index = self.directory_of(directory);
            // The target of a link, dangling or to a file, may change elsewhere.
            let link = self
                .base
                .stat_link(&text)
                .is_ok_and(|found| found.is_link());
            self.found[index].sure &= !link;
            index
        };
        self.known.insert(directory.as_os_str().to_owned(), index);
        index
    }
}
