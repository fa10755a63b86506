//! An image as a record of a cache's folder: one output, and the details that an [`entry`](crate::entry) has.

use std::path::Path;
use std::time::Duration;

use warpcc_cache::{
    DiskStore, InputManifest, Key, Level, Lookup, Outcome, Packing, ProducedFile, StoreError,
    foreign,
};

use crate::entry::{DETAILS, Details, PackedImage};

/// The role of the one output of a record.
const IMAGE: &str = "image";

/// Stores an image that took this long to make.
pub(crate) fn put(
    store: &DiskStore,
    key: &Key,
    kept: &PackedImage,
    took: Duration,
) -> Result<(), StoreError> {
    let output = ProducedFile {
        role: IMAGE.to_owned(),
        digest: store.put_bytes(&kept.image, Packing::Plain)?,
        executable: false,
    };
    let outcome = Outcome {
        outputs: vec![output],
        extra: kept.details.clone(),
        micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        ..Outcome::default()
    };
    store.store(Level::Kernels, key, &InputManifest::default(), &outcome)
}

/// The entry of a folder under `key`. The error says, for the user, why the folder cannot be read.
pub(crate) fn stored(store: &DiskStore, key: &Key) -> Result<Option<PackedImage>, String> {
    let outcome = match store.look_up(Level::Kernels, key, Path::new("/")) {
        Lookup::Hit(outcome, _) => outcome,
        Lookup::Miss(warpcc_cache::LookupMiss::Unreadable(error)) => {
            return Err(with_source(&error));
        }
        Lookup::Miss(_) => return Ok(None),
    };
    let Some(output) = outcome.outputs.iter().find(|output| output.role == IMAGE) else {
        return Ok(None);
    };
    let image = store
        .get_bytes(&output.digest)
        .map_err(|error| with_source(&error))?;
    Ok(image.map(|image| PackedImage {
        image: image.into(),
        details: outcome.extra,
    }))
}

/// Whether a result from elsewhere is one kernel and nothing else; its log is made fit to be shown.
pub(crate) fn vetted(outcome: &mut Outcome) -> bool {
    let [output] = &outcome.outputs[..] else {
        return false;
    };
    let is_image =
        output.role == IMAGE && !output.executable && output.digest.size <= foreign::LARGEST_PART;
    let read = postcard::take_from_bytes::<Details>(&outcome.extra);
    let Ok(((version @ DETAILS, target, lowered, log), [])) = read else {
        return false;
    };
    let shown = foreign::shown(log.as_bytes());
    // The changed characters are ASCII.
    let log = String::from_utf8(shown).unwrap_or_default();
    let details: Details = (version, target, lowered, log);
    outcome.extra = postcard::to_allocvec(&details).unwrap_or_default();
    outcome.stdout.clear();
    outcome.stderr.clear();
    is_image
}

/// The text of an error and of its cause.
pub(crate) fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(roles: &[(&str, u64, bool)], log: &str) -> Outcome {
        let output = |(role, size, executable): &(&str, u64, bool)| ProducedFile {
            role: (*role).to_owned(),
            digest: warpcc_cache::Digest {
                hash: [7; 32],
                size: *size,
            },
            executable: *executable,
        };
        let details: Details = (DETAILS, "sm_80".to_owned(), Vec::new(), log.to_owned());
        Outcome {
            outputs: roles.iter().map(output).collect(),
            extra: postcard::to_allocvec(&details).expect("details"),
            ..Outcome::default()
        }
    }

    #[test]
    fn from_elsewhere_comes_one_kernel_and_text() {
        let mut good = outcome(&[(IMAGE, 9, false)], "warning \u{1b}[2J\n");
        assert!(vetted(&mut good));
        let (details, _) = postcard::take_from_bytes::<Details>(&good.extra).expect("details");
        assert_eq!(details.3, "warning \\x1b[2J\n");
        for wrong in [
            &[][..],
            &[("other", 9, false)],
            &[(IMAGE, 9, true)],
            &[(IMAGE, u64::MAX, false)],
            &[(IMAGE, 9, false), (IMAGE, 9, false)],
            &[(IMAGE, 9, false), ("at x", 9, false)],
        ] {
            assert!(!vetted(&mut outcome(wrong, "")), "{wrong:?}");
        }
    }
}
