//! One look at what bundles there are: how much it may read, and what it had to pass over. Anybody who may write to the
//! repository's cache decides how many indexes there are and how large they say they are.

use std::collections::BTreeSet;

use crate::action_result;
use warpcc_remote_client::bundle_index::{self as index, Bundle, Index};

/// Bytes of indexes that are unpacked in one look. The newest may be as large as one gets, and those beside it together
/// twice as large: an honest one repeats most of the others.
const MOST_BYTES: usize = 3 * index::LARGEST;
/// Bytes of packed indexes that are fetched in one look: most of a row is a hash, which does not get shorter.
const MOST_PACKED: u64 = 2 * index::LARGEST as u64;
/// Entries that are asked for where the newest is not one of ours.
const MOST_SEARCHED: usize = 80;

/// What asking for a bundle's index gave.
pub enum BundleIndex {
    /// The index.
    Read(Index),
    /// There is none that can be understood. It will never change.
    Damaged(Bundle),
    /// It is more than one look may read.
    TooMuch,
    /// The service failed. Nothing is known of the bundle, so later readers look at it.
    Unavailable,
}

impl BundleIndex {
    /// Whether the entry may be something else than a bundle.
    pub fn is_odd(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::TooMuch)
    }

    /// What is known now.
    pub fn into_index(self) -> Index {
        match self {
            Self::Read(index) => index,
            // It has nothing, and is asked for no more.
            Self::Damaged(bundle) => Index::of([bundle].into(), []),
            Self::TooMuch | Self::Unavailable => Index::default(),
        }
    }
}

/// What is left of the allowance, and what was passed over.
#[derive(Debug)]
pub struct ReadAllowance {
    bytes: usize,
    packed: u64,
    searches: usize,
    damaged: BTreeSet<u32>,
    ignored: u64,
}

impl Default for ReadAllowance {
    fn default() -> Self {
        Self {
            bytes: MOST_BYTES,
            packed: MOST_PACKED,
            searches: MOST_SEARCHED,
            damaged: BTreeSet::new(),
            ignored: 0,
        }
    }
}

impl ReadAllowance {
    /// Whether a packed index of so many bytes may be fetched. Else it is passed over.
    pub fn may_fetch(&mut self, length: u64) -> bool {
        let left = self.packed.checked_sub(length);
        self.packed = left.unwrap_or(self.packed);
        self.ignored += u64::from(left.is_none());
        left.is_some()
    }

    /// The length that a packed index says it has unpacked, as all of ours do.
    pub fn unpacked_length(packed: &[u8]) -> Option<usize> {
        let length = zstd::zstd_safe::get_frame_content_size(packed).ok()??;
        usize::try_from(length).ok()
    }

    /// The index in a bundle's last bytes, where it says of bundles what that one may: nothing of later ones.
    pub fn unpack(&mut self, packed: &[u8], bundle: Bundle) -> BundleIndex {
        let Some(length) = Self::unpacked_length(packed).filter(|length| *length <= index::LARGEST)
        else {
            return self.damaged(bundle);
        };
        let Some(left) = self.bytes.checked_sub(length) else {
            self.ignored += 1;
            return BundleIndex::TooMuch;
        };
        self.bytes = left;
        let bytes = action_result::unpack(packed, length);
        let index = bytes.and_then(|bytes| Index::read(&bytes));
        match index.filter(|index| index.known.last() == Some(&bundle)) {
            Some(index) => BundleIndex::Read(index),
            None => self.damaged(bundle),
        }
    }

    /// Notes an entry with a bundle's name that is none.
    pub fn damaged(&mut self, bundle: Bundle) -> BundleIndex {
        self.ignored += u64::from(self.damaged.insert(bundle.number()));
        BundleIndex::Damaged(bundle)
    }

    /// Whether the entry of this number is known to be no bundle.
    pub fn is_damaged(&self, number: u32) -> bool {
        self.damaged.contains(&number)
    }

    /// Whether `count` more entries may be asked for.
    pub fn may_search(&mut self, count: usize) -> bool {
        let left = self.searches.checked_sub(count);
        self.searches = left.unwrap_or(self.searches);
        left.is_some()
    }

    /// Notes an entry that is not understood.
    pub fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// Entries that were not understood.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpcc_remote_client::bundle_index::{BundlePlace, ContentKind};

    fn packed(number: u32, rows: u32) -> (Bundle, Vec<u8>) {
        let bundle = Bundle::new(number, 0);
        let place = BundlePlace {
            size: 1,
            bundle,
            at: 32,
            packed: 1,
        };
        let row = |row: u32| {
            let mut name = [0; 32];
            name[..4].copy_from_slice(&row.to_be_bytes());
            ((ContentKind::Blob, name), place)
        };
        let index = Index::of([bundle].into(), (0..rows).map(row));
        let packed = zstd::bulk::compress(&index.bytes(), 3);
        (bundle, packed.expect("packed"))
    }

    fn is_read(index: &BundleIndex) -> bool {
        matches!(index, BundleIndex::Read(_))
    }

    #[test]
    fn many_huge_indexes_are_not_all_unpacked() {
        // Much shorter than they are unpacked.
        let (bundle, huge) = packed(7, 390_000);
        assert!(huge.len() < index::LARGEST / 10, "{}", huge.len());
        let mut look = ReadAllowance::default();
        let read = (0..9).map(|_| look.unpack(&huge, bundle));
        assert_eq!(read.filter(is_read).count(), 3);
        assert!(look.bytes < index::LARGEST / 4, "{}", look.bytes);
        assert_eq!(look.ignored, 6);
        // Small ones beside huge ones are read.
        let (other, small) = packed(6, 10);
        assert!((0..10).all(|_| is_read(&look.unpack(&small, other))));
    }

    #[test]
    fn lengths_that_are_wrong_cost_nothing_and_are_no_index() {
        let (bundle, good) = packed(7, 3);
        let mut look = ReadAllowance::default();
        let bomb = zstd::bulk::compress(&vec![0; index::LARGEST + 1], 3).expect("packed");
        let not_said = zstd::stream::encode_all(&[0; 1000][..], 3).expect("packed");
        let mut cut = good.clone();
        cut.truncate(good.len() - 1);
        for (number, wrong) in [bomb, not_said, Vec::new(), b"no frame".to_vec()]
            .iter()
            .enumerate()
        {
            let odd = look.unpack(wrong, Bundle::new(u32::try_from(number).expect("small"), 0));
            assert!(odd.is_odd());
            assert_eq!(look.bytes, MOST_BYTES);
        }
        assert!(look.unpack(&cut, bundle).is_odd());
        assert_eq!(look.ignored, 5);
        // Counted once.
        assert!(look.unpack(&cut, bundle).is_odd() && look.is_damaged(7));
        assert_eq!(look.ignored, 5);
        // Of another bundle.
        assert!(look.unpack(&good, Bundle(bundle.0 + 1)).is_odd());
    }

    #[test]
    fn no_more_is_fetched_than_two_of_the_longest() {
        let mut look = ReadAllowance::default();
        let fetched = (0..9).filter(|_| look.may_fetch(index::LARGEST as u64));
        assert_eq!(fetched.count(), 2);
        assert_eq!(look.ignored, 7);
    }

    #[test]
    fn searches_end() {
        let mut look = ReadAllowance::default();
        let rounds = (0..100).filter(|_| look.may_search(10)).count();
        assert_eq!(rounds, MOST_SEARCHED / 10);
    }
}
