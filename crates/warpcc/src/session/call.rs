//! The surroundings of a call.

use warpcc_cache::DiskStore;

use crate::call_record::CallRecorder;
use crate::config::Config;
use crate::log::Log;
use crate::process_context::ProcessContext;

/// What a call uses of its process: all parts of a session borrow it.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The directory and the environment of this process.
    pub context: &'a ProcessContext,
    /// The cache, the settings, and the recorder of the call.
    pub recorder: &'a CallRecorder<'a>,
    /// The log.
    pub log: &'a Log,
}

impl<'a> Call<'a> {
    /// The settings.
    pub(super) fn config(&self) -> &'a Config {
        self.recorder.config
    }

    /// The cache on this disk, if there is one.
    pub(super) fn store(&self) -> Option<&'a DiskStore> {
        self.recorder.store
    }
}
