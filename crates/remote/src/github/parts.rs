//! Bundles on this disk, as far as they were needed: parts of equal length, each fetched once for all processes of a job, by
//! one range request.
//!
//! ```text
//! part-<bundle>-<n>   bytes n × 4 MiB and on; shorter where the bundle ends
//! url-<bundle>        its signed address, while that is good
//! gone-<bundle>       the service has it no more, or it has other bytes than an index says
//! lock-<n>            held by the one who fetches; dies with it
//! failed              since then nobody waits for a fetch of others
//! ```
//!
//! Nothing here is believed: blobs have digests, records have checksums and, where demanded, signatures.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode, Url};

use super::archive::at;
use super::beginning;
use super::service::Service;
use crate::deadline::Pace;
use crate::error::RemoteError;
use warpcc_remote_client::bundle_index::Bundle;

/// Length of a part.
const PART: u64 = 4 << 20;
/// Parts that are kept, which is also the longest bundle that is read.
const MOST_PARTS: usize = 256;
/// How long a signed address is used. GitHub's are good for ten minutes.
const SIGNED_FOR: Duration = Duration::from_secs(8 * 60);
/// Locks for parts: so many are fetched at a time.
const LOCKS: u64 = 16;
/// A folder in which nothing has changed for so long is no job's: GitHub ends them after six hours.
const LONGEST_JOB: Duration = Duration::from_secs(6 * 3600);

/// The folder.
pub struct Parts {
    folder: PathBuf,
}

/// What a signed address gave.
enum Got {
    /// The part.
    Part(Vec<u8>),
    /// All parts that there are, because the server knows no ranges. They are in their files.
    All,
    /// The address is good no longer.
    Expired,
}

