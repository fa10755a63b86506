//! Which files a program may include: all that NVRTC could open for it, found without running it.
//!
//! NVRTC gives no list of the files it read, so the texts are searched: every `#include` and every `__has_include`
//! counts, also where a macro would leave it out, and each name is taken from every place where NVRTC could look.
//! That is never less than NVRTC reads. Files that are looked for in vain need no entry: the names follow from the texts,
//! and a file that is created later is then found. A name that a macro makes is not known; then all files below all
//! include folders count, and where such a name could lead out of them, the program is not kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::request::{CompileRequest, keeps_paths, pre_include};

/// More files or bytes than this are no program's headers, and too many to look at again.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 1 << 30;
/// Folders within folders; a link may lead in circles.
const DEEPEST: usize = 40;

/// The files that a program may include.
#[derive(Debug, Default)]
pub(crate) struct Included {
    /// BLAKE3 of each file, by a name that does not say where the folders are.
    pub files: BTreeMap<String, [u8; 32]>,
    /// The paths of those files.
    pub read: BTreeSet<PathBuf>,
    /// Paths where no file was.
    pub absent: BTreeSet<PathBuf>,
    /// Whether the place of the folders may show in the image (`__FILE__`).
    pub shows_paths: bool,
    /// Whether names are made by macros: then there are more files than `read` and `absent` list.
    pub computed: bool,
}

/// Where a text is, as far as that decides where its headers are searched for.
#[derive(Debug, Clone)]
enum Origin {
    /// The program itself, in a folder that cannot be.
    Program,
    /// A header given as text, or an option: the working directory.
    Text,
    /// A file: its folder, and the name of that for the key.
    File(PathBuf, String),
}

/// Finds all that `request` may include. Its folders are absolute.
///
/// # Errors
/// It cannot be known: the caller must not keep what comes of it. The text says why.
pub(crate) fn find(request: &CompileRequest, directory: &Path) -> Result<Included, Unknown> {
    let mut search = Search {
        folders: &request.include_folders,
        directory,
        included: Included::default(),
        queue: VecDeque::new(),
        bytes: 0,
        leads_out: false,
        computed_in_text: false,
    };
    for text in request
        .preamble
        .iter()
        .map(|part| &part.text)
        .chain([&request.source])
    {
        search.text(text.as_bytes(), &Origin::Program);
    }
    for header in &request.headers {
        search.text(header.text.as_bytes(), &Origin::Text);
    }
    for option in &request.options {
        match pre_include(option) {
            Some(name) => search
                .queue
                .push_back((name.as_bytes().to_vec(), Origin::Text)),
            None => search.text(format!("#define {option}").as_bytes(), &Origin::Text),
        }
        search.included.shows_paths |= keeps_paths(option);
    }
    while let Some((name, origin)) = search.queue.pop_front() {
        search.name(&name, &origin)?;
    }
    if search.included.computed {
        if search.leads_out || search.computed_in_text {
            return Err(Unknown(
                "a header's name is made by a macro and could be outside the include folders"
                    .to_owned(),
            ));
        }
        for (index, folder) in request.include_folders.iter().enumerate() {
            search.everything(folder, &format!("{index}:"), 0)?;
        }
    }
    Ok(search.included)
}

/// Why it cannot be known what a program includes.
#[derive(Debug, Clone)]
pub(crate) struct Unknown(pub String);

struct Search<'r> {
    folders: &'r [PathBuf],
    directory: &'r Path,
    included: Included,
    queue: VecDeque<(Vec<u8>, Origin)>,
    bytes: u64,
    leads_out: bool,
    computed_in_text: bool,
}

