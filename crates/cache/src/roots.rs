//! Folders whose names do not count: paths below them are kept under a fixed name, so that a result made in one
//! folder is good in another.
//!
//! `/home/a/clone/src/x.cu` with the root `/home/a/clone` named `1` is `/warpcc-base/1/src/x.cu`. Both directions are
//! done on paths and on text; a name ends where a component of a path ends.

use std::borrow::Cow;

use crate::key::{Hashing, Key, KeySink};

/// Where named roots seem to be. Nothing real may be there: who has such a folder has no roots.
pub const BASE: &str = "/warpcc-base/";

/// A folder and its fixed name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Root {
    /// Without a slash at the end.
    folder: String,
    /// [`BASE`] and the name.
    marker: String,
}

/// The folders whose names do not count, none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots(Vec<Root>);

impl Roots {
    /// From names and folders. A folder is passed over when it is the root of the file system, when its name has
    /// characters that tools would quote or that a prefix map cannot hold, or when it is there under another name
    /// already. Of two folders under one name the first is that which texts are given back with; the others are other
    /// spellings of it.
    pub fn new<'a>(named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut roots: Vec<Root> = Vec::new();
        for (name, folder) in named {
            let folder = folder.trim_end_matches('/');
            let plain = |c: char| c.is_ascii_graphic() && !"\"\\=,:$`'".contains(c);
            let is_new = !roots.iter().any(|r| r.folder == folder);
            if is_new && folder.starts_with('/') && folder.chars().all(plain) {
                roots.push(Root {
                    folder: folder.to_owned(),
                    marker: format!("{BASE}{name}"),
                });
            }
        }
        Self(roots)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every folder with its fixed name, from the outermost to the innermost: where gcc's prefix maps are concerned,
    /// the last one that fits counts.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        let mut pairs: Vec<_> = self.0.iter().map(|r| (&*r.folder, &*r.marker)).collect();
        pairs.sort_by_key(|(folder, _)| folder.len());
        pairs
    }

    /// The fixed names that there are, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.iter().map(|r| &r.marker[BASE.len()..]).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// A path under its fixed name, if it is below a root.
    pub fn fixed<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match self.innermost(path.as_bytes()) {
            Some(root) => format!("{}{}", root.marker, &path[root.folder.len()..]).into(),
            None => path.into(),
        }
    }

    /// The same for a path that need not be UTF-8.
    pub fn fixed_bytes<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        match self.innermost(path) {
            Some(root) => [root.marker.as_bytes(), &path[root.folder.len()..]]
                .concat()
                .into(),
            None => path.into(),
        }
    }

    /// Where a path under a fixed name really is; `None` for a name that there is no root for.
    pub fn real<'a>(&self, path: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if !path.starts_with(BASE.as_bytes()) {
            return Some(path.into());
        }
        let root = self
            .0
            .iter()
            .find(|root| is_below(path, root.marker.as_bytes()))?;
        let rest = &path[root.marker.len()..];
        Some([root.folder.as_bytes(), rest].concat().into())
    }

    /// Text with every path below a root under its fixed name.
    pub fn fix_text(&self, text: &[u8]) -> Vec<u8> {
        let swaps = self.0.iter().map(|r| (&*r.folder, &*r.marker));
        replace_all(text, swaps.collect())
    }

    /// Text with the real folders in place of their fixed names.
    pub fn real_text(&self, text: &[u8]) -> Vec<u8> {
        let mut swaps: Vec<(&str, &str)> = Vec::new();
        for root in &self.0 {
            if swaps.iter().all(|(marker, _)| *marker != root.marker) {
                swaps.push((&root.marker, &root.folder));
            }
        }
        replace_all(text, swaps)
    }

    /// Whether a root's real name stands anywhere in `bytes`.
    pub fn stand_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|root| {
            let folder = root.folder.as_bytes();
            memchr::memmem::find_iter(bytes, folder)
                .any(|at| ends_component(bytes.get(at + folder.len())))
        })
    }

    /// The key under which a result is kept that holds a real name after all: it is good in these folders alone.
    pub fn bound(&self, key: &Key, directory: &[u8]) -> Key {
        let mut sink = Hashing::new("warpcc bound 1");
        sink.part("key", &key.0);
        sink.part("directory", directory);
        for root in &self.0 {
            sink.part(&root.marker, root.folder.as_bytes());
        }
        sink.finish()
    }

    fn innermost(&self, path: &[u8]) -> Option<&Root> {
        let below = self
            .0
            .iter()
            .filter(|root| is_below(path, root.folder.as_bytes()));
        below.max_by_key(|root| root.folder.len())
    }
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.starts_with(folder) && matches!(path.get(folder.len()), None | Some(b'/'))
}

