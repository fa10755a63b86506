//! Twins of a call: the same source in another folder, or under another name.
//!
//! A kernel that a program generates at run time lies in a new folder each time, and each rank of a server has its own. nvcc
//! makes the same of it wherever the result does not hold where the source was. Whether it does is looked at once, when the
//! result is made: the folders, the names and the module id, which nvcc makes of the source's path, must stand nowhere in
//! the preprocessed text, in the PTX, in the final files and in the messages. Then the result is also kept under a key that has
//! the source's content in place of its path.
//!
//! In the relocatable mode (`base_dir`) the tools are told other names, and the result is not nvcc's. Here nothing is told to
//! anybody: what is found elsewhere is what nvcc would have made here.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memchr::memmem;
use warpcc_cache::{Digest, DiskStore, Key, KeyVariants};
use warpcc_engine::pieces;
use warpcc_path_map::{BaseDirs, PathMap, is_in_marker};
use warpcc_plan::{Arg, FileKind, PlanFile, TaskGraph, Tool};

use crate::request::Request;

/// What a call has in common with its twins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// The source's content. Its name and those of what is made of it are others.
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
    likeness: Likeness,
    /// Under which it is noted whether calls with these options could share.
    options: Key,
}

const KIND: &str = "twins";
const OPTIONS: &str = "warpcc options of twins 1";
const MAY_SHARE: &[u8] = b"1";
const MAY_NOT_SHARE: &[u8] = b"0";

/// What gives a source's place away, in a front end: the text has the name of its file without any line marker.
const TELL_PLACES: [&[u8]; 2] = [b"__builtin_FILE", b"__builtin_source_location"];

impl Twin {
    /// The kinds of twins that a call may share its result with, the kind with most of them first; none where there can be none.
    pub fn of(request: &Request) -> Vec<Self> {
        let invocation = &request.invocation;
        let [source] = &invocation.inputs[..] else {
            return Vec::new();
        };
        let outputs = invocation.outputs();
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
        let in_every_folder = request.folders(&BaseDirs::found());
        let one = |likeness: Likeness| {
            let mut named: Vec<(String, PathBuf)> = Vec::new();
            if likeness == Likeness::Content {
                named.push(("source".to_owned(), source.into()));
                for (number, output) in outputs.iter().enumerate() {
                    named.push((format!("output-{number}"), PathBuf::from(&output.path)));
                }
            }
            let folders = in_every_folder.pairs().into_iter();
            named.extend(folders.map(|(folder, name)| (name.to_owned(), folder.into())));
            let mut add = |name: &str, folder: &Path| {
                named.push((name.to_owned(), folder.to_owned()));
                let real = folder.canonicalize().ok();
                named.extend(real.map(|real| (name.to_owned(), real)));
            };
            let parent = Path::new(source).parent();
            // Whatever folders it lies in: headers beside it are looked for beside the twin.
            if let Some(parent) = parent.filter(|parent| parent.is_absolute()) {
                add("folder", parent);
            }
            if !request.is_anywhere() {
                add("here", &request.directory);
            }
            let text = |(name, path): &'_ (String, PathBuf)| {
                let name = name.strip_prefix(warpcc_path_map::BASE).unwrap_or(name);
                Some((name.to_owned(), path.to_str()?.to_owned()))
            };
            let pairs: Vec<(String, String)> = named.iter().filter_map(text).collect();
            let path_map = PathMap::new(pairs.iter().map(|(name, path)| (&**name, &**path)));
            if path_map.is_empty() {
                return None;
            }
            let mut request = Request {
                path_map,
                ..request.clone()
            };
            let options = request.listing().key(OPTIONS);
            request.source = Some(content);
            let keys = request.keys(&request.listing());
            Some(Self {
                request,
                keys,
                likeness,
                options,
            })
        };
        kinds.iter().filter_map(|kind| one(*kind)).collect()
    }
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

/// What a run made, where it is now.
pub struct Evidence {
    /// Preprocessed texts.
    preprocessed: Vec<PathBuf>,
    /// PTX, and the final files.
    made: Vec<PathBuf>,
    /// What begins module ids: the CRC of the source's path, and what the tools have made of it.
    ids: Vec<String>,
}

impl Evidence {
    /// Collects it; `now` says where a file of the plan is. `None` where the plan has a step whose work nobody can judge.
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
        // A source whose preprocessed text nobody sees.
        (!evidence.preprocessed.is_empty() && !evidence.ids.is_empty()).then_some(evidence)
    }

    /// Whether nothing of this says where the source was. `messages` is what the tools said.
    pub fn is_silent_about(&self, twin: &Twin, messages: &[&[u8]]) -> bool {
        let map = &twin.request.path_map;
        let names = twin.names();
        let ids: Vec<&[u8]> = self.ids.iter().map(|id| id.as_bytes()).collect();
        let names_of = names.iter().map(|name| &name[..]);
        let of_texts: Vec<&[u8]> = names_of.clone().chain(TELL_PLACES).collect();
        let of_results: Vec<&[u8]> = names_of.chain(ids).collect();
        let silent_text = |path: &PathBuf| {
            let mut is_silent = true;
            let read = pieces::read_lines(path, |lines| {
                let mut told = told(map, &of_texts, lines);
                is_silent = told.all(|place| is_in_marker(lines, &place));
                is_silent
            });
            read.is_ok() && is_silent
        };
        let folders = map.pairs().into_iter().map(|(folder, _)| folder.len());
        let longest = folders
            .chain(of_results.iter().map(|word| word.len()))
            .max();
        let silent_result = |path: &PathBuf| {
            let mut is_silent = true;
            let read = pieces::read(path, |bytes, is_end| {
                // What stands at the end of a piece comes once more: it may go on.
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
            && self.preprocessed.iter().all(silent_text)
            && self.made.iter().all(silent_result)
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
            // Without the note the next ones wait for each other once more.
            _ = store.put_note(KIND, &self.options, value);
        }
    }

    /// Names that must stand nowhere, apart from whole paths: those of files that are called otherwise elsewhere, also as symbols
    /// have them.
    fn names(&self) -> Vec<Vec<u8>> {
        if self.likeness == Likeness::Names {
            return Vec::new();
        }
        let invocation = &self.request.invocation;
        let outputs = invocation.outputs();
        let paths = invocation
            .inputs
            .iter()
            .chain(outputs.iter().map(|output| &output.path));
        let names = paths.filter_map(|path| Path::new(path).file_name()?.to_str());
        names
            .flat_map(|name| {
                let symbol = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                [name.as_bytes().to_vec(), symbol.into_bytes()]
            })
            .collect()
    }
}
