//! Finds the files that a program may include: all that NVRTC could open for it, without running NVRTC.
//!
//! NVRTC does not list the files that it read, so the texts are searched. Every `#include` and every `__has_include` counts,
//! even if a macro would leave it out, and each name is looked for in every place where NVRTC could look. The result
//! contains at least all files that NVRTC reads. Files that do not exist need no entry: the names follow from the texts, and
//! a file that is created later is then found. A name that a macro makes is not known. Then all files below all include
//! folders count, and if such a name could lead out of them, the result is not stored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use warpcc_rtc_bundle::ItemKind;

use crate::error::Error;
use crate::include_names::words_of;
use crate::option_rules::{keeps_paths, pre_include};
use crate::request::CompileRequest;

/// A program with more files or bytes than this is not stored: they would be too many to check again.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 1 << 30;
/// How many characters of a definition an error shows.
const SHOWN: usize = 80;
/// The deepest nesting of folders; links may form circles.
const DEEPEST: usize = 40;

/// The files that a program may include.
#[derive(Debug, Default)]
pub(crate) struct Included {
    /// The BLAKE3 of each file, by a name that does not depend on the place of the folders.
    pub files: BTreeMap<String, [u8; 32]>,
    /// The paths of those files.
    pub read: BTreeSet<PathBuf>,
    /// Paths at which there was no file.
    pub absent: BTreeSet<PathBuf>,
    /// Whether the image may contain the place of the folders (`__FILE__`).
    pub shows_paths: bool,
    /// Whether macros make names: then there are more files than `read` and `absent` list.
    pub computed: bool,
}

/// The place of a text, which decides where its headers are searched for.
#[derive(Debug, Clone)]
enum Origin {
    /// The program itself, in a folder that cannot exist.
    Program,
    /// A header given as text, or an option: it is in the working directory.
    Text,
    /// A file: its folder, and the folder's name in the key.
    File(PathBuf, String),
}

/// Finds all files that `request` may include. Its folders are absolute.
///
/// # Errors
/// The files cannot be known: the caller must not store the result. The text gives the reason.
pub(crate) fn find(request: &CompileRequest, directory: &Path) -> Result<Included, Unknown> {
    let mut search = Search {
        folders: &request.include_folders,
        directory,
        included: Included::default(),
        queue: VecDeque::new(),
        bytes: 0,
        leads_out: None,
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
    for bundle in &request.bundles {
        let contents = bundle.contents();
        let contents = contents.map_err(|error| Unknown(format!("a bundle: {error}")))?;
        for header in contents.iter().filter(|one| one.kind == ItemKind::Header) {
            search.text(&header.bytes, &Origin::Text);
        }
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
        const COMPUTED: &str =
            "a header's name is made by a macro and could be outside the include folders";
        if let Some(definition) = search.leads_out {
            return Err(Unknown(format!("{COMPUTED}, because of {definition}")));
        }
        if search.computed_in_text {
            return Err(Unknown(format!(
                "{COMPUTED}: an option or a header given as text includes it"
            )));
        }
        for (index, folder) in request.include_folders.iter().enumerate() {
            search.everything(folder, &format!("{index}:"), 0)?;
        }
    }
    Ok(search.included)
}

/// The reason why the included files cannot be known.
#[derive(Debug, Clone)]
pub(crate) struct Unknown(pub String);

struct Search<'r> {
    folders: &'r [PathBuf],
    directory: &'r Path,
    included: Included,
    queue: VecDeque<(Vec<u8>, Origin)>,
    bytes: u64,
    /// A definition that could make such a name, and its file.
    leads_out: Option<String>,
    computed_in_text: bool,
}

impl Search<'_> {
    fn text(&mut self, text: &[u8], origin: &Origin) {
        let found = words_of(text);
        self.included.shows_paths |= found.shows_paths;
        self.included.computed |= found.computed;
        if let (None, Some(definition)) = (&self.leads_out, found.leads_out) {
            let definition: String = definition.chars().take(SHOWN).collect();
            self.leads_out = Some(match origin {
                Origin::File(folder, _) => {
                    format!("`#define {definition}` in a file of {}", folder.display())
                }
                Origin::Program | Origin::Text => format!("`#define {definition}`"),
            });
        }
        self.computed_in_text |= found.computed && matches!(origin, Origin::Text);
        self.queue
            .extend(found.names.into_iter().map(|name| (name, origin.clone())));
    }

    /// Looks for a name in every place where NVRTC could look.
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

    /// Adds a possible path for a name. NVRTC also looks for the name with `.stdh` behind it (seen, 12.0 to 13.5).
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

    /// Adds every file below a folder.
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

impl From<Unknown> for Error {
    fn from(unknown: Unknown) -> Self {
        Error::invalid("include folders", unknown.0)
    }
}
