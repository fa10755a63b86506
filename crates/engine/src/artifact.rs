//! The files of a running plan: where each one is (nowhere yet, on disk, or only in the store), its digest, and how it is
//! moved between the store and the disk.
//!
//! A result that came from the store stays there until a tool reads it: when every step hits, no intermediate file is
//! written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpcc_cache::{Digest, DiskStore, Packing};
use warpcc_plan::assumed::Assumed;
use warpcc_plan::{FileId, FileKind, TaskGraph, Tool};

use crate::lineless_text::LinelessText;
use crate::pieces;
use crate::private_folder;
use crate::tokens::Tokens;

/// The error when a result that was found is gone, or damaged.
pub const LOST: &str = "a cached result was lost";

#[derive(Clone)]
enum Place {
    Nowhere,
    OnDisk(KnownHashes),
    Stored { digest: Digest, executable: bool },
}

/// The hashes of a file on disk that were computed so far.
#[derive(Clone, Default)]
struct KnownHashes {
    digest: Option<Digest>,
    /// The BLAKE3 of its content; keys hold it for a preprocessed text.
    content: Option<[u8; 32]>,
    /// What is known of it without its lines.
    lineless: Option<Option<Arc<LinelessText>>>,
}

impl From<Digest> for KnownHashes {
    fn from(digest: Digest) -> Self {
        Self {
            digest: Some(digest),
            content: None,
            lineless: None,
        }
    }
}

/// Every file of the plan, by id.
pub struct Artifacts<'a> {
    graph: &'a TaskGraph,
    store: Option<&'a DiskStore>,
    paths: Vec<PathBuf>,
    stubs: Vec<bool>,
    other_lines: Vec<AtomicBool>,
    places: Vec<Mutex<Place>>,
}

impl<'a> Artifacts<'a> {
    /// `results` is the folder in which final outputs are written before they are put in place;
    /// `None` when the tools write them where the user wants them.
    pub fn new(
        graph: &'a TaskGraph,
        store: Option<&'a DiskStore>,
        directory: &Path,
        results: Option<&Path>,
    ) -> Self {
        let mut paths = Vec::with_capacity(graph.files.len());
        let mut stubs = Vec::with_capacity(graph.files.len());
        for (i, file) in graph.files.iter().enumerate() {
            let writer = file.writer.map(|w| &graph.steps[w]);
            // These write to the final path: ld names its output in some diagnostics, and ar updates an existing file.
            let in_place = writer.is_some_and(|s| matches!(s.tool, Tool::HostLink | Tool::Archive));
            paths.push(match (results, file.kind) {
                (Some(results), FileKind::Output)
                    if !in_place && can_be_placed(directory, &file.path) =>
                {
                    // The file keeps its own name: tools make the names of other files from it.
                    results.join(i.to_string()).join(file.name())
                }
                _ => PathBuf::from(&file.path),
            });
            stubs.push(file.kind == FileKind::Temp && file.path.ends_with(".stub.c"));
        }
        let places = graph
            .files
            .iter()
            .map(|_| Mutex::new(Place::Nowhere))
            .collect();
        let other_lines = graph.files.iter().map(|_| AtomicBool::new(false));
        Self {
            graph,
            store,
            paths,
            stubs,
            other_lines: other_lines.collect(),
            places,
        }
    }

    /// Where the file is written and read while the plan runs.
    pub fn path(&self, id: FileId) -> &Path {
        &self.paths[id.0 as usize]
    }

    /// Whether the file is written to another path than its final one.
    pub fn is_elsewhere(&self, id: FileId) -> bool {
        self.paths[id.0 as usize].as_os_str() != self.graph.file(id).path.as_str()
    }

