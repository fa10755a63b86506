//! Estimates the cost of commands from earlier runs: data and arithmetic, no files.
//!
//! Measurements of a subject (the caller's name for "this source, this tool, this architecture") come first. For a new
//! subject, commands of the same tool with inputs of about the same size count. For a new tool, the built-in numbers
//! count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kind::CommandKind;

/// Subjects that are remembered; the one not seen for longest goes first.
const SUBJECTS: usize = 8192;
/// Sizes of inputs, by powers of two.
const BINS: usize = 40;
/// The share of the old time that stays after a new one.
const KEEP_TIME: f64 = 0.5;
/// The share of the old peak that stays after a lower new one. It is high, because a command that once needed much may
/// need it again.
const KEEP_PEAK: f64 = 0.8;
/// The same for what is expected of unknown subjects. Their peak is the highest of many, fading.
const KEEP_BIN_PEAK: f64 = 0.98;
/// Written before everything else; changes when the meaning does.
const VERSION: u32 = 1;

/// Measured costs, by subject and by tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    turn: u64,
    subjects: BTreeMap<String, Subject>,
    tools: BTreeMap<u8, Vec<Option<Bin>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Subject {
    millis: f64,
    peak_kib: f64,
    input_bytes: u64,
    turn: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Bin {
    millis: f64,
    peak_kib: f64,
}

/// The expected cost of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expectation {
    /// Milliseconds.
    pub millis: u64,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
    /// Whether this very subject was measured.
    pub known: bool,
}

/// The measured cost of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Bytes of its main input, 0 if unknown.
    pub input_bytes: u64,
    /// Milliseconds from start to end.
    pub millis: u64,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
}

