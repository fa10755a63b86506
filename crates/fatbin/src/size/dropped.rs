//! How many bytes a container would save without an architecture, and what a GPU would run then.

use std::collections::BTreeSet;

use crate::container::Container;
use crate::image::ImageKind;
use crate::select::{Candidate, Gpu, Selection, Situation, choose};
use crate::units::units;

/// One container without the images of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) target: String,
    pub(crate) kind: ImageKind,
    pub(crate) arch: u32,
    /// Bytes in the file.
    pub(crate) saves: u64,
    /// The same, if the GPU then compiles PTX.
    pub(crate) ptx_only_saves: u64,
    pub(crate) then_run: u64,
    pub(crate) then_compile: u64,
    pub(crate) then_fail: u64,
}

/// Each target of a container dropped in turn. `decides` is whether the container has kernels or variables: one without
/// decides nothing.
pub(crate) fn drop_each(container: &Container<'_>, decides: bool) -> Vec<Dropped> {
    let images = &container.images;
    let targets: BTreeSet<(ImageKind, crate::Arch)> = images
        .iter()
        .map(|image| (image.kind, image.arch))
        .collect();
    let units = units(container);
    let candidates: Vec<Candidate> = images.iter().map(Into::into).collect();
    let targets = targets.into_iter().map(|(kind, arch)| {
        let goes = |number: &usize| images[*number].kind == kind && images[*number].arch == arch;
        let (gone, kept): (Vec<_>, Vec<_>) =
            units.iter().partition(|unit| unit.images.iter().all(goes));
        let mut saves: u64 = gone.iter().map(|unit| unit.outer.cost()).sum();
        if kept.is_empty() {
            // As `thin` does it.
            saves -= gone.iter().map(|u| u.outer.cost()).min().unwrap_or(0);
        }
        let mut dropped = Dropped {
            target: format!("{}{arch}", kind.prefix()),
            kind,
            arch: arch.number,
            saves,
            ptx_only_saves: 0,
            then_run: 0,
            then_compile: 0,
            then_fail: 0,
        };
        if decides && kind == ImageKind::Cubin {
            let mut numbers: Vec<usize> =
                kept.iter().flat_map(|unit| unit.images.clone()).collect();
            numbers.sort_unstable();
            let left: Vec<Candidate> = numbers.iter().map(|n| candidates[*n]).collect();
            match choose(&left, Gpu::Known(arch.number), &Situation::default()) {
                Selection::Run(_) => dropped.then_run = 1,
                Selection::Jit(_) => {
                    dropped.then_compile = 1;
                    dropped.ptx_only_saves = saves;
                }
                Selection::Fail(..) => dropped.then_fail = 1,
            }
        }
        dropped
    });
    targets.collect()
}
