//! A request to compile, checked before NVRTC sees it.

use std::hash::Hash as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warpcc_rtc_bundle::Bundle;
use xxhash_rust::xxh3::Xxh3;

use crate::c_text::c_text;
use crate::error::Error;
use crate::memory_key::{self, MemoryKey};
use crate::option_rules::{check_option, keeps_paths, pre_include};
use crate::target::Target;

/// A text with a name: a header with the name in its `#include`, or a part of the source with its name in messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text {
    /// The name.
    pub name: Arc<str>,
    /// The text.
    pub text: Arc<str>,
}

impl Text {
    /// A text and its name.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }
}

/// Whether NVRTC may keep the headers that it read for the next program of this process (12.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PrecompiledHeaders {
    /// Every program reads its headers.
    #[default]
    Off,
    /// NVRTC stores and finds them by itself (`--pch`). The option is not used with a version that does not have it.
    Automatic,
}

/// A program to compile. Its texts and paths are read only during the call that takes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CompileRequest {
    /// Its name in messages, in `__FILE__` and for saved files.
    pub name: Arc<str>,
    /// Texts before the source, in order; messages name place and text in each.
    pub preamble: Vec<Text>,
    /// The source.
    pub source: Arc<str>,
    /// The file that the source is from, for messages, and for debug information (`-G`, `-lineinfo`): it decides nothing else.
    /// Without it they have the program's name.
    pub file: Option<Arc<str>>,
    /// Headers given as text, each with the exact name in the `#include`.
    pub headers: Vec<Text>,
    /// Headers and LTO-IR that were embedded into the program. A cache links what has LTO-IR with it, to machine code. They are
    /// decompressed when something is compiled.
    pub bundles: Vec<Bundle>,
    /// Include folders, in order. Without one, NVRTC opens no file at all.
    pub include_folders: Vec<PathBuf>,
    /// Names in C++ (`scale<float>`) whose names in the image are needed.
    pub name_expressions: Vec<Arc<str>>,
    /// Further options for NVRTC, each in one piece: `-DN=4`, `--std=c++20`.
    pub options: Vec<Arc<str>>,
    /// The kind of output and its architecture.
    pub target: Target,
    /// Whether to precompile headers.
    pub precompiled_headers: PrecompiledHeaders,
    /// The names in debug information of each text before the source, and of the source. Empty: those that the texts have.
    pub(crate) debug_names: Vec<Arc<str>>,
}

impl CompileRequest {
    /// A program of one text.
    pub fn new(name: impl Into<Arc<str>>, source: impl Into<Arc<str>>, target: Target) -> Self {
        Self {
            name: name.into(),
            preamble: Vec::new(),
            source: source.into(),
            file: None,
            headers: Vec::new(),
            bundles: Vec::new(),
            include_folders: Vec::new(),
            name_expressions: Vec::new(),
            options: Vec::new(),
            target,
            precompiled_headers: PrecompiledHeaders::Off,
            debug_names: Vec::new(),
        }
    }

    /// A request for the kernel `name` of `source`, with `parameters` as text before it, and everything else from this one.
    /// A cache that is [`compiled_with`](crate::KernelCache::compiled_with) this request uses it.
    pub fn for_kernel(&self, parameters: &str, name: &str, source: &str, target: Target) -> Self {
        let mut request = self.clone();
        request.name = name.into();
        request.preamble.push(Text::new("parameters", parameters));
        request.source = source.into();
        request.name_expressions = vec![request.name.clone()];
        request.target = target;
        request
    }

    /// The name in the program: letters, digits and characters that are safe in a file name or a `#line`.
    pub(crate) fn plain_name(&self) -> String {
        plain(&self.name)
    }

