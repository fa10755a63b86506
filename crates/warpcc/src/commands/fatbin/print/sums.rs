//! Sums of images by target and by kernel, and the bar that shows them.

use std::collections::BTreeMap;

use warpcc_fatbin::{ImageKind, ImageRow};

/// The width of a bar, in characters: it fits next to a build's log without asking the terminal.
const BAR: u64 = 40;

/// The totals of one target's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetSum {
    /// Number of images.
    pub images: u64,
    /// Their size in the file, in bytes.
    pub stored: u64,
    /// Their size when decompressed, in bytes.
    pub size: u64,
}

/// The totals by target: machine code before PTX, then by number.
pub fn by_target<'r>(rows: impl Iterator<Item = &'r ImageRow>) -> Vec<(String, TargetSum)> {
    let mut sums: BTreeMap<(ImageKind, usize, String), TargetSum> = BTreeMap::new();
    for row in rows {
        // `sm_90` before `sm_100`.
        let key = (
            row.kind,
            row.target.trim_end_matches(['a', 'f']).len(),
            row.target.clone(),
        );
        let sum = sums.entry(key).or_default();
        sum.images += 1;
        sum.stored += row.stored_size;
        sum.size = sum.size.saturating_add(row.size);
    }
    let named = sums.into_iter().map(|((_, _, target), sum)| (target, sum));
    named.collect()
}

/// The code size of each kernel over all images, in bytes, the largest first.
pub fn by_kernel<'r>(rows: impl Iterator<Item = &'r ImageRow>) -> Vec<(&'r str, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for kernel in rows.flat_map(ImageRow::kernels) {
        let code = kernel.function.usage.as_ref().map_or(0, |usage| usage.code);
        let sum = sums.entry(kernel.demangled.as_str()).or_default();
        *sum = sum.saturating_add(code);
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, code)| *code > 0).collect();
    sums.sort_by_key(|(_, code)| std::cmp::Reverse(*code));
    sums
}

/// A bar for `value` where `most` fills the width, exact to an eighth of a character.
pub fn bar(value: u64, most: u64) -> String {
    let eighths = u128::from(value) * u128::from(BAR) * 8 / u128::from(most.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(0);
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(1, 1).chars().count() as u64, BAR);
        assert_eq!(bar(0, 5), "");
        assert_eq!(bar(1, 320), "▏");
        assert_eq!(bar(u64::MAX, u64::MAX).chars().count() as u64, BAR);
    }
}
