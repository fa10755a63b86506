//! Modes of uploading, and the report of an upload.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::settings::Layer;
use crate::upload_queue::UploadQueue;

/// The report of an upload to one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadReport {
    /// The server, without credentials.
    pub server: String,
    /// Results that it has now.
    pub uploaded: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Results that still wait.
    pub waiting: usize,
    /// Why they do, where that is known.
    pub why: Option<String>,
    /// Something about the signing key that its holder should know.
    pub warning: Option<String>,
}

impl UploadReport {
    /// Adds the uploads of another folder to the same server.
    pub fn add(&mut self, other: Self) {
        self.uploaded += other.uploaded;
        self.bytes += other.bytes;
        self.waiting += other.waiting;
        self.why = self.why.take().or(other.why);
        self.warning = self.warning.take().or(other.warning);
    }

    /// That something still waits, and why, for people; nothing where all is done.
    pub fn unfinished(&self) -> Option<String> {
        let Self {
            waiting, server, ..
        } = self;
        let why = self.why.as_deref().unwrap_or("the time limit was reached");
        (*waiting > 0).then(|| format!("{waiting} results wait to be uploaded to {server}: {why}"))
    }
}

/// The mode of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UploadMode {
    /// During a build: leaves out paused servers, and those that another uploader serves.
    Background,
    /// For a user who waits: asks every server, and waits for other uploaders.
    Asked,
}

/// The number of results that wait to be uploaded to `layer`.
pub fn waiting(layer: &Layer, root: &Path) -> usize {
    UploadQueue::in_cache(root).entries(layer).len()
}
