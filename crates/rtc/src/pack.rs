//! Packs: files of ready-made images that a program ships with, in its wheel or next to its files. They are only read.
//!
//! ```text
//! file = "warpcc-pack 1\n" number(index's offset) number(index's length) hash(index) bodies index
//! index = postcard of (key, offset, image's length, details' length, hash(body))*, sorted by key
//! ```
//!
//! A number has 8 bytes, the lowest first; a hash is a BLAKE3. The index is verified when a pack is opened, and a body
//! whenever it is read: what is damaged is not there.

#[cfg(test)]
mod damage_tests;
pub(crate) mod trust;
mod whole_file;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use warpcc_cache::{Key, regular_file};

use crate::compiler::Compiled;
use crate::entry::{PackedImage, closed, opened};
use whole_file::replace;

const MAGIC: &[u8] = b"warpcc-pack 1\n";
const HEAD: usize = MAGIC.len() + 8 + 8 + 32;
/// No index is larger: some 190,000 images. It is read as a whole when a pack is opened, also one of a stranger.
const LARGEST_INDEX: u64 = 16 << 20;

/// Key, offset, length of the image, length of the details, hash of both.
type Item = ([u8; 32], u64, u64, u64, [u8; 32]);

/// No image is larger, with its details: what a pack can make a process read at once. NVRTC's images have kilobytes, seldom
/// megabytes.
const LARGEST_BODY: u64 = 256 << 20;

/// Where the bytes are.
#[derive(Debug)]
enum Source {
    File(File),
    Bytes(Vec<u8>),
}

impl Source {
    fn read(&self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let needed = usize::try_from(length).map_err(io::Error::other)?;
        // A file with holes may be longer than there is memory.
        bytes.try_reserve_exact(needed).map_err(io::Error::other)?;
        bytes.resize(needed, 0);
        match self {
            Self::File(file) => file.read_exact_at(&mut bytes, at)?,
            Self::Bytes(all) => {
                let begin = usize::try_from(at).unwrap_or(usize::MAX);
                let found = all.get(begin..).and_then(|rest| rest.get(..needed));
                bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            }
        }
        Ok(bytes)
    }
}

/// A pack that was opened.
#[derive(Debug)]
pub struct Pack {
    path: PathBuf,
    source: Source,
    /// Sorted by key.
    items: Vec<Item>,
}

/// Why a pack, or an image of it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the pack {} is not used: {why}", path.display())]
pub struct PackError {
    /// The file.
    pub path: PathBuf,
    /// The reason, and what to do.
    pub why: String,
}

impl Pack {
    /// Opens a pack and reads its index.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or is no pack of this version.
    pub fn open(path: &Path) -> Result<Self, PackError> {
        let fails = |why: String| PackError {
            path: path.to_path_buf(),
            why,
        };
        let open = || -> io::Result<_> {
            let file = regular_file::open(path)?;
            let found = file.metadata()?;
            trust::check(&found)?;
            let size = found.len();
            let source = Source::File(file);
            let items = read_index(&source, size)?;
            Ok((source, items))
        };
        let (source, items) = open().map_err(|error| fails(error.to_string()))?;
        Ok(Self {
            path: path.to_path_buf(),
            source,
            items,
        })
    }

    /// The pack that these bytes are.
    ///
    /// # Errors
    /// They are damaged, or no pack of this version.
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, PackError> {
        let path = PathBuf::from("in memory");
        let size = bytes.len() as u64;
        let source = Source::Bytes(bytes);
        match read_index(&source, size) {
            Ok(items) => Ok(Self {
                path,
                source,
                items,
            }),
            Err(error) => Err(PackError {
                path,
                why: error.to_string(),
            }),
        }
    }

    /// The keys that it has images for, in order.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.items.iter().map(|item| Key(item.0))
    }

    /// How many images it has.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has no image.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The image under a key.
    ///
    /// # Errors
    /// It is damaged.
    pub fn get(&self, key: &Key) -> Result<Option<Compiled>, PackError> {
        let Ok(at) = self.items.binary_search_by(|item| item.0.cmp(&key.0)) else {
            return Ok(None);
        };
        let (_, offset, image, details, hash) = self.items[at];
        let damaged = |why: &str| PackError {
            path: self.path.clone(),
            why: format!("image {}: {why}; make the pack again", &key.hex()[..16]),
        };
        let read = self.source.read(offset, image + details);
        let mut body = read.map_err(|error| damaged(&error.to_string()))?;
        if *blake3::hash(&body).as_bytes() != hash {
            return Err(damaged("its bytes are not those that were written"));
        }
        let details = body.split_off(image as usize);
        let kept = PackedImage {
            image: body.into(),
            details,
        };
        let compiled = opened(&kept).ok_or_else(|| damaged("it cannot be understood"))?;
        Ok(Some(compiled))
    }
}

