//! Whether a result names the working directory although no input does.
//!
//! NVIDIA's tools ask for the directory in every run. With debug information and in packed code it is part of their
//! output, and keys hold it. In all other output the result itself is searched: an unknown tool may write it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memmem::Finder;
use warpcc_plan::{Part, Step, Tool};

use crate::context::RunContext;
use crate::event::Finished;
use crate::module_id;
use crate::place::directory_as_called;
use crate::relocate;

/// As much of a file as is searched at once: on the stack, and longer than any path.
const PIECE: usize = 32 << 10;

/// Whether the output or a message of a step of NVIDIA's tools names the directory that it ran in, by a word that no
/// input has. An output that cannot be read, and a name that is in every path, count as named.
pub fn is_named(run: &RunContext<'_>, step: &Step, finished: &Finished) -> bool {
    let directory = run.options.directory;
    let is_nvidias = matches!(
        step.tool,
        Tool::CudaFe | Tool::Cicc | Tool::EarlyStub | Tool::Ptxas | Tool::Fatbinary | Tool::Nvlink
    );
    if !is_nvidias || relocate::directory(step, run.artifacts, run.options) != directory {
        return false;
    }
    if directory == Path::new("/") {
        return true;
    }
    let called = directory_as_called(run.options.variable("PWD"), directory);
    let mut names = std::iter::once(directory.as_os_str()).chain(called);
    names.any(|name| {
        words_of_result(run, step, finished, name.as_encoded_bytes())
            .and_then(|words| {
                Ok(!words.is_empty()
                    && !words.is_subset(&words_of_inputs(run, step, name.as_encoded_bytes())?))
            })
            .unwrap_or(true)
    })
}

fn words_of_result(
    run: &RunContext<'_>,
    step: &Step,
    finished: &Finished,
    name: &[u8],
) -> io::Result<BTreeSet<Vec<u8>>> {
    let finder = Finder::new(name);
    let mut words = BTreeSet::new();
    for said in [&finished.stdout, &finished.stderr] {
        collect(&finder, said, &mut words);
    }
    for &id in &step.writes {
        match collect_file(&finder, run.artifacts.path(id), &mut words) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !module_id::may_be_missing(run, step, id) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    let private = run.graph.private.as_bytes();
    words.retain(|word| private.is_empty() || !word.starts_with(private));
    Ok(words)
}

fn words_of_inputs(
    run: &RunContext<'_>,
    step: &Step,
    name: &[u8],
) -> io::Result<BTreeSet<Vec<u8>>> {
    let finder = Finder::new(name);
    let mut words = BTreeSet::new();
    for part in step.args.iter().flat_map(|arg| &arg.0) {
        let text = match part {
            Part::Text(text) => text.as_bytes(),
            Part::File(id) => run.artifacts.path(*id).as_os_str().as_encoded_bytes(),
        };
        collect(&finder, text, &mut words);
    }
    for &id in &step.reads {
        collect_file(&finder, run.artifacts.path(id), &mut words)?;
    }
    Ok(words)
}

/// As [`collect`], of a file, of which a piece at a time is in memory unless it has the name.
fn collect_file(finder: &Finder<'_>, path: &Path, words: &mut BTreeSet<Vec<u8>>) -> io::Result<()> {
    let file = File::open(path)?;
    let mut piece = [0; PIECE];
    let overlap = finder.needle().len();
    let (mut at, mut kept) = (0, 0);
    loop {
        match file.read_at(&mut piece[kept..], at) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                at += read as u64;
                let filled = kept + read;
                if finder.find(&piece[..filled]).is_some() {
                    collect(finder, &fs::read(path)?, words);
                    return Ok(());
                }
                // The name may begin in this piece and end in the next.
                kept = filled.min(overlap);
                piece.copy_within(filled - kept..filled, 0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Adds the words of `text` that are the name, or a path below it.
fn collect(finder: &Finder<'_>, text: &[u8], words: &mut BTreeSet<Vec<u8>>) {
    for at in finder.find_iter(text) {
        let rest = &text[at..];
        let behind = &rest[finder.needle().len()..];
        let more = behind.iter().position(|&byte| !in_paths(byte));
        let more = &behind[..more.unwrap_or(behind.len())];
        if more.first().is_none_or(|&byte| byte == b'/') {
            words.insert(rest[..finder.needle().len() + more.len()].to_vec());
        }
    }
}

/// Whether a path's word goes on with this byte. Any rule would do that ends the same word in an input and a result.
const fn in_paths(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'+')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, text: &str) -> Vec<String> {
        let mut words = BTreeSet::new();
        collect(&Finder::new(name), text.as_bytes(), &mut words);
        words
            .into_iter()
            .map(|word| String::from_utf8(word).expect("text"))
            .collect()
    }

    #[test]
    fn a_word_is_the_folder_or_a_path_below_it() {
        assert_eq!(words("/w/a", "x /w/a y"), ["/w/a"]);
        assert_eq!(words("/w/a", "\"/w/a/b.h\" /w/a\0"), ["/w/a", "/w/a/b.h"]);
        assert_eq!(words("/w/a", "/w/ab /w/a.o /w /w/b"), [""; 0]);
        assert_eq!(words("/w/a", "/w/a"), ["/w/a"]);
    }

    #[test]
    fn a_name_is_found_at_every_place_of_a_file() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let finder = Finder::new("/w/a");
        for place in (PIECE - 5..PIECE + 2).chain(2 * PIECE - 9..2 * PIECE + 2) {
            let mut text = vec![b' '; 3 * PIECE];
            text[place..place + 4].copy_from_slice(b"/w/a");
            fs::write(file.path(), &text).expect("write");
            let mut words = BTreeSet::new();
            collect_file(&finder, file.path(), &mut words).expect("read");
            assert_eq!(words.len(), 1, "{place}");
        }
    }
}
