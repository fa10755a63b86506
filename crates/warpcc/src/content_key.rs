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

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use warpcc_cache::{Digest, DiskStore, Key, KeyVariants, regular_file};
use warpcc_engine::pieces;
use warpcc_path_map::{BaseDirs, PathMap, files_in_markers, is_in_marker};
use warpcc_plan::{Arg, FileKind, PlanFile, TaskGraph, Tool};

use crate::computed_includes;
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

/// Builtins of the compilers whose value is the path of the source. The preprocessed text then contains the path only after
/// the front end, and in no line marker.
const PATH_BUILTINS: [&[u8]; 2] = [b"__builtin_FILE", b"__builtin_source_location"];

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

/// The places at which `bytes` contain a folder of the map, or one of the words.
fn find_paths<'a>(
    map: &'a PathMap,
    words: &'a [&'a [u8]],
    bytes: &'a [u8],
) -> impl Iterator<Item = Range<usize>> + 'a {
    let of_word = move |word: &&'a [u8]| {
        let length = word.len();
        memmem::find_iter(bytes, *word).map(move |at| at..at + length)
    };
    map.places_in(bytes).chain(words.iter().flat_map(of_word))
}

/// The search for the source's path in the files of a run. Files are at their current paths.
pub struct PathCheck {
    /// Preprocessed texts.
    preprocessed: Vec<PathBuf>,
    /// PTX, and the final files.
    results: Vec<PathBuf>,
    /// Beginnings of module ids: the CRC of the source's path, as nvcc and cudafe++ write it.
    ids: Vec<String>,
}

impl PathCheck {
    /// Collects the files. `current_path` gives the current path of a file of the plan. `None` where a step is of a tool
    /// whose use of the path is not known, where the source's text is in no file, or where a module id cannot be read.
    pub fn collect(graph: &TaskGraph, current_path: &dyn Fn(&PlanFile) -> PathBuf) -> Option<Self> {
        let mut path_check = Self {
            preprocessed: Vec::new(),
            results: Vec::new(),
            ids: Vec::new(),
        };
        for step in &graph.steps {
            let files = step.writes.iter().map(|&id| current_path(graph.file(id)));
            match step.tool {
                Tool::Preprocess => path_check.preprocessed.extend(files),
                Tool::Cicc | Tool::Nvvm => {
                    path_check
                        .results
                        .extend(files.filter(|path| path.extension().is_some_and(|e| e == "ptx")));
                }
                Tool::Ptxas
                | Tool::Fatbinary
                | Tool::HostCompile
                | Tool::HostAssembly
                | Tool::Assemble
                | Tool::EarlyStub
                | Tool::CudaFe
                | Tool::FilterDependencies => {}
                _ => return None,
            }
            let words: Vec<&str> = step.args.iter().filter_map(Arg::as_text).collect();
            for pair in words.windows(2) {
                if pair[0] == "--orig_src_path_name" {
                    let path = pair[1].trim_matches('"');
                    path_check
                        .ids
                        .push(format!("{:08x}", crc32fast::hash(path.as_bytes())));
                }
            }
        }
        let files = graph.files.iter();
        for file in files.filter(|file| file.is_module_id()) {
            let Ok(text) = fs::read_to_string(current_path(file)) else {
                // A hit writes its id to disk too. cudafe++ always makes one, so here nobody knows what to search for. The
                // cicc of real toolkits makes none for a device file alone.
                let writer = file.writer.map(|at| graph.steps[at].tool);
                if writer == Some(Tool::CudaFe) {
                    return None;
                }
                continue;
            };
            let first = text.split('_').find(|part| !part.is_empty());
            path_check.ids.extend(first.map(str::to_owned));
        }
        let outputs = graph.files.iter().filter(|file| {
            let writer = file.writer.map(|at| graph.steps[at].tool);
            file.kind == FileKind::Output && writer != Some(Tool::FilterDependencies)
        });
        path_check.results.extend(outputs.map(current_path));
        // Without a preprocessed text there is a source whose text no file contains.
        (!path_check.preprocessed.is_empty() && !path_check.ids.is_empty()).then_some(path_check)
    }

    /// Whether neither these files nor the tools' `messages` contain a path or a name that the content key leaves out.
    pub fn finds_no_path_of(&self, content_key: &ContentKey, messages: &[&[u8]]) -> bool {
        let map = &content_key.request.path_map;
        let names = content_key.names();
        let ids: Vec<&[u8]> = self.ids.iter().map(|id| id.as_bytes()).collect();
        let names_of = names.iter().map(|name| &name[..]);
        let of_results: Vec<&[u8]> = names_of.chain(ids).collect();
        let folders = map.pairs().into_iter().map(|(folder, _)| folder.len());
        let longest = folders
            .chain(of_results.iter().map(|word| word.len()))
            .max();
        let result_is_clean = |path: &PathBuf| {
            let mut is_clean = true;
            let read = pieces::read(path, |bytes, is_end| {
                // A match at the end of a piece may be part of a longer name: it is read again with the next piece.
                let mut found = find_paths(map, &of_results, bytes);
                is_clean = found.all(|place| place.end == bytes.len() && !is_end);
                is_clean.then(|| bytes.len().saturating_sub(longest.unwrap_or(0)))
            });
            read.is_ok() && is_clean
        };
        // A hit shows the messages with the folders of its own call in them. File names are not replaced.
        let message_is_clean = |text: &&[u8]| {
            let text = map.fix_text(text);
            names.iter().all(|name| memmem::find(&text, name).is_none())
        };
        messages.iter().all(message_is_clean)
            && self.results.iter().all(result_is_clean)
            && self.finds_no_path_in_sources(content_key).unwrap_or(false)
    }

    /// The same for the preprocessed texts, and for all sources and headers in them. `None` where a file cannot be read.
    fn finds_no_path_in_sources(&self, content_key: &ContentKey) -> Option<bool> {
        let map = &content_key.request.path_map;
        let names = content_key.names();
        let names = names.iter().map(|name| &name[..]);
        let words: Vec<&[u8]> = names.chain(PATH_BUILTINS).collect();
        let mut files = BTreeSet::new();
        for path in &self.preprocessed {
            let mut is_clean = true;
            let read = pieces::read_lines(path, |lines| {
                let mut found = find_paths(map, &words, lines);
                is_clean = found.all(|place| is_in_marker(lines, &place));
                let named = files_in_markers(lines).into_iter();
                let named = named.filter(|name| !name.starts_with(b"<"));
                named.for_each(|name| {
                    if !files.contains(name) {
                        files.insert(name.to_vec());
                    }
                });
                is_clean
            });
            read.ok()?;
            if !is_clean {
                return Some(false);
            }
        }
        let mut has_computed_include = false;
        let mut names_component = false;
        let words = content_key.request.key_parts().0;
        if words
            .iter()
            .any(|(_, word)| content_key.is_entered_by(word))
        {
            return Some(false);
        }
        for file in files {
            let text =
                regular_file::read(&content_key.request.directory.join(OsStr::from_bytes(&file)))
                    .ok()?;
            if content_key.request.path_map.is_named_in(&text) || content_key.is_included_by(&text)
            {
                return Some(false);
            }
            has_computed_include |= computed_includes::are_in(&text);
            let mut last = content_key.last_components();
            names_component |= last.any(|name| computed_includes::may_use(&text, name));
        }
        // An option may run into its value, so a word may begin anywhere in it.
        names_component |= words.iter().any(|(_, word)| {
            let mut last = content_key.last_components();
            last.any(|name| memmem::find(word, name).is_some())
        });
        Some(!(has_computed_include && names_component))
    }
}

impl ContentKey {
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