/// Whether a component of a path may end before `next`.
fn ends_component(next: Option<&u8>) -> bool {
    !next.is_some_and(|b| b.is_ascii_alphanumeric() || b"_-.+~%@".contains(b))
}

/// Whether a path may begin behind `before`: `/x/home/a` is not `/home/a`, but `-I/home/a` is.
fn begins_path(before: &[u8]) -> bool {
    let word = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || b"_-.+~%@/".contains(b));
    !word.into_iter().any(|b| b"/~".contains(b)) && before.last() != Some(&b'.')
}

/// Replaces the longest of `swaps` at every place where one stands as a whole path or the beginning of one.
fn replace_all(text: &[u8], mut swaps: Vec<(&str, &str)>) -> Vec<u8> {
    swaps.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    let mut hits: Vec<(usize, usize)> = Vec::new();
    for (which, (from, _)) in swaps.iter().enumerate() {
        let from = from.as_bytes();
        hits.extend(
            memchr::memmem::find_iter(text, from)
                .filter(|at| ends_component(text.get(at + from.len())) && begins_path(&text[..*at]))
                .map(|at| (at, which)),
        );
    }
    // At one place the longest, which is the first, counts.
    hits.sort_unstable();
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for (at, which) in hits {
        if at < done {
            continue;
        }
        let (from, to) = swaps[which];
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(to.as_bytes());
        done = at + from.len();
    }
    out.extend_from_slice(&text[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> Roots {
        Roots::new([
            ("1", "/w/clone"),
            ("2", "/w/clone/build/"),
            ("1", "/real/clone"),
        ])
    }

    #[test]
    fn the_innermost_root_counts() {
        let roots = roots();
        for (real, fixed) in [
            ("/w/clone/src/a.cu", "/warpcc-base/1/src/a.cu"),
            ("/w/clone", "/warpcc-base/1"),
            ("/w/clone/build/x.h", "/warpcc-base/2/x.h"),
            ("/real/clone/x.h", "/warpcc-base/1/x.h"),
            ("/w/clones/x.h", "/w/clones/x.h"),
            ("src/a.cu", "src/a.cu"),
        ] {
            assert_eq!(roots.fixed(real), fixed);
            assert_eq!(&*roots.fixed_bytes(real.as_bytes()), fixed.as_bytes());
        }
        assert_eq!(
            roots.real(b"/warpcc-base/1/x").as_deref(),
            Some(&b"/w/clone/x"[..])
        );
        assert_eq!(roots.real(b"/warpcc-base/10/x"), None);
        assert_eq!(roots.real(b"/usr/x").as_deref(), Some(&b"/usr/x"[..]));
    }

    #[test]
    fn texts_go_there_and_back() {
        let roots = roots();
        let text: &[u8] =
            b"/w/clone/a.cu(3): error: \"/w/clone/build/b\" -I/w/clone, /x/w/clone/y /w/clone2";
        let fixed = roots.fix_text(text);
        assert_eq!(
            String::from_utf8_lossy(&fixed),
            "/warpcc-base/1/a.cu(3): error: \"/warpcc-base/2/b\" -I/warpcc-base/1, /x/w/clone/y /w/clone2"
        );
        assert_eq!(roots.real_text(&fixed), text);
        assert!(roots.stand_in(text) && !roots.stand_in(b"/w/clone2/x /warpcc-base/1"));
    }

    #[test]
    fn folders_that_cannot_be_named_are_none() {
        for folder in ["/", "relative", "/with space", "/with\"quote", "/a=b", "/é"] {
            assert!(Roots::new([("1", folder)]).is_empty(), "{folder}");
        }
    }
}