    fn place(&self, id: FileId) -> MutexGuard<'_, Place> {
        // If a task panics, the place is still one of the three.
        self.places[id.0 as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the files and folders that must exist before the first step starts.
    ///
    /// # Errors
    /// The private folder cannot be written.
    pub fn prepare(&self) -> io::Result<()> {
        for id in (0..).map(FileId).take(self.paths.len()) {
            if self.is_elsewhere(id)
                && let Some(folder) = self.path(id).parent()
            {
                fs::create_dir_all(folder)?;
            }
        }
        for prepared in &self.graph.prepared {
            fs::write(self.path(prepared.file), &prepared.text)?;
        }
        Ok(())
    }

    /// Gives `assumed`, on which a step may have started, the content of `actual`, the real file.
    ///
    /// # Errors
    /// Either cannot be read or written.
    pub fn correct(&self, actual: FileId, assumed: FileId) -> io::Result<()> {
        let place = self.place(actual).clone();
        if let Place::Stored { .. } = place {
            // It is written when a tool reads it.
            *self.place(assumed) = place;
            return Ok(());
        }
        // A step that reads the file now may read any part of either text. So its digest is reset first.
        self.written(assumed);
        fs::copy(self.path(actual), self.path(assumed))?;
        self.written(assumed);
        Ok(())
    }

    /// Whether the file has the content that was assumed, and on which steps have started.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn confirms(&self, assumed: &Assumed) -> io::Result<bool> {
        self.materialise(assumed.file)?;
        self.materialise(assumed.stand_in)?;
        Ok(fs::read(self.path(assumed.file))? == fs::read(self.path(assumed.stand_in))?)
    }

    /// How many bytes the file has, 0 if it is nowhere.
    pub fn size(&self, id: FileId) -> u64 {
        match &*self.place(id) {
            Place::Stored { digest, .. } => digest.size,
            Place::OnDisk(KnownHashes {
                digest: Some(digest),
                ..
            }) => digest.size,
            Place::OnDisk(_) | Place::Nowhere => {
                fs::metadata(self.path(id)).map_or(0, |found| found.len())
            }
        }
    }

    /// Notes that a tool has written the file.
    pub fn written(&self, id: FileId) {
        *self.place(id) = Place::OnDisk(KnownHashes::default());
    }

    /// Notes that the file's content is known and is in the store.
    pub fn stored(&self, id: FileId, digest: Digest, executable: bool) {
        *self.place(id) = Place::Stored { digest, executable };
    }