impl Costs {
    /// Reads what [`Costs::to_bytes`] wrote; for any other bytes, the costs are empty.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let read = postcard::from_bytes::<(u32, Self)>(bytes).ok();
        let read = read.filter(|(version, costs)| *version == VERSION && costs.is_sound());
        read.map(|(_, costs)| costs).unwrap_or_default()
    }

    /// As bytes, to be kept. Empty if it cannot be written, which reads as nothing learned.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(&(VERSION, self)).unwrap_or_default()
    }

    fn is_sound(&self) -> bool {
        let sound = |number: f64| number.is_finite() && number >= 0.0;
        let bins = || self.tools.values().flatten().flatten();
        self.subjects.len() <= SUBJECTS
            && self.tools.values().all(|bins| bins.len() <= BINS)
            && self
                .subjects
                .values()
                .all(|s| sound(s.millis) && sound(s.peak_kib))
            && bins().all(|b| sound(b.millis) && sound(b.peak_kib))
    }

    /// The expected cost of `kind` on `subject`, with an input of this size (0 if unknown).
    pub fn expect(&self, subject: &str, kind: CommandKind, input_bytes: u64) -> Expectation {
        if let Some(known) = self.subjects.get(subject) {
            // An input that has grown costs more; one that has shrunk may not.
            let grown = if known.input_bytes > 0 && input_bytes > known.input_bytes {
                (input_bytes as f64 / known.input_bytes as f64).min(4.0)
            } else {
                1.0
            };
            return Expectation {
                millis: whole(known.millis * grown),
                peak_kib: whole(known.peak_kib * grown),
                known: true,
            };
        }
        let (millis, peak_kib) = self.expect_of_tool(kind, input_bytes);
        Expectation {
            millis,
            peak_kib,
            known: false,
        }
    }

    fn expect_of_tool(&self, kind: CommandKind, input_bytes: u64) -> (u64, u64) {
        let usual = (kind.usual_millis_of(input_bytes), kind.usual_peak_kib());
        let Some(bins) = self.tools.get(&kind.number()) else {
            return usual;
        };
        let wanted = bin_of(input_bytes);
        let measured = bins
            .iter()
            .enumerate()
            .filter_map(|(i, bin)| Some((i, (*bin)?)));
        // The nearest size; of two, the larger.
        let nearest = measured.min_by_key(|(i, _)| (i.abs_diff(wanted), usize::from(*i < wanted)));
        let Some((i, bin)) = nearest else {
            return usual;
        };
        if i >= wanted || input_bytes == 0 {
            return (whole(bin.millis), whole(bin.peak_kib));
        }
        // The input is larger than any before: time and memory grow about as the input does, plus a fixed part. The
        // estimate is limited, because with a very high guess nothing else could run.
        let factor = 2f64.powf((wanted - i) as f64 * 0.8).min(8.0);
        (whole(bin.millis * factor), whole(bin.peak_kib * factor))
    }

    /// Learns from a command that ran to its end.
    pub fn learn(&mut self, subject: &str, kind: CommandKind, measured: Measured) {
        // It was read from a file, so it may have any value.
        self.turn = self.turn.saturating_add(1);
        let (millis, peak) = (measured.millis as f64, measured.peak_kib as f64);
        let new = Subject {
            millis,
            peak_kib: peak,
            input_bytes: measured.input_bytes,
            turn: self.turn,
        };
        let known = self.subjects.entry(subject.to_owned()).or_insert(new);
        known.millis = blend(known.millis, millis, KEEP_TIME);
        known.peak_kib = fade(known.peak_kib, peak, KEEP_PEAK);
        known.input_bytes = measured.input_bytes;
        known.turn = self.turn;
        if self.subjects.len() > SUBJECTS {
            self.forget_oldest();
        }
        let bins = self.tools.entry(kind.number()).or_default();
        let bin = bin_of(measured.input_bytes);
        if bins.len() <= bin {
            bins.resize(bin + 1, None);
        }
        let entry = bins[bin].get_or_insert(Bin {
            millis,
            peak_kib: peak,
        });
        entry.millis = blend(entry.millis, millis, KEEP_TIME);
        entry.peak_kib = fade(entry.peak_kib, peak, KEEP_BIN_PEAK);
    }

    /// Removes an eighth at once, so that a full table is not searched each time.
    fn forget_oldest(&mut self) {
        let mut turns: Vec<u64> = self.subjects.values().map(|s| s.turn).collect();
        turns.sort_unstable();
        let limit = turns[turns.len() / 8];
        self.subjects.retain(|_, s| s.turn > limit);
    }

    /// Adds what only `other` has learned, for two processes that store their costs in the same place. If both know a
    /// subject, the higher peak counts.
    pub fn merge(&mut self, other: &Self) {
        self.turn = self.turn.max(other.turn);
        for (name, theirs) in &other.subjects {
            let ours = self.subjects.entry(name.clone()).or_insert(*theirs);
            ours.peak_kib = ours.peak_kib.max(theirs.peak_kib);
            ours.turn = ours.turn.max(theirs.turn);
        }
        while self.subjects.len() > SUBJECTS {
            self.forget_oldest();
        }
        for (tool, theirs) in &other.tools {
            let ours = self.tools.entry(*tool).or_default();
            ours.resize(ours.len().max(theirs.len()), None);
            for (ours, theirs) in ours.iter_mut().zip(theirs) {
                match (ours.as_mut(), theirs) {
                    (Some(ours), Some(theirs)) => {
                        ours.peak_kib = ours.peak_kib.max(theirs.peak_kib);
                    }
                    (None, theirs) => *ours = *theirs,
                    (Some(_), None) => {}
                }
            }
        }
    }

    /// The number of known subjects.
    pub fn len(&self) -> usize {
        self.subjects.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }
}

fn bin_of(bytes: u64) -> usize {
    (bytes.checked_ilog2().unwrap_or(0) as usize).min(BINS - 1)
}

fn blend(old: f64, new: f64, keep: f64) -> f64 {
    old * keep + new * (1.0 - keep)
}

