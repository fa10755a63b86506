//! Writes down what a program asks for, as a manifest that `warpcc rtc warm` compiles ahead (`WARPCC_RTC_RECORD`).
//!
//! The file is TOML that only grows: texts, each once, then what is made of them. Any number of processes may add to it,
//! one at a time under a lock of the file; what stands there already, by whomever, is not written again.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::environment::Environment;
use crate::request::{PrecompiledHeaders, Request, Text};
use crate::target::RealArch;

const OPENING: &str = "\
# What a program asked warpcc-rtc for, recorded by WARPCC_RTC_RECORD: `warpcc rtc warm` on this file compiles it ahead.
# For other GPUs than the recording's: warpcc rtc warm FILE --arch sm_80 --arch sm_90
";

/// A file to record in.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    known: Mutex<Known>,
}

/// What stands in the file, as far as it was read.
#[derive(Debug, Default)]
struct Known {
    ids: HashSet<String>,
    read: u64,
}

impl Recorder {
    /// The one that `environment` names.
    pub(crate) fn of(environment: &Environment) -> Option<Self> {
        environment.path("WARPCC_RTC_RECORD").map(Self::at)
    }

    /// One that records in `path`.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    /// Writes down a program that was compiled or found.
    ///
    /// # Errors
    /// It cannot be written down, for people.
    pub(crate) fn program(&self, request: &Request) -> Result<(), String> {
        let mut texts = vec![entry_of_text(&request.source)];
        let mut fields = String::new();
        let mut list = |word: &str, all: &[Text]| {
            if all.is_empty() {
                return;
            }
            let items = all.iter().map(|text| {
                let entry = entry_of_text(&text.text);
                let item = format!(
                    "{{ name = {}, text = \"{}\" }}",
                    quoted(&text.name),
                    entry.id
                );
                texts.push(entry);
                item
            });
            let items: Vec<String> = items.collect();
            _ = writeln!(fields, "{word} = [{}]", items.join(", "));
        };
        list("preamble", &request.preamble);
        list("headers", &request.headers);
        let mut words = |word: &str, all: Vec<&str>| {
            if !all.is_empty() {
                let all: Vec<_> = all.into_iter().map(quoted).collect();
                _ = writeln!(fields, "{word} = [{}]", all.join(", "));
            }
        };
        words(
            "names",
            request.name_expressions.iter().map(|n| &**n).collect(),
        );
        words("options", request.options.iter().map(|o| &**o).collect());
        let folders: Option<Vec<&str>> = request
            .include_folders
            .iter()
            .map(|folder| folder.to_str())
            .collect();
        let folders = folders.ok_or_else(|| {
            let name = &request.name;
            self.not_recorded(&format!("{name} has an include folder that is not UTF-8"))
        })?;
        words("include", folders);
        if request.precompiled_headers == PrecompiledHeaders::Automatic {
            fields.push_str("precompiled_headers = true\n");
        }
        let fields = format!(
            "name = {}\ntarget = \"{}\"\nsource = \"{}\"\n{fields}",
            quoted(&request.name),
            request.target,
            texts[0].id
        );
        texts.push(Entry::of("recorded", &fields));
        self.add(&texts)
    }

    /// Writes down a PTX text that was compiled or found.
    ///
    /// # Errors
    /// As [`Recorder::program`].
    pub(crate) fn ptx(&self, name: &str, ptx: &[u8], target: RealArch) -> Result<(), String> {
        let text = str::from_utf8(ptx)
            .map_err(|_| self.not_recorded(&format!("{name} is no text in UTF-8")))?;
        let text = entry_of_text(text);
        let fields = format!(
            "name = {}\ntarget = \"{target}\"\ntext = \"{}\"\n",
            quoted(name),
            text.id
        );
        self.add(&[text, Entry::of("recorded_ptx", &fields)])
    }

    fn not_recorded(&self, why: &str) -> String {
        format!(
            "not everything is recorded in {}: {why}",
            self.path.display()
        )
    }

    /// Writes those down that are not there yet.
    fn add(&self, entries: &[Entry]) -> Result<(), String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.iter().all(|entry| known.ids.contains(&entry.id)) {
            return Ok(());
        }
        append(&self.path, &mut known, entries)
            .map_err(|error| self.not_recorded(&error.to_string()))
    }
}

fn append(path: &Path, known: &mut Known, entries: &[Entry]) -> std::io::Result<()> {
    let mut file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    // Given back when the file is closed.
    file.lock()?;
    let length = file.metadata()?.len();
    if length < known.read {
        // Somebody began anew.
        *known = Known::default();
    }
    file.seek(SeekFrom::Start(known.read))?;
    let mut more = Vec::new();
    file.read_to_end(&mut more)?;
    let ids = more.split(|byte| *byte == b'\n').filter_map(|line| {
        let id = line.strip_prefix(b"id = \"")?.strip_suffix(b"\"")?;
        Some(String::from_utf8_lossy(id).into_owned())
    });
    known.ids.extend(ids);
    let mut text = String::new();
    if length == 0 {
        text.push_str(OPENING);
    }
    for entry in entries {
        if known.ids.insert(entry.id.clone()) {
            text.push_str(&entry.text);
        }
    }
    if let Err(error) = file.write_all(text.as_bytes()) {
        // A full disk: half an entry would spoil the whole file, and what is not there is to be tried again.
        drop(file.set_len(length));
        *known = Known::default();
        return Err(error);
    }
    known.read = length + text.len() as u64;
    Ok(())
}

/// A table of the file.
struct Entry {
    /// A hash of what is in it.
    id: String,
    text: String,
}

impl Entry {
    fn of(table: &str, fields: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(table.as_bytes()).update(b"\n");
        let hash = hasher.update(fields.as_bytes()).finalize().to_hex();
        let id = hash[..32].to_owned();
        let text = format!("\n[[{table}]]\nid = \"{id}\"\n{fields}");
        Self { id, text }
    }
}

fn entry_of_text(text: &str) -> Entry {
    Entry::of("text", &format!("text = {}\n", long(text)))
}

/// A text as people read it, where TOML gives every byte of that back: it may change other ends of lines.
fn long(text: &str) -> String {
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    match text.chars().all(plain) && !text.contains("'''") && !text.ends_with('\'') {
        true => format!("'''\n{text}'''"),
        false => quoted(text),
    }
}

/// A text in one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => _ = write!(quoted, "\\U{:08X}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
