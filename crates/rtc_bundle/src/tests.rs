//! What is damaged or foreign is an error, whatever it says of itself.

use proptest::prelude::*;

use crate::bundle::{HEAD, Item, MAGIC};
use crate::{Bundle, BundleMaker, ItemKind};

fn bundle() -> Vec<u8> {
    let mut maker = BundleMaker::new();
    maker.header("lib/a.cuh", b"#define A 1\n").expect("added");
    maker.header("empty.h", b"").expect("added");
    maker.fragment("f.cu", b"LTO-IR").expect("added");
    maker.finish().expect("made")
}

/// A bundle with this list, whose hash is right.
fn made_of(items: &[Item], body: &[u8]) -> Vec<u8> {
    let list = postcard::to_allocvec(&items).expect("bytes");
    let mut bytes = MAGIC.to_vec();
    bytes.extend((list.len() as u64).to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(blake3::hash(&list).as_bytes());
    bytes.extend(list);
    bytes.extend(body);
    bytes
}

#[test]
fn what_was_put_in_comes_out() {
    let bytes = bundle();
    let opened = Bundle::open(bytes.clone()).expect("a bundle");
    let contents = opened.contents().expect("whole");
    let found: Vec<_> = contents
        .iter()
        .map(|one| (one.kind, &*one.name, &*one.bytes))
        .collect();
    let expected: [(ItemKind, &str, &[u8]); 3] = [
        (ItemKind::Header, "empty.h", b""),
        (ItemKind::Header, "lib/a.cuh", b"#define A 1\n"),
        (ItemKind::Fragment, "f.cu", b"LTO-IR"),
    ];
    assert_eq!(found, expected);
    // In another order, and one of them twice.
    let mut maker = BundleMaker::new();
    maker.fragment("f.cu", b"LTO-IR").expect("added");
    for _ in 0..2 {
        maker.header("lib/a.cuh", b"#define A 1\n").expect("added");
    }
    maker.header("empty.h", b"").expect("added");
    assert_eq!(maker.finish().expect("made"), bytes);
    let nothing = BundleMaker::new().finish().expect("made");
    let nothing = Bundle::open(nothing).expect("a bundle");
    assert!(nothing.contents().expect("whole").is_empty());
}

#[test]
fn what_cannot_be_in_a_bundle_is_refused_with_its_place() {
    let mut maker = BundleMaker::new();
    let refused = |maker: &mut BundleMaker, name: &str, text: &[u8], expected: &str| {
        let error = maker.header(name, text).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&mut maker, "a.h", b"\n\xff", "line 2");
    refused(&mut maker, "a.h", b"\n\n\0", "line 3");
    refused(&mut maker, "", b"", "name");
    refused(&mut maker, "a\nb", b"", "name");
    maker.header("a.h", b"1").expect("added");
    refused(&mut maker, "a.h", b"2", "different contents");
    assert!(maker.fragment("f.cu", b"").is_err());
}

#[test]
fn a_hostile_list_takes_no_memory() {
    let hash = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
    let body = zstd::bulk::compress(&[b'x'; 1 << 20], 3).expect("compressed");
    let item = |name: &str, length: u64| (0, name.to_owned(), length, hash(b"x"));
    for items in [
        vec![item("a", u64::MAX)],
        vec![item("a", 1 << 40)],
        vec![item("a", u64::MAX), item("b", 2)],
        vec![item("b", 1), item("a", 1)],
        vec![item("a", 1), item("a", 1)],
        vec![item("", 1)],
        vec![(7, "a".to_owned(), 1, hash(b"x"))],
    ] {
        let error = Bundle::open(made_of(&items, &body)).expect_err("refused");
        assert!(
            error.to_string().contains("cannot be understood"),
            "{error}"
        );
    }
    // The list is right, and there is more than it says, or less.
    for length in [0, 1, 1 << 20, (1 << 20) + 1] {
        let opened = Bundle::open(made_of(&[item("a", length)], &body)).expect("a list");
        let error = opened.contents().expect_err("other contents").to_string();
        assert!(error.contains("damaged"), "{error}");
    }
    // Contents that are no text under the name of a header.
    let body = zstd::bulk::compress(b"\xff", 3).expect("compressed");
    let items = [(0, "a".to_owned(), 1, hash(b"\xff"))];
    let opened = Bundle::open(made_of(&items, &body)).expect("a list");
    assert!(opened.contents().is_err());
}

#[test]
fn every_truncation_and_every_changed_byte_is_noticed() {
    let whole = bundle();
    let contents = |bytes: Vec<u8>| {
        let opened = Bundle::open(bytes).ok()?;
        opened.contents().ok().map(<[_]>::to_vec)
    };
    let expected = contents(whole.clone()).expect("whole");
    for length in 0..whole.len() {
        assert!(contents(whole[..length].to_vec()).is_none(), "{length}");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            // zstd has bits that mean nothing; then all is still as it was.
            if let Some(found) = contents(bytes) {
                assert_eq!(found, expected, "{at}");
                assert!(at >= HEAD, "{at}");
            }
        }
    }
    let mut longer = whole;
    longer.push(0);
    assert!(contents(longer).is_none());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, list: Vec<u8>, body: Vec<u8>) {
        let _ = Bundle::open(bytes);
        let mut made = MAGIC.to_vec();
        made.extend((list.len() as u64).to_le_bytes());
        made.extend((body.len() as u64).to_le_bytes());
        made.extend(blake3::hash(&list).as_bytes());
        made.extend(list);
        made.extend(body);
        if let Ok(bundle) = Bundle::open(made) {
            let _ = bundle.contents();
        }
    }
}
