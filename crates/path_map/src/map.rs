//! The map itself: folders with their fixed names, and both directions on paths and on text.
//!
//! `/home/a/clone/src/x.cu` with the folder `/home/a/clone` named `1` is `/warpcc-base/1/src/x.cu`. A name ends where a
//! component of a path ends.

use std::borrow::Cow;
use std::ops::Range;

use crate::text::{ends_component, replace_all};

/// The folder that fixed names begin with. On a machine where it really exists, there is no map.
pub const BASE: &str = "/warpcc-base/";

/// A folder and its fixed name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapped {
    /// Without a slash at the end.
    folder: String,
    /// [`BASE`] and the name.
    marker: String,
    /// It is a single file. Nothing is below it, and it may lie anywhere.
    is_file: bool,
}

/// The folders whose names do not count; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMap(Vec<Mapped>);

impl PathMap {
    /// Without any folder.
    pub const EMPTY: &'static Self = &Self(Vec::new());

    /// From names and folders. A folder is passed over when it is the root of the file system, when its name has
    /// characters that tools would quote or that a prefix map cannot hold, or when it is there under another name
    /// already. Of two folders under one name the first is that which texts are given back with; the others are other
    /// spellings of it.
    pub fn new<'a>(named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut map = Self::default();
        for (name, folder) in named {
            map.add(name, folder.trim_end_matches('/'), false);
        }
        map
    }

    /// The map with files whose names do not count either, wherever they lie.
    #[must_use]
    pub fn with_files<'a>(mut self, named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        for (name, file) in named {
            self.add(name, file, true);
        }
        self
    }

    fn add(&mut self, name: &str, path: &str, is_file: bool) {
        let plain = |c: char| c.is_ascii_graphic() && !"\"\\=,:$`'".contains(c);
        let is_new = !self.0.iter().any(|m| m.folder == path);
        if is_new && path.starts_with('/') && path.chars().all(plain) {
            self.0.push(Mapped {
                folder: path.to_owned(),
                marker: format!("{BASE}{name}"),
                is_file,
            });
        }
    }

    /// Whether every folder's name counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every folder with its fixed name, from the outermost to the innermost: where gcc's prefix maps are concerned,
    /// the last one that fits counts.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        let mut pairs: Vec<_> = self.0.iter().map(|m| (&*m.folder, &*m.marker)).collect();
        pairs.sort_by_key(|(folder, _)| folder.len());
        pairs
    }

    /// All fixed names, in the form that keys hold.
    pub fn names(&self) -> String {
        let mut names: Vec<_> = self.0.iter().map(|m| &m.marker[BASE.len()..]).collect();
        names.sort_unstable();
        names.dedup();
        names.join(" ")
    }

    /// Folders inside others, each with its place there: `2=1/build`. A path below such a one has two names, and is kept under the
    /// inner one. Where the places are the same, so are the files behind both.
    pub fn nesting(&self) -> Vec<String> {
        let mut places: Vec<_> = self
            .nested()
            .map(|(inner, outer)| {
                let name = |mapped: &Mapped| mapped.marker[BASE.len()..].to_owned();
                let place = &inner.folder[outer.folder.len()..];
                format!("{}={}{place}", name(inner), name(outer))
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The last component of each folder inside another: a path from the outer to the inner one contains it.
    pub fn nested_components(&self) -> impl Iterator<Item = &str> {
        let names = self
            .nested()
            .map(|(inner, _)| inner.folder.rsplit('/').next());
        names.flatten()
    }

    /// Folders inside others that have another name.
    fn nested(&self) -> impl Iterator<Item = (&Mapped, &Mapped)> {
        let folders = || self.0.iter().filter(|mapped| !mapped.is_file);
        folders().flat_map(move |inner| {
            let is_outer = |outer: &&Mapped| {
                outer.marker != inner.marker
                    && is_below(inner.folder.as_bytes(), outer.folder.as_bytes())
            };
            folders()
                .filter(is_outer)
                .map(move |outer| (inner, outer))
                .collect::<Vec<_>>()
        })
    }

    /// Every fixed name with the real one, in the order given: the parts of a key that counts for these folders alone.
    pub fn key_parts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let parts = self.0.iter();
        parts.map(|m| (&*m.marker, m.folder.as_bytes()))
    }

    /// The folders, without the files.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.0.iter().filter(|mapped| !mapped.is_file);
        folders.map(|mapped| &*mapped.folder)
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.0.iter().filter(|mapped| mapped.is_file);
        files.map(|mapped| &*mapped.folder)
    }

    /// A path under its fixed name, if it is below a mapped folder.
    pub fn fixed<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match self.innermost(path.as_bytes()) {
            Some(mapped) => format!("{}{}", mapped.marker, &path[mapped.folder.len()..]).into(),
            None => path.into(),
        }
    }

    /// The same for a path that need not be UTF-8.
    pub fn fixed_bytes<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        match self.innermost(path) {
            Some(mapped) => [mapped.marker.as_bytes(), &path[mapped.folder.len()..]]
                .concat()
                .into(),
            None => path.into(),
        }
    }

    /// A list of paths, as variables have them, each under its fixed name.
    pub fn fixed_list<'a>(&self, list: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return list.into();
        }
        let parts = list.split(|b| *b == b':').map(|p| self.fixed_bytes(p));
        parts.collect::<Vec<_>>().join(&b':').into()
    }

    /// The real path for one with a fixed name; `None` if no folder here has that name.
    pub fn real<'a>(&self, path: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if !path.starts_with(BASE.as_bytes()) {
            return Some(path.into());
        }
        let mapped = self
            .0
            .iter()
            .find(|mapped| is_below(path, mapped.marker.as_bytes()))?;
        let rest = &path[mapped.marker.len()..];
        Some([mapped.folder.as_bytes(), rest].concat().into())
    }

    /// Text with every path below a mapped folder under its fixed name.
    pub fn fix_text(&self, text: &[u8]) -> Vec<u8> {
        let swaps = self.0.iter().map(|m| (&*m.folder, &*m.marker));
        replace_all(text, swaps.collect())
    }

    /// Text with the real folders in place of their fixed names.
    pub fn real_text(&self, text: &[u8]) -> Vec<u8> {
        let mut swaps: Vec<(&str, &str)> = Vec::new();
        for mapped in &self.0 {
            if swaps.iter().all(|(marker, _)| *marker != mapped.marker) {
                swaps.push((&mapped.marker, &mapped.folder));
            }
        }
        replace_all(text, swaps)
    }

    /// Whether `bytes` contain a folder's real name.
    pub fn is_named_in(&self, bytes: &[u8]) -> bool {
        self.places_in(bytes).next().is_some()
    }

    /// The places of folders' real names in `bytes`.
    pub fn places_in<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
        self.0.iter().flat_map(move |mapped| {
            let folder = mapped.folder.as_bytes();
            memchr::memmem::find_iter(bytes, folder)
                .map(move |at| at..at + folder.len())
                .filter(|place| ends_component(bytes.get(place.end)))
        })
    }

    fn innermost(&self, path: &[u8]) -> Option<&Mapped> {
        let below = self
            .0
            .iter()
            .filter(|mapped| is_below(path, mapped.folder.as_bytes()));
        below.max_by_key(|mapped| mapped.folder.len())
    }
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.starts_with(folder) && matches!(path.get(folder.len()), None | Some(b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> PathMap {
        PathMap::new([
            ("1", "/w/clone"),
            ("2", "/w/clone/build/"),
            ("1", "/real/clone"),
        ])
    }

    #[test]
    fn the_innermost_folder_counts() {
        let map = map();
        for (real, fixed) in [
            ("/w/clone/src/a.cu", "/warpcc-base/1/src/a.cu"),
            ("/w/clone", "/warpcc-base/1"),
            ("/w/clone/build/x.h", "/warpcc-base/2/x.h"),
            ("/real/clone/x.h", "/warpcc-base/1/x.h"),
            ("/w/clones/x.h", "/w/clones/x.h"),
            ("src/a.cu", "src/a.cu"),
        ] {
            assert_eq!(map.fixed(real), fixed);
            assert_eq!(&*map.fixed_bytes(real.as_bytes()), fixed.as_bytes());
        }
        assert_eq!(
            map.real(b"/warpcc-base/1/x").as_deref(),
            Some(&b"/w/clone/x"[..])
        );
        assert_eq!(map.real(b"/warpcc-base/10/x"), None);
        assert_eq!(map.real(b"/usr/x").as_deref(), Some(&b"/usr/x"[..]));
    }

    #[test]
    fn texts_go_there_and_back() {
        let map = map();
        let text: &[u8] =
            b"/w/clone/a.cu(3): error: \"/w/clone/build/b\" -I/w/clone, /x/w/clone/y /w/clone2";
        let fixed = map.fix_text(text);
        assert_eq!(
            String::from_utf8_lossy(&fixed),
            "/warpcc-base/1/a.cu(3): error: \"/warpcc-base/2/b\" -I/warpcc-base/1, /x/w/clone/y /w/clone2"
        );
        assert_eq!(map.real_text(&fixed), text);
        assert!(map.is_named_in(text) && !map.is_named_in(b"/w/clone2/x /warpcc-base/1"));
    }

    #[test]
    fn each_path_of_a_list_has_its_fixed_name() {
        let list: &[u8] = b"/w/clone/lib::/usr/lib:/w/clone/build";
        let fixed = map().fixed_list(list).into_owned();
        assert_eq!(
            String::from_utf8_lossy(&fixed),
            "/warpcc-base/1/lib::/usr/lib:/warpcc-base/2"
        );
        assert_eq!(&*PathMap::EMPTY.fixed_list(list), list);
    }

    #[test]
    fn keys_have_names_in_order_and_folders_as_given() {
        assert_eq!(map().names(), "1 2");
        assert_eq!(map().nesting(), ["2=1/build"]);
        assert_eq!(map().nested_components().collect::<Vec<_>>(), ["build"]);
        let apart = PathMap::new([("1", "/w/clone"), ("2", "/w/build")]);
        let apart = apart.with_files([("source.cu", "/w/clone/a.cu")]);
        assert!(apart.nesting().is_empty());
        assert_eq!(apart.names(), "1 2 source.cu");
        assert_eq!(apart.fixed("/w/clone/a.cu"), "/warpcc-base/source.cu");
        let parts: Vec<_> = map()
            .key_parts()
            .map(|(name, folder)| format!("{name} {}", String::from_utf8_lossy(folder)))
            .collect();
        assert_eq!(
            parts,
            [
                "/warpcc-base/1 /w/clone",
                "/warpcc-base/2 /w/clone/build",
                "/warpcc-base/1 /real/clone"
            ]
        );
    }

    #[test]
    fn folders_that_cannot_be_named_are_none() {
        for folder in ["/", "relative", "/with space", "/with\"quote", "/a=b", "/é"] {
            assert!(PathMap::new([("1", folder)]).is_empty(), "{folder}");
        }
    }
}
