//! Checks one file of a manifest alone, if it is known to have changed.
//!
//! A record has several variants of a call, and mostly they differ in one file: the source that is being edited. Once a
//! variant was refused because of that file, the next one can be refused by checking that file first.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::InputManifest;
use super::hash::{ContentHashes, Hashed};
use super::known_contents::hash_all;
use super::signature::Base;
use crate::guards;

impl InputManifest {
    /// Whether `suspect` is one of this manifest's files and has another content now. Returns false if that takes a closer
    /// look.
    pub(crate) fn differs_in(
        &self,
        suspect: &Path,
        base: &Path,
        contents: Option<&dyn ContentHashes>,
    ) -> bool {
        let text = suspect.as_os_str().as_bytes();
        let mut files = self.files.iter();
        let Some(file) = files.find(|file| self.bytes_at(file.path) == text) else {
            return false;
        };
        let (base, path) = (Base::open(base), self.text_at(file.path));
        let Ok((now, _)) = base.sign(path) else {
            return false;
        };
        if now == file.signature || guards::is_off("second-look") {
            return false;
        }
        let is_other = |hashed: &Hashed| hashed.content != file.content;
        now.size != file.signature.size
            || hash_all(&base, &[path], None, contents)
                .pop()
                .is_some_and(|hashed| hashed.as_ref().is_ok_and(is_other))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::super::InputManifestBuilder;
    use super::*;

    #[test]
    fn a_file_is_told_from_what_it_was_by_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path();
        let file = base.join("a.cu");
        fs::write(&file, "one").expect("write");
        let mut builder = InputManifestBuilder::new(SystemTime::now() + Duration::from_secs(1));
        builder.read(Path::new("a.cu"));
        let manifest = builder.relative_to(base).finish().expect("a manifest");
        let differs = |path: &str| manifest.differs_in(Path::new(path), base, None);
        assert!(!differs("a.cu"));
        // Another inode with the same text.
        fs::write(base.join("b"), "one").expect("write");
        fs::rename(base.join("b"), &file).expect("rename");
        assert!(!differs("a.cu"));
        fs::write(&file, "two").expect("write");
        assert!(differs("a.cu"));
        fs::write(&file, "three").expect("write");
        assert!(differs("a.cu"));
        // `b` is not in the manifest, or does not exist: a closer look decides.
        assert!(!differs("b"));
        fs::remove_file(&file).expect("remove");
        assert!(!differs("a.cu"));
    }
}
