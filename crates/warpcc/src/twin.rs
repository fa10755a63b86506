//! Twins of a call: the same source in another folder, or under another name.
//!
//! A kernel that a program generates at run time lies in a new folder each time, and each rank of a server has its own. nvcc
//! makes the same result of it unless the result contains the source's path. This is checked once, when the result is
//! made: the folders, the names and the module id, which nvcc makes of the source's path, must stand nowhere in the
//! preprocessed text, in the PTX, in the final files and in the messages. Then the result is also stored under a key that
//! has the source's content in place of its path.
//!
//! In the relocatable mode (`base_dir`) the tools get other names, and the result is not nvcc's. Here the tools get the
//! real names: a twin's result is the one that nvcc would have made here.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use warpcc_cache::{Digest, DiskStore, Key, KeyVariants};
use warpcc_engine::pieces;
use warpcc_path_map::{BaseDirs, PathMap, files_in_markers, is_in_marker};
use warpcc_plan::{Arg, FileKind, PlanFile, TaskGraph, Tool};

use crate::computed_includes;
use crate::request::{Request, SOURCE_CONTENT};

/// The parts that a call shares with its twins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// The source's content. The source and the files made from it have other names.
    Content,
    /// The content and the names, in another folder.
    Names,
}

/// A call, in the words that it shares with its twins.
pub struct Twin {
    /// The call; its map leaves out what differs.
    pub request: Request,
    /// Its keys.
    pub keys: KeyVariants,
    /// The key of the note whether calls with these options could share.
    options: Key,
}

const KIND: &str = "twins";
const OPTIONS: &str = "warpcc options of twins 1";
const MAY_SHARE: &[u8] = b"1";
const MAY_NOT_SHARE: &[u8] = b"0";

/// Builtins that give a source's path away in a front end: they put the file's name into the text without any line
/// marker.
const TELL_PLACES: [&[u8]; 2] = [b"__builtin_FILE", b"__builtin_source_location"];