impl Search<'_> {
    fn text(&mut self, text: &[u8], origin: &Origin) {
        let found = words_of(text);
        self.included.shows_paths |= found.shows_paths;
        self.included.computed |= found.computed;
        self.leads_out |= found.leads_out;
        self.computed_in_text |= found.computed && matches!(origin, Origin::Text);
        self.queue
            .extend(found.names.into_iter().map(|name| (name, origin.clone())));
    }

    /// Looks for a name wherever NVRTC could.
    fn name(&mut self, name: &[u8], origin: &Origin) -> Result<(), Unknown> {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(name));
        let shown = String::from_utf8_lossy(name).into_owned();
        if path.is_absolute() {
            return self.candidate(path.to_path_buf(), format!("absolute:{shown}"));
        }
        match origin {
            Origin::Program => {}
            Origin::Text => self.candidate(self.directory.join(path), format!("here:{shown}"))?,
            Origin::File(folder, label) => {
                self.candidate(folder.join(path), format!("{label}{shown}"))?;
            }
        }
        for (index, folder) in self.folders.iter().enumerate() {
            self.candidate(folder.join(path), format!("{index}:{shown}"))?;
        }
        Ok(())
    }

    /// A place of a name. NVRTC looks for the same name with `.stdh` behind it too (seen, 12.0 to 13.5).
    fn candidate(&mut self, path: PathBuf, label: String) -> Result<(), Unknown> {
        let mut other = path.clone().into_os_string();
        other.push(".stdh");
        self.file(other.into(), format!("{label}.stdh"))?;
        self.file(path, label)
    }

    fn file(&mut self, path: PathBuf, label: String) -> Result<(), Unknown> {
        if self.included.files.contains_key(&label) || self.included.absent.contains(&path) {
            return Ok(());
        }
        if !path.is_file() {
            self.included.absent.insert(path);
            return Ok(());
        }
        let text = self.read(&path, &label)?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let within = label.rfind(['/', ':']).map_or("", |at| &label[..=at]);
        self.text(&text, &Origin::File(folder, within.to_owned()));
        Ok(())
    }

    fn read(&mut self, path: &Path, label: &str) -> Result<Vec<u8>, Unknown> {
        let text = std::fs::read(path)
            .map_err(|error| Unknown(format!("{} cannot be read: {error}", path.display())))?;
        self.bytes += text.len() as u64;
        let hash = *blake3::hash(&text).as_bytes();
        self.included.files.insert(label.to_owned(), hash);
        self.included.read.insert(path.to_path_buf());
        if self.included.files.len() > MOST_FILES || self.bytes > MOST_BYTES {
            return Err(Unknown(format!(
                "its include folders hold more than {MOST_FILES} files or {MOST_BYTES} bytes"
            )));
        }
        Ok(text)
    }

    /// Every file below a folder.
    fn everything(&mut self, folder: &Path, label: &str, depth: usize) -> Result<(), Unknown> {
        let listing = match std::fs::read_dir(folder) {
            Ok(listing) if depth < DEEPEST => listing,
            Ok(_) => return Err(Unknown(format!("{} is too deep", folder.display()))),
            Err(_) if !folder.exists() => return Ok(()),
            Err(error) => {
                return Err(Unknown(format!(
                    "{} cannot be read: {error}",
                    folder.display()
                )));
            }
        };
        for found in listing {
            let unreadable =
                |error| Unknown(format!("{} cannot be read: {error}", folder.display()));
            let path = found.map_err(unreadable)?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let label = format!("{label}{name}");
            if path.is_dir() {
                self.everything(&path, &format!("{label}/"), depth + 1)?;
            } else if path.is_file() && !self.included.files.contains_key(&label) {
                let text = self.read(&path, &label)?;
                self.included.shows_paths |= words_of(&text).shows_paths;
            }
        }
        Ok(())
    }
}

/// The names of other files in a text, and the words that matter for them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    names: Vec<Vec<u8>>,
    computed: bool,
    /// A definition that could make a name outside the include folders.
    leads_out: bool,
    shows_paths: bool,
}

/// Words by which a program learns the path of its text.
const PLACES: [&[u8]; 7] = [
    b"__FILE__",
    b"__BASE_FILE__",
    b"__FILE_NAME__",
    b"__builtin_FILE",
    b"__builtin_source_location",
    b"source_location",
    b"assert",
];

fn words_of(text: &[u8]) -> Words {
    let text = spliced(text);
    let mut words = Words::default();
    let mut at = 0;
    while at < text.len() {
        if !is_word(text[at]) {
            at += 1;
            continue;
        }
        let end = at + text[at..].iter().take_while(|b| is_word(**b)).count();
        let word = &text[at..end];
        match word {
            b"include" | b"include_next" | b"import" | b"embed" if is_directive(&text[..at]) => {
                words.file(literal(&text, end));
            }
            b"__has_include" | b"__has_include_next" | b"__has_embed" => {
                let next = blank(&text, end);
                if text.get(next) == Some(&b'(') {
                    words.file(literal(&text, next + 1));
                } else {
                    // `defined(__has_include)` asks for no file; a definition could hand the word on.
                    words.computed |= defines(&text, at);
                }
            }
            word if PLACES.contains(&word) => words.shows_paths = true,
            b"define" => {
                let line = text[end..]
                    .split(|b| *b == b'\n')
                    .next()
                    .unwrap_or_default();
                let has = |what: &[u8]| line.windows(what.len()).any(|part| part == what);
                words.leads_out |= has(b"..") && !only_ellipses(line) || has(b"\"/") || has(b"</");
            }
            _ => {}
        }
        at = end;
    }
    words
}

