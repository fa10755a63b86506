//! An image as it is kept, in folders, shared caches and packs.

use std::sync::Arc;

use crate::compiler::Compiled;
use crate::target::Target;

/// An image and what belongs to it, as it is kept.
pub(crate) struct PackedImage {
    pub image: Arc<[u8]>,
    /// Target, names and log: [`Details`].
    pub details: Vec<u8>,
}

/// Target, names, log: postcard's encoding of a tuple, behind the version of that.
pub(crate) type Details = (u32, String, Vec<(String, String)>, String);
pub(crate) const DETAILS: u32 = 1;

pub(crate) fn closed(compiled: &Compiled) -> PackedImage {
    let details: Details = (
        DETAILS,
        compiled.target.to_string(),
        compiled.lowered.clone(),
        compiled.log.clone(),
    );
    PackedImage {
        image: compiled.image.clone(),
        // Numbers and texts can always be written.
        details: postcard::to_allocvec(&details).unwrap_or_default(),
    }
}

/// Decodes a stored entry; `None` if it is not valid.
pub(crate) fn opened(kept: &PackedImage) -> Option<Compiled> {
    let read = postcard::take_from_bytes::<Details>(&kept.details);
    let Ok(((DETAILS, target, lowered, log), [])) = read else {
        return None;
    };
    let target: Target = target.parse().ok()?;
    if kept.image.is_empty() {
        return None;
    }
    Some(Compiled {
        target,
        image: kept.image.clone(),
        lowered,
        log,
    })
}

/// Reads what another process or machine kept. For fuzzing: whatever the bytes, it answers.
pub fn read_entry(image: &[u8], details: &[u8]) -> Option<Compiled> {
    opened(&PackedImage {
        image: image.into(),
        details: details.to_vec(),
    })
}
