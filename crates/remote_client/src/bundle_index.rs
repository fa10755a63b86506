//! The index of bundles in GitHub's cache: where in which bundle each result and blob is. Comes from others, so nothing in it is believed
//! before it is checked.
//!
//! ```text
//! "warpccI1"  number of bundles: u32   bundles: u64 each   rows, in the order of kind and name
//! row         kind: u8, name: 32 bytes, length: u64, bundle: u64, begin: u64, packed length: u64
//! ```
//!
//! Numbers are little-endian. An index covers the newest bundles, so that a reader needs one. It is looked up as it lies
//! in memory: a process that asks for one result must not take the whole of it apart.

use std::cmp::Ordering;
use std::collections::BTreeSet;

const MAGIC: &[u8; 8] = b"warpccI1";
const ROW: usize = 1 + NAME + 4 * 8;
const NAME: usize = 32;
/// Most bundles that an index speaks of.
const MOST_BUNDLES: usize = 4 * WINDOW as usize;
/// Most rows.
const MOST_ROWS: usize = 400_000;
/// Largest index.
pub const LARGEST: usize = 12 + 8 * MOST_BUNDLES + ROW * MOST_ROWS;
/// Bundles that are read, counted from the newest.
pub const WINDOW: u32 = 32;
/// From this age on what is used goes into a new bundle too, before its own falls out of the window.
const AGING: u32 = WINDOW / 2;

/// A bundle: its number, and by chance a second one. Branches number their bundles alike, and see those of the main branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bundle(pub u64);

impl Bundle {
    /// The one of this number, and of a second one by chance.
    pub fn new(number: u32, chance: u32) -> Self {
        Self(u64::from(number) << 32 | u64::from(chance))
    }

    /// Its number, which is its name at the service.
    pub fn number(self) -> u32 {
        u32::try_from(self.0 >> 32).unwrap_or(u32::MAX)
    }
}

/// A kind of thing in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentKind {
    /// A serialized `ActionResult`, by its key.
    Result,
    /// A blob as a zstd frame, by its digest.
    Blob,
}

/// What is looked up: the kind, and a key or the hash of a digest.
pub type Name = (ContentKind, [u8; NAME]);

/// Where something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundlePlace {
    /// Length, unpacked.
    pub size: u64,
    /// The bundle.
    pub bundle: Bundle,
    /// Its first byte there.
    pub at: u64,
    /// Its bytes there.
    pub packed: u64,
}

/// Where everything is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The bundles whose own indexes are part of this one.
    pub known: BTreeSet<Bundle>,
    rows: Vec<u8>,
}

impl Index {
    /// The newest bundle's number, 0 where there is none.
    pub fn newest(&self) -> u32 {
        self.known.last().map_or(0, |bundle| bundle.number())
    }

    /// Whether the index of the bundle of this number is part of this one.
    pub fn knows(&self, number: u32) -> bool {
        self.known.iter().any(|bundle| bundle.number() == number)
    }

