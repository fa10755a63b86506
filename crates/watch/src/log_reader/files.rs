//! Notes what was done to files.

use std::path::Path;

use super::Reader;
use crate::log::{Access, Identity, PathEvent, Way};
use crate::observed::Observed;
use crate::path_text::PathText;

impl Reader<'_> {
    /// Handles a file that was opened or looked at.
    pub fn file(&mut self, owner: u32, access: Access, identity: Identity, path: PathText) {
        let Some(image) = self.images.get_mut(&owner) else {
            return;
        };
        let is_known = image.known;
        if access == Access::Looked && is_known {
            let looked = &mut self.observed.looked_by_known;
            looked.entry(path.clone()).or_insert(identity);
            self.found(path, true);
            return;
        }
        if access == Access::Read && !is_known {
            let readers = self.observed.texts.entry(path.clone()).or_default();
            readers.insert(image.program.clone());
        }
        if access == Access::Written {
            let writers = self.observed.writers.entry(path.clone());
            writers.or_insert_with(|| image.program.clone());
            if image.cwd.as_os_str() != self.base.as_os_str() {
                self.observed.written_elsewhere.insert(path.clone());
            }
        }
        self.opened(access, identity, path);
    }

    /// Handles a path without an identity.
    pub fn path(&mut self, owner: u32, kind: PathEvent, path: PathText) {
        let Some(image) = self.images.get_mut(&owner) else {
            return;
        };
        let is_known = image.known;
        let program = &image.program;
        let paths = match kind {
            PathEvent::Found => return self.found(path, is_known),
            PathEvent::Listed => &mut self.observed.listed,
            PathEvent::Missing => &mut self.observed.missing,
            PathEvent::Nothing => &mut self.observed.nothing,
            PathEvent::Pointed => {
                self.observed.links_made.insert(path, program.clone());
                return;
            }
            PathEvent::Removed => {
                let writers = self.observed.writers.entry(path.clone());
                writers.or_insert_with(|| program.clone());
                &mut self.observed.removed
            }
        };
        paths.insert(path);
    }

    /// Handles a file that exists and was looked at. `is_known`: the program is one for which `known` holds.
    fn found(&mut self, path: PathText, is_known: bool) {
        let Observed {
            found,
            found_by_strangers,
            ..
        } = &mut self.observed;
        if is_known {
            found_by_strangers.remove(path.as_os_str());
        } else if !found.contains(path.as_os_str()) {
            found_by_strangers.insert(path.clone());
        }
        found.insert(path);
    }

    fn opened(&mut self, access: Access, identity: Identity, path: PathText) {
        let files = match access {
            Access::Library => &mut self.observed.libraries,
            Access::Read => &mut self.observed.read,
            Access::Looked => {
                self.found(path.clone(), false);
                &mut self.observed.looked
            }
            Access::Written => {
                self.observed.written.insert(path, identity);
                return;
            }
        };
        let known = files.entry(path.clone()).or_insert(identity);
        // An `open` that returned no file leaves an unknown identity.
        if known.mode == 0 {
            *known = identity;
        } else if *known != identity
            && identity.mode != 0
            && !self.observed.written.contains_key(path.as_os_str())
        {
            self.untracked(|| format!("{} changed while it was in use", path.display()));
        }
    }

    /// Handles how a path may be used.
    pub fn may_use(&mut self, errors: [u8; 4], path: PathText) {
        let known = self.observed.permissions.entry(path.clone());
        if *known.or_insert(errors) != errors {
            self.untracked(|| format!("the permissions of {} changed", path.display()));
        }
    }

    pub fn led(&mut self, way: Way, from: PathText, to: &Path) {
        let (texts, what) = match way {
            Way::Link => (&mut self.observed.links, "link"),
            Way::Resolved => (&mut self.observed.resolved, "path"),
            Way::Text => (&mut self.observed.kernel_texts, "text of"),
        };
        let known = texts.entry(from.clone()).or_insert_with(|| to.to_owned());
        // `/proc/self` differs for each process.
        if known != to && (way == Way::Text || !from.starts_with("/proc")) {
            self.untracked(|| format!("the {what} {} changed while it was in use", from.display()));
        }
    }
}
