//! The conditions, besides files, under which a result may be used for texts with other lines.

use serde::{Deserialize, Serialize};
use warpcc_plan::{FileId, Step};

use crate::conditions::{self, Conditions};
use crate::context::RunContext;
use crate::text_layout::TextLayout;

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
        conditions::encode(self)
    }

    /// The conditions from a record; `None` if the bytes are not conditions.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        conditions::decode(bytes)
    }
}

fn texts<'a>(run: &'a RunContext<'_>, step: &'a Step) -> impl Iterator<Item = FileId> + 'a {
    let reads = step.reads.iter().copied();
    reads.filter(|&id| run.artifacts.is_preprocessed(id))
}
