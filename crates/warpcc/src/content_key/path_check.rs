//! Searches the files of a run for the paths that a content key leaves out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use memchr::memmem;
use warpcc_cache::regular_file;
use warpcc_engine::pieces;
use warpcc_path_map::{PathMap, files_in_markers, is_in_marker};
use warpcc_plan::{Arg, FileKind, PlanFile, TaskGraph, Tool};

use super::ContentKey;
use crate::computed_includes;

/// Builtins of the compilers whose value is the path of the source. The preprocessed text then contains the path only after
/// the front end, and in no line marker.
const PATH_BUILTINS: [&[u8]; 2] = [b"__builtin_FILE", b"__builtin_source_location"];

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
