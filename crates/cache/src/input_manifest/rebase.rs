//! Replaces paths below mapped folders in an input manifest by fixed names, and fixed names by the present paths.

use std::borrow::Cow;

use warpcc_path_map::PathMap;

use super::{InputManifest, Span};

impl InputManifest {
    /// The manifest with fixed names for paths below mapped folders, as it is stored.
    pub(crate) fn fixed(&self, path_map: &PathMap) -> Cow<'_, InputManifest> {
        if path_map.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut fixed = match self.renamed(|path| Some(path_map.fixed_bytes(path))) {
            Some(fixed) => fixed,
            None => return Cow::Borrowed(self),
        };
        // The order must not depend on the folder's name, so that two runs that saw the same have one identity.
        let text = std::mem::take(&mut fixed.text);
        let at = |span: Span| text.get(span.at as usize..).unwrap_or_default();
        fixed.files.sort_by(|a, b| at(a.path).cmp(at(b.path)));
        fixed.directories.sort_by(|a, b| at(a.path).cmp(at(b.path)));
        fixed
            .facts
            .sort_by(|a, b| (at(a.path), a.fact).cmp(&(at(b.path), b.fact)));
        fixed.text = text;
        Cow::Owned(fixed)
    }

    /// A manifest from a record, with the present paths; `None` if it contains a fixed name that belongs to no folder here.
    pub fn real(self, path_map: &PathMap) -> Option<InputManifest> {
        match path_map.is_empty() {
            true => Some(self),
            false => self.renamed(|path| path_map.real(path)),
        }
    }

    /// The manifest with every file and directory renamed by `name`. Absent names stay as they are, below their directory.
    fn renamed<'a>(
        &'a self,
        name: impl Fn(&'a [u8]) -> Option<Cow<'a, [u8]>>,
    ) -> Option<InputManifest> {
        let mut new = InputManifest {
            text: Vec::with_capacity(self.text.len()),
            ..InputManifest::default()
        };
        for file in &self.files {
            let path = new.push_text(&name(self.bytes_at(file.path))?);
            let resolved = match file.resolved {
                Some(resolved) if resolved == file.path => Some(path),
                Some(resolved) => Some(new.push_text(&name(self.bytes_at(resolved))?)),
                None => None,
            };
            new.files.push(super::FileEntry {
                path,
                resolved,
                ..file.clone()
            });
        }
        for directory in &self.directories {
            let mut directory = directory.clone();
            directory.path = new.push_text(&name(self.bytes_at(directory.path))?);
            let first = new.names.len();
            for seen in &self.names[directory.names.clone()] {
                // An absent name may be a whole path, if its directory is not its beginning.
                let at = new.push_text(&name(self.bytes_at(seen.at))?);
                new.names.push(super::NameEntry { at, ..*seen });
            }
            directory.names = first..new.names.len();
            new.directories.push(directory);
        }
        for entry in &self.facts {
            let path = new.push_text(&name(self.bytes_at(entry.path))?);
            let text = new.push_text(&name(self.bytes_at(entry.text))?);
            new.facts.push(super::FactEntry {
                path,
                text,
                ..*entry
            });
        }
        Some(new)
    }
}
