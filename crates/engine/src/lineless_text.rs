//! What is known of a preprocessed text without its lines, and whether a result that was made from such a text may be used.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use crate::pieces;
use crate::queried_lines;
use crate::text_layout::{TextLayout, group_of};

/// A preprocessed text without its lines.
pub struct LinelessText {
    /// The BLAKE3 of its tokens.
    pub hash: [u8; 32],
    /// Where the tokens stand, if the text asks for lines.
    pub layout: Option<TextLayout>,
    /// The groups of files whose lines count, once they are needed; `None` if it may be all.
    asked: OnceLock<Option<BTreeSet<usize>>>,
}

impl LinelessText {
    pub fn new(hash: [u8; 32], layout: Option<TextLayout>) -> Self {
        Self {
            hash,
            layout,
            asked: OnceLock::new(),
        }
    }

    /// Whether the result of a text with the same tokens and that layout is also the result of this one. `path` is the text.
    pub fn suits(&self, made: Option<&TextLayout>, path: &Path) -> bool {
        let (Some(made), Some(here)) = (made, &self.layout) else {
            // A text with the same tokens asks too.
            return made.is_none() && self.layout.is_none();
        };
        let differing = here.differing(made);
        if differing.is_empty() {
            return true;
        }
        let asked = self.asked.get_or_init(|| asked_groups(path));
        (asked.as_ref()).is_some_and(|asked| differing.iter().all(|group| !asked.contains(group)))
    }
}

fn asked_groups(path: &Path) -> Option<BTreeSet<usize>> {
    let text = pieces::read_whole(path).ok()?;
    let main = queried_lines::main_file(&text)?;
    let files = queried_lines::files(&text)?;
    Some(files.iter().map(|file| group_of(file, main)).collect())
}
