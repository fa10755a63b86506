//! Checks whether a run would still see the same. It takes one `stat` per file and directory if nothing changed, and a
//! closer look otherwise.

use std::path::Path;

use super::InputManifest;
use super::comparison::{Checking, Until};
use super::difference::Difference;
use super::hash::ContentHashes;
use super::signature::{Signature, TICK_NS};

/// A directory that changed this recently may change again without a new time.
pub(super) const DIRECTORY_SLACK_NS: i64 = 2 * TICK_NS;

/// Whether an input manifest still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestVerdict {
    /// No signature changed.
    Holds,
    /// A signature changed, but contents and absent names are the same. The manifest has the new signatures, if they can be
    /// relied on.
    HoldsAfterHashing(InputManifest),
    /// The first difference that was found.
    Differs(Difference),
}

/// To check this many names again costs less than to rewrite the record.
const CHEAP_NAMES: usize = 256;

/// A signature without a file type, which no file has.
pub(super) const NOBODYS: Signature = Signature {
    dev: 0,
    ino: 0,
    size: 0,
    mtime_ns: 0,
    ctime_ns: 0,
    kind: 0,
};

impl InputManifest {
    /// Whether a run in `base` would see what this manifest contains.
    pub fn check(&self, base: &Path) -> ManifestVerdict {
        let looked = self.looked_at(base, None);
        match looked.verdict() {
            Ok(None) => ManifestVerdict::Holds,
            Ok(Some(news)) => ManifestVerdict::HoldsAfterHashing(news.applied_to(self)),
            Err(difference) => ManifestVerdict::Differs(difference),
        }
    }

    /// Turns the manifest of a run on another machine into one for this machine, if a run in `base` would see the same.
    ///
    /// Signatures of another machine mean nothing here, so every file is compared by its content, and every name is looked
    /// for.
    pub fn adopted(
        &self,
        base: &Path,
        contents: Option<&dyn ContentHashes>,
    ) -> Option<InputManifest> {
        let foreign = self.without_signatures();
        let news = foreign.looked_at(base, contents).verdict().ok()?;
        Some(news.unwrap_or_default().applied_to(&foreign))
    }

    /// The part that is true on every machine: paths, contents, sizes and absent names.
    pub fn without_signatures(&self) -> InputManifest {
        let mut bare = self.clone();
        for file in &mut bare.files {
            file.signature = Signature {
                size: file.signature.size,
                ..NOBODYS
            };
        }
        for directory in &mut bare.directories {
            directory.signature = NOBODYS;
            directory.settled = false;
        }
        bare
    }

    /// Everything that a run in `base` would see differently.
    pub fn differences(&self, base: &Path) -> Vec<Difference> {
        let mut checking = Checking::new(self, base, Until::All);
        checking.compare();
        checking.differences
    }

    /// Like [`InputManifest::check`], but returns an input manifest only if storing it costs less than it saves at the next
    /// check.
    ///
    /// # Errors
    /// The first difference that a run would see.
    pub(crate) fn check_for_keeping(
        &self,
        base: &Path,
        contents: Option<&dyn ContentHashes>,
    ) -> Result<Option<InputManifest>, Difference> {
        let looked = self.looked_at(base, contents);
        let worth_keeping = looked.hashed > 0 || looked.names_looked_at > CHEAP_NAMES;
        let news = looked.verdict()?;
        let news = news.filter(|news| worth_keeping && !news.is_empty());
        Ok(news.map(|news| news.applied_to(self)))
    }

    fn looked_at<'a>(
        &'a self,
        base: &Path,
        contents: Option<&'a dyn ContentHashes>,
    ) -> Checking<'a> {
        let mut checking = Checking::new(self, base, Until::First);
        checking.contents = contents;
        checking.compare();
        checking
    }
}
