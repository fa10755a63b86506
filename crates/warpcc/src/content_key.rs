//! Content keys of a call: they contain the source's content in place of its path, so that the same source hits in another
//! folder or under another name.
//!
//! A program that generates kernels at run time writes each one into a new folder, and each rank of a server has folders of
//! its own. nvcc's result is the same in each folder, unless it contains the source's path. warpcc checks this once, when
//! the result is made. The paths, the file names and the module id (nvcc computes it from the source's path) must not occur
//! in the preprocessed text, the PTX, the final files or the messages. If so, the result is also stored under the content
//! keys.
//!
//! `base_dir` is different: there the tools get other paths than the user's, and the result is not nvcc's. With a content
//! key the tools get the real paths, and a hit is what nvcc would have made here.

mod path_check;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use memchr::memmem;
use warpcc_cache::{Digest, DiskStore, Key, KeyVariants};
use warpcc_path_map::{BaseDirs, PathMap};

pub use self::path_check::PathCheck;
use crate::nested_paths::{is_in_component, is_in_plain_path};
use crate::request::{Request, SOURCE_CONTENT};

/// The properties of the source that a content key contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedBy {
    /// The content alone. The source and the outputs may have any names, in any folder.
    Content,
    /// The content and the names of the source and the outputs. The folder may be any.
    ContentAndNames,
}

/// A content key of a call.
pub struct ContentKey {
    /// The call, with a path map that leaves out the paths that may differ.
    pub request: Request,
    /// The key, in its variants.
    pub keys: KeyVariants,
    /// The key of the note that says whether results of calls with these options can be shared.
    options: Key,
}

const KIND: &str = "twins";
const OPTIONS: &str = "warpcc options of twins 1";
const MAY_SHARE: &[u8] = b"1";
const MAY_NOT_SHARE: &[u8] = b"0";

impl ContentKey {
    /// All content keys of a call, the one that most calls share first. Empty for a call whose result depends on its paths.
    pub fn all_of(request: &Request) -> Vec<Self> {
        let invocation = &request.invocation;
        let [source] = &invocation.inputs[..] else {
            return Vec::new();
        };
        let kinds: &[KeyedBy] = match invocation.made_of_each() {
            Some("ptx" | "cubin" | "fatbin") => &[KeyedBy::Content, KeyedBy::ContentAndNames],
            Some("o") => &[KeyedBy::ContentAndNames],
            _ => return Vec::new(),
        };
        if !request.path_map.is_empty()
            || invocation.debug
            || invocation.native
            || invocation.library
            || invocation.leaves_intermediate_files()
            || invocation.makes_lto_code()
        {
            return Vec::new();
        }
        let Ok(content) = Digest::of_file(&request.absolute(source)) else {
            return Vec::new();
        };
        let one = |keyed_by: KeyedBy| {
            let path_map = path_map(request, keyed_by, source);
            if path_map.is_empty() {
                return None;
            }
            let request = Request {
                path_map,
                source: Some(content),
                ..request.clone()
            };
            let mut key_parts = request.key_parts();
            let keys = request.keys(&key_parts);
            key_parts.0.retain(|(name, _)| name != SOURCE_CONTENT);
            let options = key_parts.key(OPTIONS);
            let content_key = Self {
                request,
                keys,
                options,
            };
            // Only paths are mapped. If another argument still contains one of the folders, it means this folder for each
            // call, so the call has no content key.
            let mut words = key_parts.0.iter();
            let map = &content_key.request.path_map;
            (!words.any(|(_, word)| map.is_named_in(word))).then_some(content_key)
        };
        kinds.iter().filter_map(|kind| one(*kind)).collect()
    }

    /// The last components of the mapped folders and files. A macro that builds a path to one of them must contain its last
    /// component.
    fn last_components(&self) -> impl Iterator<Item = &[u8]> {
        let map = &self.request.path_map;
        let paths = map.folders().chain(map.files());
        let last = paths.filter_map(|path| Path::new(path).file_name());
        last.map(OsStr::as_encoded_bytes)
    }