    /// Where `name` is.
    pub fn find(&self, name: &Name) -> Option<BundlePlace> {
        let wanted = encode_name(name);
        let (mut low, mut high) = (0, self.rows.len() / ROW);
        while low < high {
            let middle = low.midpoint(high);
            let row = self.rows.get(middle * ROW..)?.get(..ROW)?;
            match row[..=NAME].cmp(&wanted[..]) {
                Ordering::Equal => return decode(row).map(|(_, place)| place),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Whether what is in `bundle` will soon be read no more.
    pub fn is_aging(&self, bundle: Bundle) -> bool {
        bundle.number().saturating_add(AGING) <= self.newest()
    }

    /// The same without what is in bundles that `keeps` does not want.
    #[must_use]
    pub fn without(&self, keeps: impl Fn(Bundle) -> bool) -> Index {
        let mut rows = self.rows.clone();
        retain_rows(&mut rows, |place| keeps(place.bundle));
        let known = self.known.clone();
        Self { known, rows }
    }

    /// Several as one. Of two places the newer one counts, of two as new the first; bundles before the window are forgotten, and so is, from the
    /// oldest on, what is more than an index may have. Each row is looked at once for each index: nobody's index makes it slow.
    pub fn merged<'i>(indexes: impl IntoIterator<Item = &'i Index>) -> Index {
        let mut known = BTreeSet::new();
        let mut rows = Vec::new();
        for index in indexes {
            known.extend(&index.known);
            rows = match rows.is_empty() {
                true => index.rows.clone(),
                false => merge_rows(&rows, &index.rows),
            };
        }
        Self::within_limits(known, rows)
    }

    /// An index of these places.
    pub fn of(
        known: BTreeSet<Bundle>,
        places: impl IntoIterator<Item = (Name, BundlePlace)>,
    ) -> Index {
        let mut rows: Vec<Vec<u8>> = places
            .into_iter()
            .map(|(name, place)| encode(&name, &place))
            .collect();
        rows.sort_unstable();
        rows.dedup_by(|later, earlier| later[..=NAME] == earlier[..=NAME]);
        Self::within_limits(known, rows.concat())
    }

    /// Forgets what is too old, or too much.
    fn within_limits(mut known: BTreeSet<Bundle>, mut rows: Vec<u8>) -> Index {
        let newest = known.last().map_or(0, |bundle| bundle.number());
        let mut oldest = newest.saturating_sub(WINDOW - 1);
        retain_rows(&mut rows, |place| {
            (oldest..=newest).contains(&place.bundle.number())
        });
        // Rows by the age of their bundles.
        let mut of_age = [0; WINDOW as usize];
        for (_, place) in rows.chunks_exact(ROW).filter_map(decode) {
            of_age[(newest - place.bundle.number()) as usize] += 1;
        }
        let mut count: usize = of_age.iter().sum();
        if count > MOST_ROWS {
            while count > MOST_ROWS && oldest < newest {
                count -= of_age[(newest - oldest) as usize];
                oldest += 1;
            }
            retain_rows(&mut rows, |place| place.bundle.number() >= oldest);
            rows.truncate(MOST_ROWS * ROW);
        }
        known.retain(|bundle| bundle.number() >= oldest);
        Self { known, rows }
    }

    /// The bytes of it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let count = u32::try_from(self.known.len()).unwrap_or(0);
        bytes.extend_from_slice(&count.to_le_bytes());
        for bundle in &self.known {
            bytes.extend_from_slice(&bundle.0.to_le_bytes());
        }
        bytes.extend_from_slice(&self.rows);
        bytes
    }

    /// The index that these bytes are; none where they are none.
    pub fn read(bytes: &[u8]) -> Option<Index> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        if count > MOST_BUNDLES {
            return None;
        }
        let (numbers, rows) = rest.split_at_checked(count * 8)?;
        let numbers = numbers.as_chunks::<8>().0.iter();
        let known = numbers.map(|number| Bundle(u64::from_le_bytes(*number)));
        let known = known.collect();
        if rows.len() % ROW != 0 || rows.len() / ROW > MOST_ROWS {
            return None;
        }
        let rows_in_order = rows.chunks_exact(ROW).map(|row| &row[..=NAME]);
        let in_order = rows_in_order.is_sorted_by(|a, b| a < b);
        let are_rows = rows.chunks_exact(ROW).all(|row| decode(row).is_some());
        (in_order && are_rows).then(|| Self {
            known,
            rows: rows.to_vec(),
        })
    }
}

fn retain_rows(rows: &mut Vec<u8>, keeps: impl Fn(&BundlePlace) -> bool) {
    let mut kept = 0;
    for row in 0..rows.len() / ROW {
        let begin = row * ROW;
        if decode(&rows[begin..begin + ROW]).is_some_and(|(_, place)| keeps(&place)) {
            rows.copy_within(begin..begin + ROW, kept);
            kept += ROW;
        }
    }
    rows.truncate(kept);
}

/// Both, in order. Of two rows of one name the newer place counts, else the first.
fn merge_rows(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.chunks_exact(ROW), second.chunks_exact(ROW));
    let (mut one, mut other) = (first.next(), second.next());
    loop {
        let (row, step) = match (one, other) {
            (Some(a), Some(b)) => match a[..=NAME].cmp(&b[..=NAME]) {
                Ordering::Equal => (
                    if number_in(b) > number_in(a) { b } else { a },
                    Ordering::Equal,
                ),
                order => (if order.is_lt() { a } else { b }, order),
            },
            (Some(row), None) => (row, Ordering::Less),
            (None, Some(row)) => (row, Ordering::Greater),
            (None, None) => return merged,
        };
        merged.extend_from_slice(row);
        if step.is_le() {
            one = first.next();
        }
        if step.is_ge() {
            other = second.next();
        }
    }
}