impl Twin {
    /// The kinds of twins that a call may share its result with, the kind with the most twins first; empty where there can
    /// be no twins.
    pub fn of(request: &Request) -> Vec<Self> {
        let invocation = &request.invocation;
        let [source] = &invocation.inputs[..] else {
            return Vec::new();
        };
        let kinds: &[Likeness] = match invocation.made_of_each() {
            Some("ptx" | "cubin" | "fatbin") => &[Likeness::Content, Likeness::Names],
            Some("o") => &[Likeness::Names],
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
        let one = |likeness: Likeness| {
            let path_map = paths(request, likeness, source);
            if path_map.is_empty() {
                return None;
            }
            let request = Request {
                path_map,
                source: Some(content),
                ..request.clone()
            };
            let mut listing = request.listing();
            let keys = request.keys(&listing);
            listing.0.retain(|(name, _)| name != SOURCE_CONTENT);
            let options = listing.key(OPTIONS);
            let twin = Self {
                request,
                keys,
                options,
            };
            // A word that is no path is not mapped. If it names one of the folders, it means that folder wherever the source
            // is, so the call has no twin.
            let mut words = listing.0.iter();
            let map = &twin.request.path_map;
            (!words.any(|(_, word)| map.is_named_in(word))).then_some(twin)
        };
        kinds.iter().filter_map(|kind| one(*kind)).collect()
    }

    /// The last components of the mapped folders and files. A path that is put together and leads to one of them contains
    /// its last component.
    fn last_components(&self) -> impl Iterator<Item = &[u8]> {
        let map = &self.request.path_map;
        let paths = map.folders().chain(map.files());
        let last = paths.filter_map(|path| Path::new(path).file_name());
        last.map(OsStr::as_encoded_bytes)
    }

    /// Whether a source includes a file by a name that differs for a twin, or includes a path that goes from one of the
    /// folders into another one.
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

    /// Whether an option goes from one of the folders into another one.
    fn is_entered_by(&self, word: &[u8]) -> bool {
        let mut names = self.request.path_map.nested_components();
        let is_part = |c: &u8| c.is_ascii_alphanumeric() || b"_-.+~%@".contains(c);
        names.any(|name| {
            memmem::find_iter(word, name).any(|at| {
                let begun = word[..at]
                    .rsplit(|c| !is_part(c))
                    .next()
                    .unwrap_or_default();
                // An option may run into its value: -Ia.
                let begins = begun.is_empty() || begun.starts_with(b"-");
                begins && !word.get(at + name.len()).is_some_and(is_part)
            })
        })
    }
}

/// The map of the paths that differ between a call and its twins.
fn paths(request: &Request, likeness: Likeness, source: &str) -> PathMap {
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
    // The source's folder, wherever it is: headers next to the source are looked for next to the twin.
    if let Some(parent) = parent.filter(|parent| parent.is_absolute()) {
        add("folder", parent);
    }
    if !request.is_anywhere() {
        add("here", &request.directory);
    }
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    if likeness == Likeness::Content {
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
    fn of(pairs: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
        pairs.iter().map(|(name, path)| (&**name, &**path))
    }
    PathMap::new(of(&folders)).with_files(of(&files))
}

/// Where folders of the map stand, or one of these words.
fn told<'a>(
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

/// The files of a run that show whether its result may be shared, at their current paths.
pub struct Evidence {
    /// Preprocessed texts.
    preprocessed: Vec<PathBuf>,
    /// PTX, and the final files.
    made: Vec<PathBuf>,
    /// Beginnings of module ids: the CRC of the source's path, and the forms that the tools make of it.
    ids: Vec<String>,
}

impl Evidence {
    /// Collects the files; `now` gives the current path of a file of the plan. `None` where a step's work cannot be judged.
    pub fn collect(graph: &TaskGraph, now: &dyn Fn(&PlanFile) -> PathBuf) -> Option<Self> {
        let mut evidence = Self {
            preprocessed: Vec::new(),
            made: Vec::new(),
            ids: Vec::new(),
        };
        for step in &graph.steps {
            let files = step.writes.iter().map(|&id| now(graph.file(id)));
            match step.tool {
                Tool::Preprocess => evidence.preprocessed.extend(files),
                Tool::Cicc => {
                    evidence
                        .made
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
                    evidence
                        .ids
                        .push(format!("{:08x}", crc32fast::hash(path.as_bytes())));
                }
            }
        }
        let names = graph
            .files
            .iter()
            .filter(|file| file.path.ends_with(".module_id"));
        for text in names.filter_map(|file| fs::read_to_string(now(file)).ok()) {
            let first = text.split('_').find(|part| !part.is_empty());
            evidence.ids.extend(first.map(str::to_owned));
        }
        let outputs = graph.files.iter().filter(|file| {
            let writer = file.writer.map(|at| graph.steps[at].tool);
            file.kind == FileKind::Output && writer != Some(Tool::FilterDependencies)
        });
        evidence.made.extend(outputs.map(now));
        // Without preprocessed texts, there is a source whose text is not seen.
        (!evidence.preprocessed.is_empty() && !evidence.ids.is_empty()).then_some(evidence)
    }

    /// Whether neither these files nor the tools' `messages` contain the source's path or names.
    pub fn is_silent_about(&self, twin: &Twin, messages: &[&[u8]]) -> bool {
        let map = &twin.request.path_map;
        let names = twin.names();
        let ids: Vec<&[u8]> = self.ids.iter().map(|id| id.as_bytes()).collect();
        let names_of = names.iter().map(|name| &name[..]);
        let of_results: Vec<&[u8]> = names_of.chain(ids).collect();
        let folders = map.pairs().into_iter().map(|(folder, _)| folder.len());
        let longest = folders
            .chain(of_results.iter().map(|word| word.len()))
            .max();
        let silent_result = |path: &PathBuf| {
            let mut is_silent = true;
            let read = pieces::read(path, |bytes, is_end| {
                // A match at the end of a piece may continue: it is read again with the next piece.
                let mut told = told(map, &of_results, bytes);
                is_silent = told.all(|place| place.end == bytes.len() && !is_end);
                is_silent.then(|| bytes.len().saturating_sub(longest.unwrap_or(0)))
            });
            read.is_ok() && is_silent
        };
        // The messages are shown with the names of the folders there. Relative names are not in the map.
        let silent_message = |text: &&[u8]| {
            let text = map.fix_text(text);
            names.iter().all(|name| memmem::find(&text, name).is_none())
        };
        messages.iter().all(silent_message)
            && self.made.iter().all(silent_result)
            && self.sources_are_silent_about(twin).unwrap_or(false)
    }

    /// The same for the preprocessed texts, and for all files that they were made of. A header's name that is a whole path
    /// leads to the same file from everywhere. `None` where a file cannot be read.
    fn sources_are_silent_about(&self, twin: &Twin) -> Option<bool> {
        let map = &twin.request.path_map;
        let names = twin.names();
        let names = names.iter().map(|name| &name[..]);
        let words: Vec<&[u8]> = names.chain(TELL_PLACES).collect();
        let mut files = BTreeSet::new();
        for path in &self.preprocessed {
            let mut is_silent = true;
            let read = pieces::read_lines(path, |lines| {
                let mut told = told(map, &words, lines);
                is_silent = told.all(|place| is_in_marker(lines, &place));
                let named = files_in_markers(lines).into_iter();
                let named = named.filter(|name| !name.starts_with(b"<"));
                named.for_each(|name| {
                    if !files.contains(name) {
                        files.insert(name.to_vec());
                    }
                });
                is_silent
            });
            read.ok()?;
            if !is_silent {
                return Some(false);
            }
        }
        let mut puts_names_together = false;
        let mut has_component = false;
        let words = twin.request.listing().0;
        if words.iter().any(|(_, word)| twin.is_entered_by(word)) {
            return Some(false);
        }
        let told = |text: &[u8]| {
            let mut last = twin.last_components();
            last.any(|name| memmem::find(text, name).is_some())
        };
        for file in files {
            let text = fs::read(twin.request.directory.join(OsStr::from_bytes(&file))).ok()?;
            if twin.request.path_map.is_named_in(&text) || twin.is_included_by(&text) {
                return Some(false);
            }
            puts_names_together |= computed_includes::are_in(&text);
            has_component |= told(&text);
        }
        let has_component = has_component || words.iter().any(|(_, word)| told(word));
        Some(!(puts_names_together && has_component))
    }
}

impl Twin {
    /// Whether a call with these options may share its result, as far as the last one tells.
    pub fn may_share(&self, store: &DiskStore) -> bool {
        store.note(KIND, &self.options).as_deref() != Some(MAY_NOT_SHARE)
    }

    /// Notes whether the call could share its result.
    pub fn note(&self, store: &DiskStore, could_share: bool) {
        if self.may_share(store) != could_share {
            let value = match could_share {
                true => MAY_SHARE,
                false => MAY_NOT_SHARE,
            };
            // Without the note the next twins wait for each other once more.
            _ = store.put_note(KIND, &self.options, value);
        }
    }

    /// Names that must stand nowhere, apart from whole paths: names of files that differ for a twin, also as they stand in
    /// symbols.
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