    /// The complete text for NVRTC: each part under its own name, so that its lines are counted separately.
    pub(crate) fn whole_text(&self) -> String {
        let length = self
            .preamble
            .iter()
            .map(|text| text.text.len() + 80)
            .sum::<usize>();
        let mut whole = String::with_capacity(length + self.source.len() + 80);
        let texts = self.preamble.iter().map(|part| &part.text);
        for (name, text) in self.line_names().iter().zip(texts.chain([&self.source])) {
            whole.push_str(&format!("#line 1 \"{name}\"\n"));
            whole.push_str(text);
            if !text.ends_with('\n') {
                whole.push('\n');
            }
        }
        whole
    }

    /// NVRTC's names for the texts before the source, and for the source.
    fn line_names(&self) -> Vec<String> {
        if !self.debug_names.is_empty() {
            return self.debug_names.iter().map(ToString::to_string).collect();
        }
        let before = self.preamble.iter().map(|part| &part.name);
        before.chain([&self.name]).map(|name| plain(name)).collect()
    }

    /// NVRTC's names for the source and the texts before it, with the caller's, the source first.
    fn named_texts(&self) -> Vec<(String, &Arc<str>, &Arc<str>)> {
        let before = self.preamble.iter().map(|part| (&part.name, &part.text));
        let shown = self.file.as_ref().unwrap_or(&self.name);
        let texts = before.chain([(shown, &self.source)]);
        let named = self.line_names().into_iter().zip(texts);
        let mut named: Vec<_> = named
            .map(|(line_name, (name, text))| (line_name, name, text))
            .collect();
        named.rotate_right(1);
        named
    }

    /// The text that NVRTC knows by `name`, and the caller's name for it.
    pub(crate) fn text_by(&self, name: &str) -> Option<(String, String)> {
        let named = self.named_texts();
        let part = named.iter().find(|(line_name, ..)| line_name == name);
        let part = part.map(|(_, name, text)| (*name, *text));
        let header = || {
            let found = self.headers.iter().find(|header| &*header.name == name)?;
            Some((&found.name, &found.text))
        };
        let (name, text) = part.or_else(header)?;
        Some((name.to_string(), text.to_string()))
    }

    /// NVRTC's log with the names of the caller's texts and files where it has the names that NVRTC was given.
    pub(crate) fn log_for_people(&self, log: &str) -> String {
        let given = self.named_texts();
        let line = |line: &str| {
            let named = given.iter().find_map(|(line_name, name, _)| {
                let rest = line.strip_prefix(line_name.as_str())?;
                rest.starts_with('(').then(|| format!("{name}{rest}"))
            });
            named.unwrap_or_else(|| line.to_owned())
        };
        log.split('\n').map(line).collect::<Vec<_>>().join("\n")
    }

    /// Passes every text to `visit`, in an order in which equal requests have equal texts, with a mark at the end of each
    /// list.
    fn each_text(&self, mut visit: impl FnMut(&[u8])) {
        visit(self.name.as_bytes());
        visit(self.source.as_bytes());
        for list in [&self.preamble, &self.headers] {
            visit(&(list.len() as u64).to_le_bytes());
            for text in list {
                visit(text.name.as_bytes());
                visit(text.text.as_bytes());
            }
        }
        visit(&(self.bundles.len() as u64).to_le_bytes());
        for bundle in &self.bundles {
            visit(bundle.digest());
        }
        for list in [&self.name_expressions, &self.options] {
            visit(&(list.len() as u64).to_le_bytes());
            list.iter().for_each(|text| visit(text.as_bytes()));
        }
        for folder in &self.include_folders {
            visit(folder.as_os_str().as_bytes());
        }
    }

    fn hashed(&self, how: fn(&mut Xxh3, &[u8])) -> u64 {
        let mut hasher = Xxh3::new();
        self.each_text(|text| how(&mut hasher, text));
        self.target.hash(&mut hasher);
        hasher.digest()
    }

