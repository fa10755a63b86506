//! Identifies a task and finds its result: digests, keys, manifests and the local store. This crate knows no nvcc and no
//! network.

pub mod command;
pub mod digest;
pub mod disk;
pub mod foreign;
pub mod guards;
pub mod input_manifest;
pub mod key;
pub mod record;
pub mod regular_file;
pub mod upstream;
mod variants;
mod versions;
mod wire;

pub use digest::Digest;
pub use disk::{
    DiskStore, Level, Lookup, LookupMiss, OpenError, Options, OtherVersion, Packing, Staged,
    StoreAccess, StoreError, Suits, is_never_uploaded, is_untrusted, mark_untrusted,
};
pub use input_manifest::{
    ANY_VARIABLE, Difference, DirectorySeen, ExpectedFile, Fact, FileSeen, InputManifest,
    InputManifestBuilder, ManifestVerdict, Signature, Unsettled, WORKING_DIRECTORY,
};
pub use input_manifest::{ContentHashes, Inspect, library_content};
pub use key::{Explaining, Hashing, Key, KeyChange, KeyParts, KeySink};
pub use record::{
    MOST_VARIANTS, Outcome, ProducedFile, RecordError, Variant, decode_foreign_record,
    decode_record, decode_record_of, encode_record,
};
pub use upstream::{FetchRequest, Upstream, Vet};
pub use variants::{KeyVariant, KeyVariants};
pub use versions::RECORDS as RECORD_VERSION;
// In the signature of `Upstream`.
pub use warpcc_path_map::WorkDir;