    /// The digest of the file's content; of a stub, with the private folder taken out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self, id: FileId) -> io::Result<Digest> {
        let mut place = self.place(id);
        match &mut *place {
            Place::Stored { digest, .. } => Ok(*digest),
            Place::OnDisk(known) => match known.digest {
                Some(digest) => Ok(digest),
                None => Ok(*known.digest.insert(self.digest_on_disk(id)?)),
            },
            // The file existed before the run: it is an input, or was prepared.
            Place::Nowhere => self.digest_on_disk(id),
        }
    }

    /// The hash of the file's content for keys. A preprocessed text is never stored, so its SHA-256 is not needed. It is by
    /// far the largest file of a build, and BLAKE3 takes a fifth of the time of SHA-256.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn content_in_keys(&self, id: FileId) -> io::Result<String> {
        if !self.is_preprocessed(id) {
            return Ok(self.digest(id)?.to_string());
        }
        // A file that a cluster made may not be here yet.
        self.materialise(id)?;
        let content = match &mut *self.place(id) {
            Place::OnDisk(known) => match known.content {
                Some(content) => content,
                None => *known.content.insert(hash_text(self.path(id), None)?),
            },
            Place::Nowhere | Place::Stored { .. } => hash_text(self.path(id), None)?,
        };
        Ok(blake3::Hash::from(content).to_hex().to_string())
    }

    /// A preprocessed text without its lines; `None` if all of its lines count. A caller that also needs the hash of the
    /// content should ask for that afterwards: one reading computes both.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lineless(&self, id: FileId) -> io::Result<Option<Arc<LinelessText>>> {
        self.materialise(id)?;
        let read_now = || {
            let mut tokens = Tokens::default();
            let content = hash_text(self.path(id), Some(&mut tokens))?;
            let text = |(hash, layout)| Arc::new(LinelessText::new(hash, layout));
            io::Result::Ok((content, tokens.finish().map(text)))
        };
        match &mut *self.place(id) {
            Place::OnDisk(known) => match &known.lineless {
                Some(lineless) => Ok(lineless.clone()),
                None => {
                    let (content, lineless) = read_now()?;
                    known.content = Some(content);
                    Ok(known.lineless.insert(lineless).clone())
                }
            },
            Place::Nowhere | Place::Stored { .. } => Ok(read_now()?.1),
        }
    }

    /// Whether the file is a preprocessed text.
    pub fn is_preprocessed(&self, id: FileId) -> bool {
        let writer = self.graph.file(id).writer.map(|at| &self.graph.steps[at]);
        writer.is_some_and(|writer| writer.tool == Tool::Preprocess)
    }

    /// Notes that the file was made from a text with other line numbers.
    pub fn set_other_lines(&self, id: FileId) {
        self.other_lines[id.0 as usize].store(true, Ordering::Relaxed);
    }

    /// Whether the file was made from a text with other line numbers.
    pub fn has_other_lines(&self, id: FileId) -> bool {
        self.other_lines[id.0 as usize].load(Ordering::Relaxed)
    }

    fn digest_on_disk(&self, id: FileId) -> io::Result<Digest> {
        if self.stubs[id.0 as usize] {
            Ok(Digest::of_bytes(
                &self.without_folder(&fs::read(self.path(id))?),
            ))
        } else {
            Digest::of_file(self.path(id))
        }
    }

    /// Makes sure that the file is on disk.
    ///
    /// # Errors
    /// The store lost it, or it cannot be written.
    pub fn materialise(&self, id: FileId) -> io::Result<()> {
        let mut place = self.place(id);
        let Place::Stored { digest, executable } = *place else {
            return Ok(());
        };
        let lost = || io::Error::new(io::ErrorKind::NotFound, LOST);
        let store = self.store.ok_or_else(lost)?;
        if self.stubs[id.0 as usize] {
            let bytes = store
                .get_bytes(&digest)
                .map_err(io::Error::other)?
                .ok_or_else(lost)?;
            fs::write(self.path(id), self.with_folder(&bytes))?;
        } else if !store
            .get_to(&digest, self.path(id), executable)
            .map_err(io::Error::other)?
        {
            return Err(lost());
        }
        *place = Place::OnDisk(digest.into());
        Ok(())
    }

    /// Puts the file's content into the store.
    ///
    /// # Errors
    /// The file cannot be read or the store not written.
    pub fn save(&self, id: FileId, packing: Packing) -> io::Result<Digest> {
        let store = self.store.ok_or_else(|| io::Error::other("no cache"))?;
        if let Place::Stored { digest, .. } = &*self.place(id) {
            return Ok(*digest);
        }
        let digest = if self.stubs[id.0 as usize] {
            let bytes = self.without_folder(&fs::read(self.path(id))?);
            store.put_bytes(&bytes, packing).map_err(io::Error::other)?
        } else {
            store
                .put_file(self.path(id), packing)
                .map_err(io::Error::other)?
        };
        *self.place(id) = Place::OnDisk(digest.into());
        Ok(digest)
    }

    /// The text of a command, with the private folder taken out.
    pub fn without_folder(&self, text: &[u8]) -> Vec<u8> {
        private_folder::take_out(text, &self.graph.private)
    }

    /// The text with this run's private folder put in.
    pub fn with_folder(&self, text: &[u8]) -> Vec<u8> {
        private_folder::put_in(text, &self.graph.private)
    }
}

/// The BLAKE3 of a text. `tokens` reads the same bytes.
fn hash_text(path: &Path, mut tokens: Option<&mut Tokens>) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    pieces::read(path, |text, is_end| {
        let done = match &mut tokens {
            Some(tokens) => tokens.take(text, is_end),
            None => text.len(),
        };
        hasher.update(&text[..done]);
        Some(done)
    })?;
    Ok(hasher.finalize().into())
}

/// Whether the finished file can be put there. If not, the tool writes there itself, and reports the error in its own words.
fn can_be_placed(directory: &Path, path: &str) -> bool {
    let path = directory.join(path);
    let parent = path.parent().unwrap_or(directory);
    !path.is_dir()
        && rustix::fs::access(
            parent,
            rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
        )
        .is_ok()
}
