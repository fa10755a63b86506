//! The store in a folder: content-addressed blobs, records of what runs saw and made, notes and counters.
//!
//! ```text
//! blobs-v1/ab/<sha256>-<length>   bytes            disk/blob_file.rs
//! direct-v4/ab/<key>              records          record.rs
//! steps-v4/ab/<key>               records          record.rs
//! kernels-v4/ab/<key>             records          record.rs
//! notes-v1/<kind>/ab/<key>        small values     disk/notes.rs
//! stats-v1.log, size-v1.log       sums             disk/counters.rs
//! tmp/                            files that are being written
//! gc.lock                         one eviction at a time
//! never-upload                    a mark that a person makes: no shared cache gets anything from this store
//! untrusted                       a mark that results of an untrusted shared cache are in the store: no other one gets them
//! ```
//!
//! Every file is renamed to its place when it is complete, so that a reader sees all of it or nothing. Every file has a
//! checksum, so that a file damaged by a crash or a bad disk is a miss. The version in a name changes with the format
//! (`versions.rs`). Files of other versions are counted, named by `warpcc stats`, and evicted like the rest. The
//! modification time of an entry says when it was last used, to the hour.

mod access;
mod blob;
mod blob_file;
mod counters;
mod error;
mod file;
mod frames;
mod gc;
mod growth;
mod install;
mod layout;
mod notes;
mod other_versions;
mod records;
mod room;
mod store;

pub use access::{StoreAccess, is_never_uploaded, is_untrusted, mark_untrusted};
pub use blob_file::Packing;
pub use error::{OpenError, StoreError};
pub use gc::{Collected, Report};
pub use install::Staged;
pub use layout::Level;
pub use other_versions::OtherVersion;
pub use records::{Lookup, LookupMiss, Suits};
pub use store::{DiskStore, Options};