    /// Whether two requests are equal, if `same` compares two texts.
    fn is_equal(&self, other: &Self, same: fn(&Arc<str>, &Arc<str>) -> bool) -> bool {
        let all = |ours: &[Arc<str>], theirs: &[Arc<str>]| {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(our, their)| same(our, their))
        };
        let texts = |ours: &[Text], theirs: &[Text]| {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(our, their)| {
                    same(&our.name, &their.name) && same(&our.text, &their.text)
                })
        };
        self.target == other.target
            && self.precompiled_headers == other.precompiled_headers
            && same(&self.name, &other.name)
            && same(&self.source, &other.source)
            && all(&self.name_expressions, &other.name_expressions)
            && all(&self.options, &other.options)
            && self.bundles == other.bundles
            && self.include_folders == other.include_folders
            // Debug information has it.
            && (self.file == other.file || !self.keeps_paths())
            && texts(&self.preamble, &other.preamble)
            && texts(&self.headers, &other.headers)
    }

    /// Whether NVRTC may open files for this request.
    pub(crate) fn opens_files(&self) -> bool {
        !self.include_folders.is_empty() || self.options.iter().any(|o| pre_include(o).is_some())
    }

    /// Whether an option puts paths into the result.
    pub(crate) fn keeps_paths(&self) -> bool {
        self.options.iter().any(|option| keeps_paths(option))
    }

    /// Whether the working directory may matter for the result.
    pub(crate) fn knows_the_directory(&self) -> bool {
        self.opens_files() || self.keeps_paths()
    }

    /// Refuses texts and options that NVRTC would misunderstand, or that would express the same thing in two ways.
    pub(crate) fn check(&self) -> Result<(), Error> {
        c_text("name", self.name.as_bytes())?;
        c_text("source", self.source.as_bytes())?;
        for part in &self.preamble {
            c_text(&format!("text {:?}", part.name), part.text.as_bytes())?;
        }
        for (index, header) in self.headers.iter().enumerate() {
            c_text("name of a header", header.name.as_bytes())?;
            c_text(&format!("header {:?}", header.name), header.text.as_bytes())?;
            let again = self.headers[..index]
                .iter()
                .any(|before| before.name == header.name);
            if header.name.is_empty() || again {
                return Err(Error::invalid(
                    format!("header {:?}", header.name),
                    "two headers have the same name",
                ));
            }
        }
        self.check_bundles()?;
        for folder in &self.include_folders {
            c_text("include folder", folder.as_os_str().as_bytes())?;
        }
        for expression in &self.name_expressions {
            c_text("name expression", expression.as_bytes())?;
            if expression.trim().is_empty() {
                return Err(Error::invalid(
                    "name expression",
                    "it is empty; write a kernel's name",
                ));
            }
        }
        self.options
            .iter()
            .try_for_each(|option| check_option(option))
    }
}

/// Whether two texts are equal. Two clones of one `Arc` are, because a shared text cannot change.
pub(crate) fn is_same(one: &Arc<str>, other: &Arc<str>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// Whether two texts are the same `Arc`, or short and equal.
fn is_one(one: &Arc<str>, other: &Arc<str>) -> bool {
    /// To read less than this takes less time than the rest of a look-up.
    const SHORT: usize = 256;
    Arc::ptr_eq(one, other) || one.len() == other.len() && one.len() <= SHORT && one == other
}

impl MemoryKey for CompileRequest {
    fn quick(&self) -> u64 {
        self.hashed(memory_key::sample)
    }

    fn thorough(&self) -> u64 {
        self.hashed(memory_key::whole)
    }

    fn is_one(&self, other: &Self) -> bool {
        self.is_equal(other, is_one)
    }

    fn equals(&self, other: &Self) -> bool {
        self.is_equal(other, is_same)
    }
}

/// A name of letters, digits and characters that are safe in a file name or a `#line`.
pub(crate) fn plain(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "._+-/".contains(c);
    let plain: String = name
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    // NVRTC would search for headers next to a file of that name.
    match plain.trim_matches('/') {
        "" => "kernel".to_owned(),
        _ => plain,
    }
}

/// The name for the program: in a folder that cannot exist, so that no header is found next to it by chance.
pub(crate) fn program_name(plain: &str) -> PathBuf {
    let file = Path::new(plain).file_name().unwrap_or_default();
    Path::new("/dev/null/warpcc").join(file)
}

#[cfg(test)]
mod tests;