/// The number of the bundle that a row names.
fn number_in(row: &[u8]) -> Option<u32> {
    decode(row).map(|(_, place)| place.bundle.number())
}

fn encode_name(name: &Name) -> [u8; 1 + NAME] {
    let mut bytes = [0; 1 + NAME];
    bytes[0] = match name.0 {
        ContentKind::Result => 0,
        ContentKind::Blob => 1,
    };
    bytes[1..].copy_from_slice(&name.1);
    bytes
}

fn encode(name: &Name, place: &BundlePlace) -> Vec<u8> {
    let mut row = encode_name(name).to_vec();
    row.extend_from_slice(&place.size.to_le_bytes());
    row.extend_from_slice(&place.bundle.0.to_le_bytes());
    row.extend_from_slice(&place.at.to_le_bytes());
    row.extend_from_slice(&place.packed.to_le_bytes());
    row
}

fn decode(row: &[u8]) -> Option<(Name, BundlePlace)> {
    let (kind, row) = row.split_first()?;
    let kind = match kind {
        0 => ContentKind::Result,
        1 => ContentKind::Blob,
        _ => return None,
    };
    let (name, row) = row.split_first_chunk::<NAME>()?;
    let (size, row) = row.split_first_chunk::<8>()?;
    let (bundle, row) = row.split_first_chunk::<8>()?;
    let (at, row) = row.split_first_chunk::<8>()?;
    let packed = row.first_chunk::<8>()?;
    let place = BundlePlace {
        size: u64::from_le_bytes(*size),
        bundle: Bundle(u64::from_le_bytes(*bundle)),
        at: u64::from_le_bytes(*at),
        packed: u64::from_le_bytes(*packed),
    };
    Some(((kind, *name), place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(number: u32) -> Bundle {
        Bundle(u64::from(number) << 32 | 77)
    }

    fn place(number: u32) -> BundlePlace {
        BundlePlace {
            size: 7,
            bundle: bundle(number),
            at: 32,
            packed: 5,
        }
    }

    fn index(number: u32, names: &[u8]) -> Index {
        let name = |byte: &u8| ((ContentKind::Blob, [*byte; 32]), place(number));
        Index::of(BTreeSet::from([bundle(number)]), names.iter().map(name))
    }

    #[test]
    fn an_index_goes_round_and_is_searched() {
        let all = index(3, &[1, 5, 9, 200]);
        let read = Index::read(&all.bytes()).expect("an index");
        assert_eq!(read, all);
        for byte in 0..=255 {
            let found = read.find(&(ContentKind::Blob, [byte; 32]));
            assert_eq!(found.is_some(), [1, 5, 9, 200].contains(&byte), "{byte}");
            assert_eq!(read.find(&(ContentKind::Result, [byte; 32])), None);
        }
    }

    #[test]
    fn the_newer_place_counts_and_old_bundles_fall_out() {
        let both = Index::merged([&index(2, &[1, 2]), &index(1, &[2, 3])]);
        let number = |byte: u8| {
            both.find(&(ContentKind::Blob, [byte; 32]))
                .map(|p| p.bundle.number())
        };
        assert_eq!([1, 2, 3].map(number), [Some(2), Some(2), Some(1)]);
        let late = Index::merged([&both, &index(WINDOW + 1, &[4])]);
        assert_eq!(late.find(&(ContentKind::Blob, [3; 32])), None);
        assert_eq!(late.known, BTreeSet::from([bundle(2), bundle(WINDOW + 1)]));
        assert!(late.is_aging(bundle(2)) && !late.is_aging(bundle(WINDOW)));
    }

    #[test]
    fn what_is_no_index_is_none() {
        let good = index(3, &[1, 5]).bytes();
        for length in 0..good.len() {
            let cut = Index::read(&good[..length]);
            // Without one of its rows it is an index of fewer.
            assert!(
                cut.is_none() || (good.len() - length).is_multiple_of(ROW),
                "{length}"
            );
        }
        let rows = good.len() - 2 * ROW;
        let mut swapped = good[..rows].to_vec();
        swapped.extend_from_slice(&good[rows + ROW..]);
        swapped.extend_from_slice(&good[rows..rows + ROW]);
        assert_eq!(Index::read(&swapped), None);
        let mut kind = good.clone();
        kind[rows] = 9;
        assert_eq!(Index::read(&kind), None);
        let mut count = good;
        count[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Index::read(&count), None);
    }
}
