//! What all planners compute: grids, the largest access that divides a stride, and the struct that finds an element's
//! place.

use std::sync::Arc;

use crate::layout::{Layout, divider};
use crate::plan::{PlanError, Which};

/// `warpcc::places<I, A, D>` as it lies in memory: dividers of each size, then each array's strides.
///
/// `group` neighbours along the innermost dimension count as one.
pub(crate) fn places(layout: &Layout, group: u64, wide: bool) -> Arc<[u8]> {
    let mut bytes = Vec::new();
    let mut put = |value: u64| {
        if wide {
            bytes.extend_from_slice(&value.to_ne_bytes());
        } else {
            // The low half: a negative stride keeps its meaning.
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

/// The largest power of two, at most `limit`, that divides a number.
pub(crate) fn share(number: i64, limit: u64) -> u64 {
    match number.unsigned_abs() {
        0 => limit,
        some => (1u64 << some.trailing_zeros()).min(limit),
    }
}

/// Blocks, if a grid holds this many.
pub(crate) fn grid(blocks: u64) -> Result<u32, PlanError> {
    u32::try_from(blocks)
        .ok()
        .filter(|blocks| i32::try_from(*blocks).is_ok())
        .ok_or(PlanError::TooLarge {
            which: Which::Output,
            reason: "more than 2^31 - 1 blocks",
        })
}

/// The device text's index type.
pub(crate) fn index(wide: bool) -> &'static str {
    if wide {
        "warpcc::int64"
    } else {
        "warpcc::int32"
    }
}
