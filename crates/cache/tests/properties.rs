//! Properties of keys and of everything that is read back from disk.

use proptest::prelude::*;
use warpcc_cache::{
    Digest, Explaining, Hashing, Key, KeyChange, KeyParts, KeySink, Outcome, decode_record,
};

type Parts = Vec<(String, Vec<u8>)>;

fn parts() -> impl Strategy<Value = Parts> {
    // Few names and values, so that repeats and swaps are common.
    let name = prop::sample::select(vec!["", "a", "ab", "arg", "env"]);
    let value = prop::collection::vec(0u8..3, 0..4);
    prop::collection::vec((name.prop_map(str::to_owned), value), 0..8)
}

fn write(parts: &Parts, sink: &mut dyn KeySink) {
    for (name, value) in parts {
        sink.part(name, value);
    }
}

fn key(parts: &Parts) -> Key {
    let mut hashing = Hashing::new("d");
    write(parts, &mut hashing);
    hashing.finish()
}

fn listing(parts: &Parts) -> KeyParts {
    let mut explaining = Explaining::new();
    write(parts, &mut explaining);
    explaining.finish()
}

/// The old parts after the changes, sorted; `None` if a change removes a part that is not there.
fn applied(old: &KeyParts, changes: &[KeyChange]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut left = old.0.clone();
    for change in changes
        .iter()
        .filter(|change| change.name != KeyChange::ORDER)
    {
        if let Some(value) = &change.old {
            let at = left
                .iter()
                .position(|(n, v)| *n == change.name && v == value)?;
            left.remove(at);
        }
    }
    for change in changes
        .iter()
        .filter(|change| change.name != KeyChange::ORDER)
    {
        if let Some(value) = &change.new {
            left.push((change.name.clone(), value.clone()));
        }
    }
    left.sort();
    Some(left)
}

proptest! {
    #[test]
    fn explaining_and_hashing_agree(parts in parts()) {
        prop_assert_eq!(listing(&parts).key("d"), key(&parts));
        prop_assert_ne!(listing(&parts).key("e"), key(&parts));
    }

    #[test]
    fn keys_are_equal_exactly_when_parts_are(one in parts(), two in parts()) {
        prop_assert_eq!(key(&one) == key(&two), one == two);
    }

    #[test]
    fn any_changed_part_changes_the_key(one in parts(), at: prop::sample::Index, byte: u8) {
        prop_assume!(!one.is_empty());
        let at = at.index(one.len());
        let mut longer = one.clone();
        longer[at].1.push(byte);
        let mut renamed = one.clone();
        renamed[at].0.push('x');
        let mut shorter = one.clone();
        shorter.remove(at);
        let mut doubled = one.clone();
        doubled.push(one[at].clone());
        for other in [longer, renamed, shorter, doubled] {
            prop_assert_ne!(key(&one), key(&other));
        }
    }

    #[test]
    fn changes_lead_from_the_old_listing_to_the_new(one in parts(), two in parts()) {
        let (old, new) = (listing(&one), listing(&two));
        let changes = KeyParts::changes(&old, &new);
        prop_assert_eq!(changes.is_empty(), old == new);
        let mut expected = two.clone();
        expected.sort();
        prop_assert_eq!(applied(&old, &changes), Some(expected));
    }

    #[test]
    fn digests_go_round_as_text(hash: [u8; 32], size: u64) {
        let digest = Digest { hash, size };
        prop_assert_eq!(digest.to_string().parse(), Ok(digest));
    }

    #[test]
    fn any_text_is_a_digest_or_an_error(text in ".*") {
        if let Ok(digest) = text.parse::<Digest>() {
            prop_assert_eq!(digest.size, text[65..].parse::<u64>().expect("digits"));
        }
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(decode_record(&bytes));
    }

    #[test]
    fn outcomes_go_round(stdout: Vec<u8>, extra: Vec<u8>, micros: u64) {
        let outcome = Outcome { stdout, extra, micros, ..Outcome::default() };
        let bytes = postcard::to_stdvec(&outcome).expect("encode");
        prop_assert_eq!(postcard::from_bytes::<Outcome>(&bytes).expect("decode"), outcome);
    }
}