fn read_index(source: &Source, size: u64) -> io::Result<Vec<Item>> {
    let damaged = |why: &str| io::Error::other(format!("{why}; make it again"));
    let head = source.read(0, HEAD as u64).unwrap_or_default();
    if !head.starts_with(MAGIC) {
        return Err(damaged("it is no pack of this version"));
    }
    let number = |at: usize| {
        let bytes = head[at..at + 8].try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    };
    let (offset, length) = (number(MAGIC.len()), number(MAGIC.len() + 8));
    if length > LARGEST_INDEX || offset.checked_add(length) != Some(size) {
        return Err(damaged("it is truncated or damaged"));
    }
    let index = source.read(offset, length)?;
    if blake3::hash(&index).as_bytes() != &head[HEAD - 32..] {
        return Err(damaged("its index is damaged"));
    }
    let read = postcard::take_from_bytes::<Vec<Item>>(&index);
    let Ok((items, [])) = read else {
        return Err(damaged("its index cannot be understood"));
    };
    let within = |item: &Item| {
        let body = item.2.checked_add(item.3);
        let body = body.filter(|length| *length <= LARGEST_BODY);
        let end = body.and_then(|body| item.1.checked_add(body));
        end.is_some_and(|end| end <= offset)
    };
    if !items.iter().all(within) || !items.is_sorted_by(|one, other| one.0 < other.0) {
        return Err(damaged("its index cannot be understood"));
    }
    Ok(items)
}

/// Writes a pack of these images, in place of what is at `path`. The same images make the same bytes, in whatever order.
///
/// # Errors
/// The file cannot be written, an image is larger than 256 MiB, or there are too many for an index of 16 MiB.
pub fn write_pack(path: &Path, images: &[(Key, &Compiled)]) -> Result<(), PackError> {
    let fails = |why: String| PackError {
        path: path.to_path_buf(),
        why,
    };
    let mut images = images.to_vec();
    images.sort_by_key(|(key, _)| key.0);
    images.dedup_by_key(|(key, _)| key.0);
    let mut bytes = vec![0; HEAD];
    let mut items: Vec<Item> = Vec::with_capacity(images.len());
    for (key, compiled) in &images {
        let kept = closed(compiled);
        let (image, details) = (kept.image.len() as u64, kept.details.len() as u64);
        if image + details > LARGEST_BODY {
            let start = &key.hex()[..16];
            return Err(fails(format!("image {start} has more than 256 MiB")));
        }
        let offset = bytes.len();
        bytes.extend_from_slice(&kept.image);
        bytes.extend_from_slice(&kept.details);
        let hash = *blake3::hash(&bytes[offset..]).as_bytes();
        items.push((key.0, offset as u64, image, details, hash));
    }
    // Numbers and bytes can always be written.
    let index = postcard::to_allocvec(&items).unwrap_or_default();
    if index.len() as u64 > LARGEST_INDEX {
        return Err(fails(format!("{} images are too many", items.len())));
    }
    let offset = bytes.len() as u64;
    let mut head = MAGIC.to_vec();
    head.extend(offset.to_le_bytes());
    head.extend((index.len() as u64).to_le_bytes());
    head.extend(blake3::hash(&index).as_bytes());
    bytes[..HEAD].copy_from_slice(&head);
    bytes.extend(index);
    replace(path, &bytes).map_err(|error| fails(format!("it cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whole_file::write_unnamed;

    pub(super) fn key(number: u8) -> Key {
        Key([number; 32])
    }

    pub(super) fn image(number: u8) -> Compiled {
        let bytes = vec![number; usize::from(number) + 1];
        let names = vec![("k<int>".to_owned(), format!("_Z{number}"))];
        Compiled::of_product(&bytes, names, "log".to_owned())
    }

    #[test]
    fn a_pack_has_no_name_until_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ours.warpcc-pack");
        let count = || std::fs::read_dir(folder.path()).expect("a folder").count();
        // A process that is killed here leaves nothing.
        let file = write_unnamed(&path, b"a pack").expect("written");
        assert_eq!(count(), 0);
        drop(file);
        for number in [1, 2] {
            write_pack(&path, &[(key(number), &image(number))]).expect("written");
            let pack = Pack::open(&path).expect("a pack");
            assert_eq!(pack.keys().collect::<Vec<_>>(), [key(number)]);
            assert_eq!(count(), 1);
        }
    }

    #[test]
    fn a_pack_that_others_can_write_to_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ours.warpcc-pack");
        write_pack(&path, &[(key(1), &image(1))]).expect("written");
        for (mode, is_used) in [(0o666, false), (0o664, true)] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("changed");
            assert_eq!(Pack::open(&path).is_ok(), is_used);
        }
        // Only root can give a file away; other users' tests end here.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12_345), None).expect("given away");
            let error = Pack::open(&path).expect_err("another user's").to_string();
            assert!(error.contains("belongs to user 12345"), "{error}");
        }
    }

    /// Anybody can make a pack whose hashes are right.
    #[test]
    fn what_says_that_it_is_huge_or_is_no_file_takes_no_memory_and_no_time() {
        use std::os::unix::fs::FileExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("holes.pack");
        for (offset, image) in [
            (1 << 40, (1 << 40) - 200),
            (LARGEST_BODY + 200, LARGEST_BODY),
            (100, u64::MAX),
        ] {
            let items: Vec<Item> = vec![([1; 32], 90, image, 5, [2; 32])];
            let index = postcard::to_allocvec(&items).expect("bytes");
            let mut head = MAGIC.to_vec();
            head.extend(u64::to_le_bytes(offset));
            head.extend((index.len() as u64).to_le_bytes());
            head.extend(blake3::hash(&index).as_bytes());
            let file = File::create(&path).expect("a file");
            file.write_all_at(&head, 0).expect("written");
            file.write_all_at(&index, offset).expect("a hole before it");
            let error = Pack::open(&path)
                .expect_err("no image is as large")
                .to_string();
            assert!(error.contains("make it again"), "{error}");
        }
        // Nobody writes to it, so that opening it would wait for ever.
        let pipe = folder.path().join("pipe.pack");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo starts").success());
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            let error = Pack::open(path).expect_err("no file").to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
    }
}
