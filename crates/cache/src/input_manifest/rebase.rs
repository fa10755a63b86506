//! An input manifest whose paths below a root are kept under the root's fixed name, and back to where the root is now.

use std::borrow::Cow;

use super::{InputManifest, Span};
use crate::roots::Roots;

impl InputManifest {
    /// With paths below a root under its fixed name, as it is stored.
    pub(crate) fn fixed(&self, roots: &Roots) -> InputManifest {
        let mut fixed = match self.renamed(|path| Some(roots.fixed_bytes(path))) {
            Some(fixed) => fixed,
            None => return self.clone(),
        };
        // In one order whatever the folder is called, so that two that saw the same have one identity.
        let text = std::mem::take(&mut fixed.text);
        let at = |span: Span| text.get(span.at as usize..).unwrap_or_default();
        fixed.files.sort_by(|a, b| at(a.path).cmp(at(b.path)));
        fixed.directories.sort_by(|a, b| at(a.path).cmp(at(b.path)));
        fixed
            .facts
            .sort_by(|a, b| (at(a.path), a.fact).cmp(&(at(b.path), b.fact)));
        fixed.text = text;
        fixed
    }

    /// With fixed names replaced by where their roots are now; `None` when it has one that there is no root for.
    pub(crate) fn real(&self, roots: &Roots) -> Option<InputManifest> {
        self.renamed(|path| roots.real(path))
    }

    /// Every file and directory under the name that `name` gives; absent names stay as they are, below their directory.
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
                // A name may be a whole path, where its directory is not its beginning.
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
