//! A container without unwanted images, before it is put into its file.

use crate::container::Section;

/// One container after the choice: where it was, and its new bytes.
#[derive(Debug)]
pub struct Rewritten {
    /// The part of the file.
    pub section: Section,
    /// Where it was, in bytes from the start of the file.
    pub offset: u64,
    /// How long it was, in bytes.
    pub size: u64,
    /// Header and images that are kept.
    pub bytes: Vec<u8>,
}
