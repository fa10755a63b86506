//! What is known of a preprocessed text without its lines, and whether a result that was made from such a text may be used.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use warpcc_plan::{FileId, Step};

use crate::conditions::Conditions;
use crate::context::RunContext;
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
    let main = queried_lines::main_file(&text);
    let files = queried_lines::files(&text)?;
    Some(files.iter().map(|file| group_of(file, main)).collect())
}

/// What a result that may be used for any lines depends on, besides files.
#[derive(Serialize, Deserialize)]
pub struct AnyLinesConditions {
    /// The conditions under which the exact text has this result.
    pub conditions: Conditions,
    /// The layout of each preprocessed text, if it asks for lines.
    layouts: Vec<Option<TextLayout>>,
}

impl AnyLinesConditions {
    /// Adds the layouts of a step's texts to the conditions of its result; `None` if a text cannot be read.
    pub fn of(run: &RunContext<'_>, step: &Step, conditions: Conditions) -> Option<Self> {
        let layout = |id| {
            let text = run.artifacts.lineless(id).ok()??;
            Some(text.layout.clone())
        };
        let layouts = texts(run, step).map(layout).collect::<Option<_>>()?;
        Some(Self {
            conditions,
            layouts,
        })
    }

    /// Whether the texts of a step suit those that the result was made from.
    pub fn suit(&self, run: &RunContext<'_>, step: &Step) -> bool {
        let suits = |(id, made): (FileId, &Option<TextLayout>)| {
            let text = run.artifacts.lineless(id).ok().flatten();
            text.is_some_and(|text| text.suits(made.as_ref(), run.artifacts.path(id)))
        };
        texts(run, step).count() == self.layouts.len()
            && texts(run, step).zip(&self.layouts).all(suits)
    }

    /// The conditions as bytes, for a record.
    pub fn encode(&self) -> Vec<u8> {
        // These types cannot fail to serialise. If they did, the empty text would be a condition that never holds.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The conditions from a record; `None` if the bytes are not conditions.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes(bytes) {
            Ok((conditions, [])) => Some(conditions),
            Ok(_) | Err(_) => None,
        }
    }
}

fn texts<'a>(run: &'a RunContext<'_>, step: &'a Step) -> impl Iterator<Item = FileId> + 'a {
    let reads = step.reads.iter().copied();
    reads.filter(|&id| run.artifacts.is_preprocessed(id))
}
