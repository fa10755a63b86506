//! Results and bytes in a folder: content-addressed blobs, records of what runs saw and made, notes and counters.
//!
//! ```text
//! blobs-v1/ab/<sha256>-<length>   bytes            disk/blob_file.rs
//! direct-v4/ab/<key>              records          record.rs
//! steps-v4/ab/<key>               records          record.rs
//! kernels-v4/ab/<key>             records          record.rs
//! notes-v1/<kind>/ab/<key>        small values     disk/notes.rs
//! stats-v1.log, size-v1.log       sums             disk/counters.rs
//! tmp/                            files on their way in
//! gc.lock                         one eviction at a time
//! never-upload                    made by people: what is in here is given to no shared cache
//! untrusted                       results of an untrusted shared cache are in here: they go to no other one
//! ```
//!
//! Every file comes into place by a rename, so that a reader sees all of it or nothing; every file is checksummed, so that one which a crash or a bad disk spoiled is a miss. The version in a name changes when the format does (`versions.rs`); what is not read is counted, named by `warpcc stats`, and evicted like the rest. Modification times say when an entry was last used, to the hour.

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
