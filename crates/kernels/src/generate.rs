//! Text and bytes that the planners share: argument lists, and the struct that finds an element's place.

use std::sync::Arc;

use crate::layout::{Layout, divider};

/// `warpcc::places<I, A, D>` as it lies in memory: dividers of each size, then each array's steps.
///
/// `group` neighbours along the innermost dimension count as one.
pub(crate) fn places(layout: &Layout, group: u64, wide: bool) -> Arc<[u8]> {
    let mut bytes = Vec::new();
    let mut put = |value: u64| {
        if wide {
            bytes.extend_from_slice(&value.to_ne_bytes());
        } else {
            // The low half: a step below zero keeps its meaning.
            bytes.extend_from_slice(&(value as u32).to_ne_bytes());
        }
    };
    let last = layout.sizes.len().saturating_sub(1);
    for (dimension, &size) in layout.sizes.iter().enumerate() {
        let size = if dimension == last {
            size / group
        } else {
            size
        };
        let (factor, shift) = divider(size, wide);
        put(factor);
        put(shift);
        put(size);
    }
    for steps in &layout.steps {
        for (dimension, &step) in steps.iter().enumerate() {
            let by = if dimension == last { group } else { 1 };
            put(step.wrapping_mul(by.cast_signed()).cast_unsigned());
        }
    }
    bytes.into()
}

/// The device text's index type.
pub(crate) fn index(wide: bool) -> &'static str {
    if wide {
        "warpcc::int64"
    } else {
        "warpcc::int32"
    }
}
