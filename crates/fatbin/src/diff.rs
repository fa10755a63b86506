//! Two builds of one library: kernels that were added, removed, or use other resources.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::kernels::Usage;
use crate::listing::ImageRow;

/// A kernel in the machine code for one architecture.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KernelId {
    /// A readable name. The parts that a compiler adds to a file's own names are shown as `*`.
    pub kernel: String,
    /// `sm_90`, `compute_80`.
    pub target: String,
}

/// One number that changed, in bytes or as the name says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumberChange {
    /// Which: `registers`, `stack`, `code`…
    pub what: &'static str,
    /// In the first file; `None` where it was not recorded.
    pub before: Option<u64>,
    /// In the second.
    pub after: Option<u64>,
}

/// A kernel that is in both and differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// The kernel.
    #[serde(flatten)]
    pub id: KernelId,
    /// The numbers that differ.
    pub changes: Vec<NumberChange>,
}

/// The total of one architecture's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Total {
    /// The number of images.
    pub images: u64,
    /// In the file, in bytes.
    pub stored: u64,
    /// Kernels in them.
    pub kernels: u64,
}

/// The difference.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FatbinDifference {
    /// Kernels only in the second.
    pub added: Vec<KernelId>,
    /// Kernels only in the first.
    pub removed: Vec<KernelId>,
    /// Kernels in both, with other numbers.
    pub changed: Vec<Changed>,
    /// The number of kernels that are in both and have equal numbers.
    pub equal: u64,
    /// For each target the number before and after, if they differ.
    pub targets: BTreeMap<String, (Total, Total)>,
}

impl FatbinDifference {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && self.targets.is_empty()
    }
}

/// Compares two lists, both made with [`Depth::Kernels`](crate::Depth::Kernels).
pub fn diff(before: &[ImageRow], after: &[ImageRow]) -> FatbinDifference {
    let mut difference = FatbinDifference::default();
    let (old, new) = (kernels(before), kernels(after));
    for (id, copies) in &new {
        let known = old.get(id).map_or(0, Vec::len);
        let added = copies.len().saturating_sub(known);
        difference.added.extend(vec![id.clone(); added]);
    }
    for (id, copies) in &old {
        let other = new.get(id).map_or(&[][..], Vec::as_slice);
        let removed = copies.len().saturating_sub(other.len());
        difference.removed.extend(vec![id.clone(); removed]);
        // The same kernel may be in several translation units: they are paired in order.
        for (one, two) in copies.iter().zip(other) {
            let changes = changes(one.as_ref(), two.as_ref());
            if changes.is_empty() {
                difference.equal += 1;
                continue;
            }
            difference.changed.push(Changed {
                id: id.clone(),
                changes,
            });
        }
    }
    let (old, new) = (totals(before), totals(after));
    for target in old.keys().chain(new.keys()) {
        let get = |all: &BTreeMap<String, Total>| all.get(target).copied().unwrap_or_default();
        let pair = (get(&old), get(&new));
        if pair.0 != pair.1 {
            difference.targets.insert(target.clone(), pair);
        }
    }
    difference
}

fn kernels(rows: &[ImageRow]) -> BTreeMap<KernelId, Vec<Option<Usage>>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in rows {
        for kernel in row.kernels() {
            let id = KernelId {
                kernel: without_hashes(&kernel.demangled),
                target: row.target.clone(),
            };
            all.entry(id)
                .or_default()
                .push(kernel.function.usage.clone());
        }
    }
    all
}

fn totals(rows: &[ImageRow]) -> BTreeMap<String, Total> {
    let mut all: BTreeMap<String, Total> = BTreeMap::new();
    for row in rows {
        let total = all.entry(row.target.clone()).or_default();
        total.images += 1;
        total.stored += row.stored_size;
        total.kernels += row.kernels().count() as u64;
    }
    all
}

fn changes(before: Option<&Usage>, after: Option<&Usage>) -> Vec<NumberChange> {
    let (Some(before), Some(after)) = (before, after) else {
        return Vec::new();
    };
    let word = |value: Option<u32>| value.map(u64::from);
    let numbers = |usage: &Usage| {
        [
            ("registers", word(usage.registers)),
            ("stack", word(usage.stack)),
            ("frame", word(usage.frame)),
            ("local loads", word(usage.local_loads)),
            ("local stores", word(usage.local_stores)),
            ("shared", Some(usage.shared)),
            ("constant", Some(usage.constant_bytes())),
            ("code", Some(usage.code)),
        ]
    };
    let pairs = numbers(before).into_iter().zip(numbers(after));
    pairs
        .filter(|((_, before), (_, after))| before != after)
        .map(|((what, before), (_, after))| NumberChange {
            what,
            before,
            after,
        })
        .collect()
}

/// `_INTERNAL_1234abcd_4_a_cu_…_5678ef01_99`: nvcc puts hashes of the file and the command into the
/// name of what is a file's own, so that two builds never have the same name.
pub(crate) fn without_hashes(name: &str) -> String {
    let mut words: Vec<&str> = name.split('_').collect();
    let mut internal = false;
    for word in &mut words {
        internal |= *word == "INTERNAL";
        let hash = word.get(..8).is_some_and(|start| {
            start
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        let ends = word
            .get(8..)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()));
        if internal && hash && ends {
            *word = "*";
        }
    }
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_internal_names_do_not_count() {
        let a = "_INTERNAL_11f0abcd_4_a_cu_5ca1e_9e2f7301_77::k(int)";
        let b = "_INTERNAL_22f0abcd_4_a_cu_5ca1e_8e2f7301_77::k(int)";
        assert_eq!(without_hashes(a), without_hashes(b));
        assert_eq!(without_hashes("f_deadbeef(int)"), "f_deadbeef(int)");
    }

    #[test]
    fn every_number_that_differs_is_named() {
        let before = Usage {
            registers: Some(30),
            code: 128,
            ..Usage::default()
        };
        let after = Usage {
            registers: Some(40),
            stack: Some(8),
            ..before.clone()
        };
        let found = changes(Some(&before), Some(&after));
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].what, found[0].after), ("registers", Some(40)));
        assert_eq!((found[1].before, found[1].after), (None, Some(8)));
    }
}
