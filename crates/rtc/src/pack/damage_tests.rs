//! Damaged and hostile packs: whatever the bytes, an image is the one that was packed, or it is not there.

use super::tests::{image, key};
use super::*;

fn images() -> Vec<(Key, Compiled)> {
    (0..3).map(|number| (key(number), image(number))).collect()
}

/// The bytes of a pack of all images.
fn whole() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pack");
    let images = images();
    // They are sorted when they are written.
    let list: Vec<_> = images
        .iter()
        .rev()
        .map(|(key, image)| (*key, image))
        .collect();
    write_pack(&path, &list).expect("written");
    let pack = Pack::open(&path).expect("a pack");
    for (key, image) in &images {
        assert_eq!(pack.get(key).expect("intact").as_ref(), Some(image));
    }
    assert!(pack.get(&key(9)).expect("intact").is_none());
    std::fs::read(&path).expect("bytes")
}

/// How many images a pack still has; none of them is wrong.
fn intact(pack: &Pack, what: &str) -> usize {
    let images = images();
    let found = images.iter().filter(|(key, image)| {
        let found = pack.get(key);
        assert!(
            !matches!(&found, Ok(Some(other)) if other != image),
            "{what} gave a wrong image"
        );
        matches!(found, Ok(Some(_)))
    });
    found.count()
}

#[test]
fn every_damaged_byte_is_noticed() {
    let whole = whole();
    for at in 0..whole.len() {
        for change in [0x01, 0x10, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            if let Ok(pack) = Pack::of_bytes(bytes) {
                assert_eq!(intact(&pack, &format!("byte {at}")), 2, "byte {at}");
            }
        }
    }
}

#[test]
fn every_truncation_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pack");
    let whole = whole();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).expect("written");
        assert!(Pack::open(&path).is_err(), "{length}");
        assert!(Pack::of_bytes(whole[..length].to_vec()).is_err());
    }
    let longer = [&whole[..], b"more"].concat();
    assert!(Pack::of_bytes(longer).is_err());
    assert_eq!(intact(&Pack::of_bytes(whole).expect("a pack"), "all"), 3);
}

/// Anybody can make an index whose hash is right: changed, cut and repeated parts of a real one.
#[test]
fn an_index_of_any_bytes_gives_no_wrong_image() {
    let whole = whole();
    let number = |at: usize| {
        let bytes = whole[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes) as usize
    };
    let (bodies, index) = whole.split_at(number(MAGIC.len()));
    // The same numbers each time, so that a failure can be repeated.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % below
    };
    let (mut opened, mut refused) = (0, 0);
    for round in 0..5000 {
        let mut index = index.to_vec();
        for _ in 0..1 + random(3) {
            let at = random(index.len());
            match random(4) {
                0 => index[at] = random(256) as u8,
                1 => index.truncate(at.max(1)),
                2 => index.extend_from_within(at..),
                // The largest lengths and offsets.
                _ => index
                    .splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0x0f])
                    .for_each(drop),
            }
        }
        let mut bytes = bodies.to_vec();
        bytes[MAGIC.len() + 8..HEAD - 32].copy_from_slice(&(index.len() as u64).to_le_bytes());
        bytes[HEAD - 32..HEAD].copy_from_slice(blake3::hash(&index).as_bytes());
        bytes.extend_from_slice(&index);
        match Pack::of_bytes(bytes) {
            Ok(pack) => {
                opened += 1;
                // A key may lead to another key's body, whose hash is right then: who makes a pack decides what is in it.
                for key in pack.keys().collect::<Vec<_>>() {
                    assert!(!matches!(pack.get(&key), Ok(None)), "round {round}");
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(opened > 100 && refused > 100, "{opened} {refused}");
}

#[test]
fn what_is_too_large_is_not_written_and_an_index_is_read_up_to_a_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pack");
    let huge = Compiled::of_product(&vec![0; LARGEST_BODY as usize], vec![], String::new());
    let error = write_pack(&path, &[(key(1), &huge)]).expect_err("too large");
    assert!(error.to_string().contains("more than 256 MiB"), "{error}");
    assert!(!path.exists());
    // A file of holes takes no disk, and says that it has a large index.
    let (offset, length) = (HEAD as u64, LARGEST_INDEX + 1);
    let mut head = MAGIC.to_vec();
    head.extend(offset.to_le_bytes());
    head.extend(length.to_le_bytes());
    head.extend([0; 32]);
    let file = File::create(&path).expect("a file");
    file.write_all_at(&head, 0).expect("written");
    file.set_len(offset + length).expect("a hole");
    let error = Pack::open(&path).expect_err("too large").to_string();
    assert!(error.contains("truncated or damaged"), "{error}");
}
