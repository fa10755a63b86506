//! Makes a bundle of headers and fragments. The same items make the same bytes, in whatever order they are added.

use std::collections::BTreeMap;

use crate::bundle::{
    BundleError, HEAD, Item, ItemKind, LARGEST_CONTENTS, LARGEST_LIST, MAGIC, is_name,
};
use crate::include_lines::with_whole_names;

/// zstd's level: higher ones save a few percent and take several times as long for 20 MB of headers.
const LEVEL: i32 = 12;

/// The items of a bundle that is being made.
#[derive(Debug, Default)]
pub struct BundleMaker {
    items: BTreeMap<(ItemKind, String), Vec<u8>>,
}

impl BundleMaker {
    /// A bundle with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a header, under its name in the `#include` (`lib/a.cuh`).
    ///
    /// # Errors
    /// The name is empty, has a NUL or is longer than a line; another header has it; or the text is not UTF-8, or has a NUL.
    pub fn header(&mut self, name: &str, text: &[u8]) -> Result<(), BundleError> {
        let refuse = |why: String| Err(BundleError(format!("header {name:?}: {why}")));
        if let Err(error) = str::from_utf8(text) {
            let at = error.valid_up_to();
            let line = line_of(text, at);
            return refuse(format!("it is not UTF-8 at byte {at} (line {line})"));
        }
        if let Some(at) = text.iter().position(|byte| *byte == 0) {
            let line = line_of(text, at);
            return refuse(format!(
                "it has a NUL at byte {at} (line {line}), where a compiler would stop reading"
            ));
        }
        self.add(ItemKind::Header, name, text)
    }

    /// Adds LTO-IR, as it is or as a fat binary; messages call it `name`.
    ///
    /// # Errors
    /// It is empty, the name is none, or another fragment has it.
    pub fn fragment(&mut self, name: &str, bytes: &[u8]) -> Result<(), BundleError> {
        if bytes.is_empty() {
            return Err(BundleError(format!("fragment {name:?}: it is empty")));
        }
        self.add(ItemKind::Fragment, name, bytes)
    }

    fn add(&mut self, kind: ItemKind, name: &str, bytes: &[u8]) -> Result<(), BundleError> {
        let refuse = |why: &str| Err(BundleError(format!("{} {name:?}: {why}", kind.word())));
        if !is_name(name) {
            return refuse("a name is one line of 1 to 4096 bytes");
        }
        let item = (kind, name.to_owned());
        match self.items.get(&item) {
            Some(known) if known != bytes => {
                refuse("there are two of this name, with different contents")
            }
            _ => {
                self.items.insert(item, bytes.to_vec());
                Ok(())
            }
        }
    }

    /// The bundle's bytes. An `#include` in a header that names another header of this bundle by a path from its own folder
    /// gets the whole name: NVRTC finds a header that is given as text by its whole name only.
    ///
    /// # Errors
    /// It would have more than 256 MiB of contents, or more than 16 MiB of names.
    pub fn finish(self) -> Result<Vec<u8>, BundleError> {
        let headers = self.items.keys();
        let headers = headers.filter(|(kind, _)| *kind == ItemKind::Header);
        let names = headers.map(|(_, name)| name.clone()).collect();
        let mut list: Vec<Item> = Vec::with_capacity(self.items.len());
        let mut contents = Vec::new();
        for ((kind, name), bytes) in self.items {
            let bytes = match kind {
                ItemKind::Header => with_whole_names(&name, &bytes, &names),
                ItemKind::Fragment => bytes,
            };
            let hash = *blake3::hash(&bytes).as_bytes();
            contents.extend_from_slice(&bytes);
            list.push((kind.number(), name, bytes.len() as u64, hash));
        }
        if contents.len() as u64 > LARGEST_CONTENTS {
            return Err(BundleError(format!(
                "{} bytes are too many: a bundle has at most 256 MiB",
                contents.len()
            )));
        }
        let failed = |why: String| BundleError(format!("it cannot be written: {why}"));
        let count = list.len();
        let list = postcard::to_allocvec(&list).map_err(|error| failed(error.to_string()))?;
        if list.len() as u64 > LARGEST_LIST {
            return Err(BundleError(format!("{count} names are too many")));
        }
        let body = zstd::bulk::compress(&contents, LEVEL);
        let body = body.map_err(|error| failed(error.to_string()))?;
        let mut bytes = Vec::with_capacity(HEAD + list.len() + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend((list.len() as u64).to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(blake3::hash(&list).as_bytes());
        bytes.extend(list);
        bytes.extend(body);
        Ok(bytes)
    }
}

fn line_of(text: &[u8], at: usize) -> usize {
    text[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}