    /// Whether a text includes a file whose name the key leaves out, or a path that leads from one mapped folder into
    /// another one.
    fn is_included_by(&self, source: &[u8]) -> bool {
        let map = &self.request.path_map;
        let mut files = map.files().filter_map(|path| path.rsplit('/').next());
        let has = |name: &str, ends: &[u8]| {
            memmem::find_iter(source, name).any(|at| {
                let before = at.checked_sub(1).and_then(|at| source.get(at));
                let after = source.get(at + name.len());
                matches!(before, Some(b'"' | b'<' | b'/'))
                    && after.is_some_and(|after| ends.contains(after))
            })
        };
        files.any(|name| has(name, b"\">")) || map.nested_components().any(|name| has(name, b"/"))
    }

    /// Whether the path in an option leads from one mapped folder into another one.
    fn is_entered_by(&self, word: &[u8]) -> bool {
        let mut names = self.request.path_map.nested_components();
        names.any(|name| {
            memmem::find_iter(word, name).any(|at| {
                let begun = word[..at]
                    .rsplit(|c| !is_in_component(c))
                    .next()
                    .unwrap_or_default();
                // An option may run into its value: -Ia.
                let begins = begun.is_empty() || begun.starts_with(b"-");
                let ends = !word.get(at + name.len()).is_some_and(is_in_component);
                begins && ends && !is_in_plain_path(word, at)
            })
        })
    }

    /// Whether a call with these options may share its result. It is true until a result of such a call turned out to
    /// contain a path.
    pub fn may_share(&self, store: &DiskStore) -> bool {
        store.note(KIND, &self.options).as_deref() != Some(MAY_NOT_SHARE)
    }

    /// Notes whether the call could share its result, for [`Self::may_share`].
    pub fn note(&self, store: &DiskStore, could_share: bool) {
        if self.may_share(store) != could_share {
            let value = match could_share {
                true => MAY_SHARE,
                false => MAY_NOT_SHARE,
            };
            // If the note cannot be written, calls with these options wait for each other once more.
            _ = store.put_note(KIND, &self.options, value);
        }
    }

    /// File names that the key leaves out, as they are and as parts of symbols. No result may contain one.
    fn names(&self) -> Vec<Vec<u8>> {
        let files = self.request.path_map.files();
        let names = files.filter_map(|path| Path::new(path).file_name()?.to_str());
        names
            .flat_map(|name| {
                let symbol = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                [name.as_bytes().to_vec(), symbol.into_bytes()]
            })
            .collect()
    }
}

/// The map that leaves out the paths that a content key does not contain.
fn path_map(request: &Request, keyed_by: KeyedBy, source: &str) -> PathMap {
    let found = request.folders(&BaseDirs::found());
    let found = found.pairs().into_iter().map(|(folder, marker)| {
        let name = marker.strip_prefix(warpcc_path_map::BASE);
        (name.unwrap_or(marker).to_owned(), PathBuf::from(folder))
    });
    let mut folders: Vec<(String, PathBuf)> = found.collect();
    let mut add = |name: &str, folder: &Path| {
        folders.push((name.to_owned(), folder.to_owned()));
        let real = folder.canonicalize().ok();
        folders.extend(real.map(|real| (name.to_owned(), real)));
    };
    let parent = Path::new(source).parent();
    // The source's folder may be any: a header next to the source is looked for next to the other call's source.
    if let Some(parent) = parent.filter(|parent| parent.is_absolute()) {
        add("folder", parent);
    }
    if !request.is_independent_of_directory() {
        add("here", &request.directory);
    }
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    if keyed_by == KeyedBy::Content {
        // nvcc tells the kind of a file by its extension.
        let name = source.rsplit('/').next().unwrap_or(source);
        let name = match name.rsplit_once('.') {
            Some((_, ending)) => format!("source.{ending}"),
            None => "source".to_owned(),
        };
        files.push((name, source.into()));
        for (number, output) in request.invocation.outputs().iter().enumerate() {
            files.push((format!("output-{number}"), PathBuf::from(&output.path)));
        }
    }
    let texts = |pairs: &[(String, PathBuf)]| -> Vec<(String, String)> {
        let text =
            |(name, path): &(String, PathBuf)| Some((name.clone(), path.to_str()?.to_owned()));
        pairs.iter().filter_map(text).collect()
    };
    let (folders, files) = (texts(&folders), texts(&files));
    fn borrowed(pairs: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
        pairs.iter().map(|(name, path)| (&**name, &**path))
    }
    PathMap::new(borrowed(&folders)).with_files(borrowed(&files))
}