impl Parts {
    /// In `folder`, which need not be there yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hands on `length` bytes of a bundle, from `first` on. False where it has not got them, now and for ever.
    ///
    /// # Errors
    /// The service's faults, and those of `take`.
    pub async fn read(
        &self,
        service: &Service,
        (bundle, name): (Bundle, &str),
        (first, length): (u64, u64),
        mut take: impl FnMut(&[u8]) -> Result<(), RemoteError> + Send,
    ) -> Result<bool, RemoteError> {
        let mut here = first;
        let Some(end) = first.checked_add(length).filter(|_| length > 0) else {
            // Nothing is as short or as far away.
            self.give_up(bundle);
            return Ok(false);
        };
        let mut buffer = vec![0; 64 << 10];
        while here < end {
            let number = here / PART;
            let Some(mut part) = self.part(service, (bundle, name), number).await? else {
                return Ok(false);
            };
            let path = self.part_path(bundle, number);
            let to = end.min((number + 1).saturating_mul(PART));
            let begun = part.seek(SeekFrom::Start(here % PART));
            begun.map_err(|error| at(&path, &error))?;
            while here < to {
                let most = buffer
                    .len()
                    .min(usize::try_from(to - here).unwrap_or(usize::MAX));
                let read = part.read(&mut buffer[..most]);
                match read.map_err(|error| at(&path, &error))? {
                    // The bundle ends before the index says so.
                    0 => {
                        self.give_up(bundle);
                        return Ok(false);
                    }
                    read => {
                        take(&buffer[..read])?;
                        here += read as u64;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Notes a signed address.
    pub fn note_url(&self, bundle: Bundle, url: &Url) {
        // Without the note it is asked for again.
        drop(self.write(&format!("url-{:x}", bundle.0), url.as_str().as_bytes()));
    }

    /// Reads nothing of a bundle any more: bundles never change.
    pub fn give_up(&self, bundle: Bundle) {
        drop(self.write(&format!("gone-{:x}", bundle.0), b""));
        for part in self.files(&format!("part-{:x}-", bundle.0)) {
            drop(fs::remove_file(part));
        }
    }

    /// Whether nothing of the bundle can be read.
    pub fn is_gone(&self, bundle: Bundle) -> bool {
        self.folder.join(format!("gone-{:x}", bundle.0)).exists()
    }

    /// Removes all bytes of bundles.
    pub fn clear(&self) {
        for file in self.files("part-") {
            drop(fs::remove_file(file));
        }
    }

    /// Removes the folders of jobs that are over, where a machine runs one job after another.
    pub fn sweep(&self) {
        let folders = self.folder.parent().map(fs::read_dir);
        for folder in folders.into_iter().flatten().flatten().flatten() {
            let changed = folder.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| changed.elapsed().ok());
            if folder.path() != self.folder && age.is_some_and(|age| age > LONGEST_JOB) {
                drop(fs::remove_dir_all(folder.path()));
            }
        }
    }

    /// A file comes into place whole. Signed addresses are nobody else's business.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        let path = self.folder.join(name);
        let temporary = self.folder.join(format!(
            "new-{}-{:x}",
            std::process::id(),
            fastrand::u64(..)
        ));
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| {
                let mut options = File::options();
                options.write(true).create_new(true).mode(0o600);
                options.open(&temporary)?.write_all(bytes)
            })
            .and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|error| {
            drop(fs::remove_file(&temporary));
            at(&path, &error)
        })
    }

    fn part_path(&self, bundle: Bundle, number: u64) -> PathBuf {
        self.folder.join(format!("part-{:x}-{number}", bundle.0))
    }

    fn files(&self, prefix: &str) -> Vec<PathBuf> {
        let listing = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let named = listing.filter(|file| file.file_name().to_string_lossy().starts_with(prefix));
        named.map(|file| file.path()).collect()
    }

    /// A part, open. None where the service has no such bundle.
    async fn part(
        &self,
        service: &Service,
        (bundle, name): (Bundle, &str),
        number: u64,
    ) -> Result<Option<File>, RemoteError> {
        let path = self.part_path(bundle, number);
        if let Ok(file) = File::open(&path) {
            return Ok(Some(file));
        }
        if self.is_gone(bundle) {
            return Ok(None);
        }
        if number >= MOST_PARTS as u64 {
            self.give_up(bundle);
            return Err(service.odd("a bundle that is too long"));
        }
        let _turn = self.turn(service, (bundle.0 ^ number) % LOCKS).await?;
        if let Ok(file) = File::open(&path) {
            return Ok(Some(file));
        }
        let fetched = self.fetch(service, (bundle, name), number).await;
        match fetched {
            Ok(true) => File::open(&path)
                .map(Some)
                .map_err(|error| at(&path, &error)),
            Ok(false) => {
                self.give_up(bundle);
                Ok(None)
            }
            Err(fault) => {
                self.note_failure();
                Err(fault)
            }
        }
    }

    /// Fetches a part into its file. False where there is no such bundle or part.
    async fn fetch(
        &self,
        service: &Service,
        (bundle, name): (Bundle, &str),
        number: u64,
    ) -> Result<bool, RemoteError> {
        let mut noted = self.url(bundle);
        // A signed address may have run out.
        for _ in 0..2 {
            let url = match noted.take() {
                Some(url) => url,
                None => match self.find(service, (bundle, name)).await? {
                    Some(url) => url,
                    None => return Ok(false),
                },
            };
            match self.get(service, &url, bundle, number).await? {
                Got::Part(bytes) => {
                    self.keep(bundle, number, &bytes)?;
                    return Ok(true);
                }
                Got::All => return Ok(self.part_path(bundle, number).exists()),
                Got::Expired => {}
            }
        }
        Err(service.odd("its signed addresses are refused"))
    }

    /// The address of a bundle. None where another one has its name: those of a branch hide the main branch's.
    async fn find(
        &self,
        service: &Service,
        (bundle, name): (Bundle, &str),
    ) -> Result<Option<Url>, RemoteError> {
        let Some(found) = service.find(name).await?.filter(|found| found.name == name) else {
            return Ok(None);
        };
        let begins = beginning::fetch(service, &found.url).await?;
        let is_it = begins.is_some_and(|begins| begins.bundle == bundle);
        if is_it {
            self.note_url(bundle, &found.url);
        }
        Ok(is_it.then_some(found.url))
    }

    /// The noted address.
    fn url(&self, bundle: Bundle) -> Option<Url> {
        let path = self.folder.join(format!("url-{:x}", bundle.0));
        let noted = fs::metadata(&path).and_then(|file| file.modified()).ok()?;
        let age = SystemTime::now().duration_since(noted).ok()?;
        let text = fs::read_to_string(&path)
            .ok()
            .filter(|_| age < SIGNED_FOR)?;
        text.parse().ok()
    }

    async fn get(
        &self,
        service: &Service,
        url: &Url,
        bundle: Bundle,
        number: u64,
    ) -> Result<Got, RemoteError> {
        let first = number * PART;
        let mut response = service.get(url, first, first + PART - 1).await?;
        let most = match response.status() {
            StatusCode::PARTIAL_CONTENT => PART,
            StatusCode::OK => PART * MOST_PARTS as u64,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                return Ok(Got::Expired);
            }
            // It ends before.
            StatusCode::RANGE_NOT_SATISFIABLE => return Ok(Got::All),
            status => return Err(service.refusal(status, "")),
        };
        let mut pace = Pace::new(service.answer());
        let mut bytes = Vec::new();
        let mut whole = 0;
        let mut received: u64 = 0;
        while let Some(piece) = next_piece(service, &mut pace, &mut response).await? {
            received += piece.len() as u64;
            if received > most {
                self.give_up(bundle);
                return Err(service.odd("more bytes than were asked for"));
            }
            bytes.extend_from_slice(&piece);
            // Part by part to the disk, so that memory holds one.
            while most > PART && bytes.len() as u64 >= PART {
                let rest = bytes.split_off(PART as usize);
                self.keep(bundle, whole, &bytes)?;
                bytes = rest;
                whole += 1;
            }
        }
        if most == PART {
            return Ok(Got::Part(bytes));
        }
        self.keep(bundle, whole, &bytes)?;
        Ok(Got::All)
    }

    /// Keeps a part. The oldest ones make room.
    fn keep(&self, bundle: Bundle, number: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        let mut parts = self.files("part-");
        if parts.len() >= MOST_PARTS {
            parts.sort_by_cached_key(|path| fs::metadata(path).and_then(|m| m.modified()).ok());
            for old in parts.iter().take(MOST_PARTS / 4) {
                drop(fs::remove_file(old));
            }
        }
        self.write(&format!("part-{:x}-{number}", bundle.0), bytes)
    }
}

async fn next_piece(
    service: &Service,
    pace: &mut Pace,
    response: &mut Response,
) -> Result<Option<impl std::ops::Deref<Target = [u8]> + use<>>, RemoteError> {
    let next = async { response.chunk().await.map_err(|e| service.broken(e)) };
    let piece = pace.next_from(service.server(), next).await?;
    if let Some(piece) = &piece {
        pace.add(piece.len());
    }
    Ok(piece)
}