/// Rises at once, and falls slowly.
fn fade(old: f64, new: f64, keep: f64) -> f64 {
    if new >= old {
        new
    } else {
        blend(old, new, keep)
    }
}

fn whole(number: f64) -> u64 {
    // Saturates, and nothing here is negative.
    number.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(input_bytes: u64, millis: u64, peak_kib: u64) -> Measured {
        Measured {
            input_bytes,
            millis,
            peak_kib,
        }
    }

    #[test]
    fn built_in_then_by_size_then_by_subject() {
        let mut costs = Costs::default();
        let new = costs.expect("a.cu", CommandKind::Cicc, 1 << 20);
        assert_eq!((new.millis, new.known), (7400, false));
        costs.learn("b.cu", CommandKind::Cicc, measured(1 << 20, 1000, 300_000));
        let like_b = costs.expect("a.cu", CommandKind::Cicc, (1 << 20) + 5);
        assert_eq!((like_b.millis, like_b.peak_kib), (1000, 300_000));
        let larger = costs.expect("a.cu", CommandKind::Cicc, 1 << 22);
        assert!(larger.peak_kib > 2 * 300_000 && larger.peak_kib < 4 * 300_000);
        costs.learn("a.cu", CommandKind::Cicc, measured(1 << 20, 50, 10_000));
        let known = costs.expect("a.cu", CommandKind::Cicc, 1 << 20);
        assert_eq!(
            (known.millis, known.peak_kib, known.known),
            (50, 10_000, true)
        );
        assert!(
            costs.expect("a.cu", CommandKind::Ptxas, 9).known,
            "the subject names the tool"
        );
    }

    #[test]
    fn peaks_rise_at_once_and_fall_slowly() {
        let mut costs = Costs::default();
        for peak in [100, 1000, 100] {
            costs.learn("a", CommandKind::Ptxas, measured(10, 10, peak));
        }
        assert_eq!(costs.expect("a", CommandKind::Ptxas, 10).peak_kib, 820);
    }

    #[test]
    fn garbage_is_nothing_learned() {
        let mut costs = Costs::default();
        costs.learn("a", CommandKind::Ptxas, measured(10, 10, 100));
        let bytes = costs.to_bytes();
        assert_eq!(Costs::from_bytes(&bytes), costs);
        assert_eq!(
            Costs::from_bytes(&bytes[..bytes.len() - 1]),
            Costs::default()
        );
        assert_eq!(Costs::from_bytes(&[0xff; 300]), Costs::default());
        assert_eq!(Costs::from_bytes(&[]), Costs::default());
        costs.tools.insert(
            3,
            vec![Some(Bin {
                millis: f64::NAN,
                peak_kib: 1.0,
            })],
        );
        assert_eq!(Costs::from_bytes(&costs.to_bytes()), Costs::default());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut costs = Costs::default();
        for i in 0..=SUBJECTS {
            costs.learn(&i.to_string(), CommandKind::Other, measured(1, 1, 1));
        }
        assert!(costs.len() <= SUBJECTS && costs.len() > SUBJECTS / 2);
        assert!(!costs.expect("0", CommandKind::Other, 1).known);
        assert!(
            costs
                .expect(&SUBJECTS.to_string(), CommandKind::Other, 1)
                .known
        );
    }

    #[test]
    fn two_histories_make_one() {
        let (mut a, mut b) = (Costs::default(), Costs::default());
        a.learn("a", CommandKind::Cicc, measured(4, 10, 100));
        b.learn("b", CommandKind::Cicc, measured(64, 10, 300));
        b.learn("a", CommandKind::Cicc, measured(4, 10, 200));
        a.merge(&b);
        assert_eq!(a.expect("a", CommandKind::Cicc, 4).peak_kib, 200);
        assert!(a.expect("b", CommandKind::Cicc, 64).known);
        assert_eq!(a.expect("c", CommandKind::Cicc, 64).peak_kib, 300);
    }
}
