//! Which images to keep: those of a list (`sm_80,sm_90+ptx,compute_75`), and those that a driver loads on some GPUs.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::arch::{Arch, NotAnArch, Suffix};
use crate::image::{Image, ImageKind};
use crate::select::{Candidate, Gpu, Selection, Situation, choose};

/// The images to keep; all others are removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keep {
    wanted: Vec<(ImageKind, Arch)>,
    /// The GPUs for which the images that a driver loads are kept.
    gpus: Vec<Gpu>,
    /// Whether all are kept.
    everything: bool,
}

impl Keep {
    /// Also keeps what a driver loads on these GPUs, or compiles for them.
    #[must_use]
    pub fn and_for(mut self, gpus: &[Gpu]) -> Self {
        self.gpus.extend(gpus);
        self
    }

    /// Keeps all images.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// Which images of one container are wanted, in their order. An image that is neither machine code nor PTX nor
    /// LTO-IR stays: it is not known what needs it.
    pub fn wants(&self, images: &[Image<'_>]) -> Vec<bool> {
        let listed = |image: &Image<'_>| match image.kind {
            _ if self.everything => true,
            ImageKind::Cubin | ImageKind::Ptx | ImageKind::LtoIr => {
                self.wanted.contains(&(image.kind, image.arch))
            }
            ImageKind::Concatenated | ImageKind::Unknown(_) => true,
        };
        let mut wanted: Vec<bool> = images.iter().map(listed).collect();
        let candidates: Vec<Candidate> = images.iter().map(Into::into).collect();
        for &gpu in &self.gpus {
            let loaded = match choose(&candidates, gpu, &Situation::default()) {
                Selection::Run(index) | Selection::Jit(index) => Some(index),
                Selection::Fail(_, taken) => taken,
            };
            if let Some(wanted) = loaded.and_then(|index| wanted.get_mut(index)) {
                *wanted = true;
            }
        }
        wanted
    }

    /// Machine code for one model that is left out, although a GPU takes it before the machine code of its number that is
    /// kept: `sm_90a` next to `sm_90`.
    pub fn left_out_before<'i, 'a: 'i>(
        &self,
        images: impl Iterator<Item = &'i Image<'a>>,
    ) -> BTreeSet<Arch> {
        let keeps = |arch| self.wanted.contains(&(ImageKind::Cubin, arch));
        let exact = images.filter(|i| i.kind == ImageKind::Cubin && i.arch.suffix == Suffix::Exact);
        exact
            .map(|image| image.arch)
            .filter(|arch| !keeps(*arch) && keeps(Arch::plain(arch.number)))
            .collect()
    }

    /// The requested targets that none of `images` has.
    pub fn without_match<'i, 'a: 'i>(
        &self,
        images: impl Iterator<Item = &'i Image<'a>> + Clone,
    ) -> Vec<String> {
        let missing = self
            .wanted
            .iter()
            .filter(|(kind, arch)| !images.clone().any(|i| i.kind == *kind && i.arch == *arch));
        missing
            .map(|(kind, arch)| format!("{}{arch}", kind.prefix()))
            .collect()
    }
}

/// Why a list of what to keep makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAKeep {
    /// An entry names no architecture.
    #[error(transparent)]
    Arch(#[from] NotAnArch),
    /// An entry says neither machine code nor PTX.
    #[error(
        "{0:?}: write sm_90 for machine code, compute_90 for PTX, sm_90+ptx for both, or lto_90"
    )]
    Kind(String),
}

impl FromStr for Keep {
    type Err = NotAKeep;

    fn from_str(text: &str) -> Result<Self, NotAKeep> {
        let mut keep = Self::default();
        for word in text.split(',').map(str::trim) {
            let (target, ptx) = match word.strip_suffix("+ptx") {
                Some(target) => (target, true),
                None => (word, false),
            };
            let arch: Arch = target.parse()?;
            let kind = match target {
                t if t.starts_with("sm_") => ImageKind::Cubin,
                t if t.starts_with("compute_") && !ptx => ImageKind::Ptx,
                t if t.starts_with("lto_") && !ptx => ImageKind::LtoIr,
                _ => return Err(NotAKeep::Kind(word.to_owned())),
            };
            keep.wanted.push((kind, arch));
            if ptx {
                keep.wanted.push((ImageKind::Ptx, arch));
            }
        }
        Ok(keep)
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self
            .wanted
            .iter()
            .map(|(kind, arch)| format!("{}{arch}", kind.prefix()))
            .chain(self.gpus.iter().map(|gpu| format!("a GPU {gpu}")))
            .collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_plus_ptx_are_kept() {
        let keep: Keep = "sm_80, sm_90a+ptx,compute_75".parse().expect("a list");
        assert_eq!(keep.to_string(), "sm_80,sm_90a,compute_90a,compute_75");
        for wrong in ["", "90", "compute_90+ptx", "sm_", "sm_90,"] {
            assert!(wrong.parse::<Keep>().is_err(), "{wrong}");
        }
    }
}
