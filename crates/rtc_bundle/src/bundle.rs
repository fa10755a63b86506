//! Reads a bundle. Its list is verified when it is opened, its contents when they are decompressed.
//!
//! ```text
//! bundle = "warpcc-bundle 1\n" number(list's length) number(body's length) hash(list) list body
//! list   = postcard of (kind, name, content's length, hash(content))*, sorted by kind and name
//! body   = zstd of all contents, in the order of the list
//! ```
//!
//! A number has 8 bytes, the lowest first; a hash is a BLAKE3. The hash of the list is the bundle's digest: it depends on
//! names and contents, and not on how they were compressed.

use std::borrow::Cow;
use std::fmt;
use std::io::Read as _;
use std::sync::{Arc, OnceLock};

pub(crate) const MAGIC: &[u8] = b"warpcc-bundle 1\n";
pub(crate) const HEAD: usize = MAGIC.len() + 8 + 8 + 32;
/// No list is larger: some 100,000 headers.
pub(crate) const LARGEST_LIST: u64 = 16 << 20;
/// No bundle has more contents, decompressed: what a foreign one can make a process hold.
pub(crate) const LARGEST_CONTENTS: u64 = 256 << 20;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    /// A header: text, under the name in the `#include`.
    Header,
    /// LTO-IR, alone or as a fat binary, to be linked with a kernel.
    Fragment,
}

impl ItemKind {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Header => 0,
            Self::Fragment => 1,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Self::Header, Self::Fragment]
            .into_iter()
            .find(|kind| kind.number() == number)
    }

    /// In one word, for messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Fragment => "fragment",
        }
    }
}

/// An item of the list: kind, name, length, hash.
pub(crate) type Item = (u8, String, u64, [u8; 32]);

/// An item that was read.
type Listed = (ItemKind, Arc<str>, u64, [u8; 32]);

/// An item with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// What it is.
    pub kind: ItemKind,
    /// The name of a header in the `#include`, or of a fragment in messages.
    pub name: Arc<str>,
    /// The bytes. Those of a header are UTF-8 without a NUL.
    pub bytes: Arc<[u8]>,
}

/// Why bytes are no bundle, or none can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BundleError(pub String);

/// A bundle that was opened. Cheap to clone.
#[derive(Clone)]
pub struct Bundle(Arc<Opened>);

struct Opened {
    digest: [u8; 32],
    items: Vec<Listed>,
    bytes: Cow<'static, [u8]>,
    /// Where the body begins.
    body: usize,
    /// Set by the first caller that needs them.
    contents: OnceLock<Result<Vec<Content>, BundleError>>,
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("digest", &self.digest_hex())
            .field("items", &self.0.items.len())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Bundle {
    fn eq(&self, other: &Self) -> bool {
        self.0.digest == other.0.digest
    }
}

impl Eq for Bundle {}

impl std::hash::Hash for Bundle {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.digest.hash(state);
    }
}

impl Bundle {
    /// Opens a bundle: reads its list, and decompresses nothing. Bytes of a `static` are not copied.
    ///
    /// # Errors
    /// The bytes are damaged, or no bundle of this version.
    pub fn open(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, BundleError> {
        let bytes = bytes.into();
        let damaged = |why: &str| BundleError(format!("{why}; make it again"));
        if !bytes.starts_with(MAGIC) {
            return Err(damaged("it is no bundle of this version"));
        }
        let head = bytes
            .get(..HEAD)
            .ok_or_else(|| damaged("it is truncated"))?;
        let number = |at: usize| {
            let number = head[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(number)
        };
        let (list, body) = (number(MAGIC.len()), number(MAGIC.len() + 8));
        let end = list
            .checked_add(body)
            .and_then(|length| length.checked_add(HEAD as u64));
        if list > LARGEST_LIST || end != Some(bytes.len() as u64) {
            return Err(damaged("it is truncated or damaged"));
        }
        // Less than the bytes that there are.
        let body = HEAD + list as usize;
        let list = &bytes[HEAD..body];
        let digest = *blake3::hash(list).as_bytes();
        if digest != head[HEAD - 32..] {
            return Err(damaged("its list is damaged"));
        }
        let items = read_list(list).ok_or_else(|| damaged("its list cannot be understood"))?;
        Ok(Self(Arc::new(Opened {
            digest,
            items,
            body,
            bytes,
            contents: OnceLock::new(),
        })))
    }

    /// The hash of names and contents: two bundles with the same digest are equal.
    pub fn digest(&self) -> &[u8; 32] {
        &self.0.digest
    }

    /// The digest for people.
    pub fn digest_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0.digest).to_hex().to_string()
    }

    /// Kind, name and hash of each item, sorted.
    pub fn items(&self) -> impl Iterator<Item = (ItemKind, &Arc<str>, &[u8; 32])> {
        self.0
            .items
            .iter()
            .map(|(kind, name, _, hash)| (*kind, name, hash))
    }

    /// Whether it has an item of this kind.
    pub fn has(&self, kind: ItemKind) -> bool {
        self.0.items.iter().any(|item| item.0 == kind)
    }

    /// All items with their contents. The first call decompresses and verifies them; they stay in memory as long as the
    /// bundle.
    ///
    /// # Errors
    /// The contents are damaged.
    pub fn contents(&self) -> Result<&[Content], BundleError> {
        let contents = self.0.contents.get_or_init(|| {
            self.0
                .unpack()
                .ok_or_else(|| BundleError("its contents are damaged; make it again".to_owned()))
        });
        contents.as_deref().map_err(Clone::clone)
    }
}

impl Opened {
    fn unpack(&self) -> Option<Vec<Content>> {
        let total: u64 = self.items.iter().map(|item| item.2).sum();
        let mut all = Vec::new();
        // Read to the end: what is longer than the list says is damaged too, and is not held.
        let body = self.bytes.get(self.body..)?;
        let decoder = zstd::Decoder::with_buffer(body).ok()?;
        decoder.take(total + 1).read_to_end(&mut all).ok()?;
        if all.len() as u64 != total {
            return None;
        }
        let mut rest = all.as_slice();
        let mut contents = Vec::with_capacity(self.items.len());
        for (kind, name, length, hash) in &self.items {
            let (content, after) = rest.split_at_checked(usize::try_from(*length).ok()?)?;
            rest = after;
            let is_text = || str::from_utf8(content).is_ok() && !content.contains(&0);
            let is_right = blake3::hash(content).as_bytes() == hash;
            if !is_right || *kind == ItemKind::Header && !is_text() {
                return None;
            }
            contents.push(Content {
                kind: *kind,
                name: name.clone(),
                bytes: content.into(),
            });
        }
        Some(contents)
    }
}

/// The items, if they are sorted, have names, and are no larger than allowed.
fn read_list(list: &[u8]) -> Option<Vec<Listed>> {
    let (items, rest) = postcard::take_from_bytes::<Vec<Item>>(list).ok()?;
    let sorted = items.is_sorted_by(|one, other| (one.0, &one.1) < (other.0, &other.1));
    let total = items
        .iter()
        .try_fold(0_u64, |sum, item| sum.checked_add(item.2));
    let fits = total.is_some_and(|total| total <= LARGEST_CONTENTS);
    if !rest.is_empty() || !sorted || !fits {
        return None;
    }
    let read = |(kind, name, length, hash): Item| {
        let named = is_name(&name);
        let kind = ItemKind::from_number(kind)?;
        named.then(|| (kind, Arc::from(name), length, hash))
    };
    items.into_iter().map(read).collect()
}

/// Whether an item may have this name: a line of text.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 4096 && !name.contains(['\0', '\n', '\r'])
}
