//! A working directory with its path map: the start of relative paths, and the names that tools get.

use std::borrow::Cow;
use std::path::Path;

use crate::map::PathMap;
use crate::markers::rename_markers;

/// Between the working directory and a name that was relative to it, so that a message can have it back as it was.
const HERE: &[u8] = b"/./";

/// The working directory of a call or a step.
#[derive(Clone, Copy, Debug)]
pub struct WorkDir<'a> {
    /// The directory that relative paths start from.
    pub directory: &'a Path,
    /// Folders whose names do not count.
    pub path_map: &'a PathMap,
}

impl<'a> WorkDir<'a> {
    /// One where every folder's name counts.
    pub fn plain(directory: &'a Path) -> Self {
        Self {
            directory,
            path_map: PathMap::EMPTY,
        }
    }

    /// The directory's fixed name, if it is below a mapped folder.
    pub fn fixed_name(&self) -> Option<String> {
        let directory = self.directory.to_str()?;
        match self.path_map.fixed(directory) {
            Cow::Owned(fixed) => Some(fixed),
            Cow::Borrowed(_) => None,
        }
    }

    /// A preprocessed text whose line markers have fixed names. With `and_relative`, relative names become fixed ones too.
    pub fn fix_markers(&self, text: &[u8], and_relative: bool) -> Vec<u8> {
        let here = self.fixed_name().filter(|_| and_relative);
        rename_markers(text, &|path| match (path.first()?, &here) {
            (b'/', _) => Some(self.path_map.fixed_bytes(path)),
            (b'<', _) | (_, None) => None,
            (_, Some(here)) => Some([here.as_bytes(), HERE, path].concat().into()),
        })
    }

    /// A text whose line markers have real names again, and relative ones where they were relative.
    pub fn real_markers(&self, text: &[u8]) -> Vec<u8> {
        let here = self.prefix();
        rename_markers(text, &|path| {
            let relative = here.as_ref().and_then(|here| path.strip_prefix(&here[..]));
            match relative {
                Some(relative) => Some(relative.into()),
                None => self.path_map.real(path),
            }
        })
    }

    /// A tool's message with the real names of folders.
    pub fn real_message(&self, text: &[u8]) -> Vec<u8> {
        let Some(here) = self.prefix().filter(|_| !text.is_empty()) else {
            return self.path_map.real_text(text);
        };
        let mut out = Vec::with_capacity(text.len());
        let mut done = 0;
        for at in memchr::memmem::find_iter(text, &here) {
            out.extend_from_slice(&text[done..at]);
            done = at + here.len();
        }
        out.extend_from_slice(&text[done..]);
        self.path_map.real_text(&out)
    }

    /// The prefix of a name that was relative; `None` if the directory has no fixed name.
    fn prefix(&self) -> Option<Vec<u8>> {
        let here = self.fixed_name()?;
        Some([here.as_bytes(), HERE].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"# 1 \"a.cu\"\n# 1 \"<built-in>\"\n# 1 \"/w/clone/x.h\" 1\n# 1 \"/usr/y.h\" 1\n";

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn markers_go_there_and_back() {
        let map = PathMap::new([("1", "/w/clone")]);
        let at = WorkDir {
            directory: Path::new("/w/clone/build"),
            path_map: &map,
        };
        let fixed = at.fix_markers(TEXT, false);
        assert_eq!(
            text(fixed.clone()),
            "# 1 \"a.cu\"\n# 1 \"<built-in>\"\n# 1 \"/warpcc-base/1/x.h\" 1\n# 1 \"/usr/y.h\" 1\n"
        );
        assert_eq!(at.real_markers(&fixed), TEXT);
        let fixed = at.fix_markers(TEXT, true);
        assert!(text(fixed.clone()).starts_with("# 1 \"/warpcc-base/1/build/./a.cu\"\n# 1 \"<b"));
        assert_eq!(at.real_markers(&fixed), TEXT);
    }

    #[test]
    fn people_read_the_names_that_they_gave() {
        let map = PathMap::new([("1", "/w/clone")]);
        let at = |directory| WorkDir {
            directory: Path::new(directory),
            path_map: &map,
        };
        let said = b"/warpcc-base/1/build/./a.cu(3): see /warpcc-base/1/x.h";
        assert_eq!(
            text(at("/w/clone/build").real_message(said)),
            "a.cu(3): see /w/clone/x.h"
        );
        assert_eq!(
            text(at("/elsewhere").real_message(said)),
            "/w/clone/build/./a.cu(3): see /w/clone/x.h"
        );
        assert_eq!(WorkDir::plain(Path::new("/w")).real_message(said), said);
    }
}