impl Words {
    fn file(&mut self, name: Option<&[u8]>) {
        match name {
            Some(name) => self.names.push(name.to_vec()),
            None => self.computed = true,
        }
    }
}

/// The names that a text includes, or asks for, as far as they are written out. For fuzzing: whatever the text, it answers.
pub fn names_included(text: &[u8]) -> Vec<Vec<u8>> {
    words_of(text).names
}

/// Lines that end with a backslash go on; NVRTC, like gcc, lets blanks stand behind it.
fn spliced(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'\\') {
        let behind = &rest[at + 1..];
        let blanks = behind
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'))
            .count();
        out.extend_from_slice(&rest[..at]);
        if behind.get(blanks) == Some(&b'\n') {
            rest = &behind[blanks + 1..];
        } else {
            out.push(b'\\');
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
    out
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Whether what stands before a word makes it a directive, or may do so.
fn is_directive(before: &[u8]) -> bool {
    let blanks = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_whitespace() && **b != b'\n');
    let before = &before[..before.len() - blanks.count()];
    // A comment may stand between.
    ["#".as_bytes(), b"%:", b"??=", b"*/"]
        .iter()
        .any(|sign| before.ends_with(sign))
}

/// Where the next thing is that is no blank and no comment.
fn blank(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(b"/*") {
            match rest.windows(2).skip(2).position(|two| two == b"*/") {
                Some(end) => at += end + 4,
                None => return text.len(),
            }
        } else if rest
            .first()
            .is_some_and(|b| b.is_ascii_whitespace() && *b != b'\n')
        {
            at += 1;
        } else {
            return at;
        }
    }
}

/// The name between `<` and `>` or two `"`.
fn literal(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(blank(text, at)..)?;
    let end = match rest.first()? {
        b'<' => b'>',
        b'"' => b'"',
        _ => return None,
    };
    let line = rest[1..].split(|b| *b == b'\n').next()?;
    let length = line.iter().position(|b| *b == end)?;
    Some(&line[..length])
}

/// Whether the line around a place begins a macro's definition.
fn defines(text: &[u8], at: usize) -> bool {
    let start = text[..at]
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    text[start..at].windows(6).any(|word| word == b"define")
        && !text[start..at].windows(7).any(|word| word == b"defined")
        || text[start..at].windows(7).any(|word| word == b"define ")
}

/// Whether all dots in a row are three of them, as in a macro of any number of arguments.
fn only_ellipses(line: &[u8]) -> bool {
    let mut runs = line.split(|b| *b != b'.').filter(|run| run.len() > 1);
    runs.all(|run| run.len() == 3)
}

impl From<Unknown> for Error {
    fn from(unknown: Unknown) -> Self {
        Error::invalid("include folders", unknown.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let words = words_of(text.as_bytes());
        assert!(!words.computed, "{text}");
        let names = words.names.iter();
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    #[test]
    fn every_way_to_write_an_include_is_seen() {
        for text in [
            "#include \"a.h\"",
            "#include<a.h>",
            "  #  include   <a.h> // why",
            "# /* here */ include /* and\nhere */ \"a.h\"",
            "%:include <a.h>",
            "#inc\\\nlude <a.h>",
            "#include \\  \r\n <a.h>",
            "#include_next <a.h>",
            "#if 0\n#include <a.h>\n#endif",
            "// #include <a.h>",
            "#if __has_include(<a.h>)",
            "#if defined(__has_include) && __has_include ( \"a.h\" )",
            "/**/#include \"a.h\"",
        ] {
            assert_eq!(names(text), ["a.h"], "{text}");
        }
        for text in [
            "int include = 1;",
            "#ifdef __has_include",
            "include <a.h>",
            "#define including 3",
        ] {
            assert!(names(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn names_that_macros_make_are_not_guessed() {
        for text in [
            "#include HEADER",
            "#include STRING(a.h)",
            "#include",
            "#define HAS(x) __has_include(x)",
            "#define HAS __has_include",
            "#if __has_include(HEADER)",
        ] {
            assert!(words_of(text.as_bytes()).computed, "{text}");
        }
    }

    #[test]
    fn definitions_that_lead_out_are_seen() {
        let leads = |text: &str| words_of(text.as_bytes()).leads_out;
        assert!(
            leads("#define H \"../x.h\"")
                && leads("#define H </etc/x.h>")
                && leads("#define UP ..")
        );
        assert!(!leads("#define F(...) g(__VA_ARGS__)") && !leads("#define V 1.5"));
    }

    #[test]
    fn hostile_text_ends() {
        for text in [
            "#include \"",
            "#include <\n>",
            "/*",
            "#include /*",
            "\\",
            "__has_include(",
            "#",
        ] {
            words_of(text.as_bytes());
        }
    }
}
