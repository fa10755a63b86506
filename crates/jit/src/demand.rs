//! Finds the PTX of a file that a driver compiles on a GPU, and all PTX of a file.
//!
//! `warpcc_fatbin::judge` says what a driver does; here its PTX is fetched and told apart by content, since a driver's
//! cache knows a text by its content too.

use std::collections::BTreeSet;

use rayon::prelude::*;
use warpcc_fatbin::{
    Candidate, Container, FoundImages, Gpu, Image, ImageKind, LoadOutcome, Problem, ReadLimits,
    Section, Selection, Situation, Verdicts, choose, ptx_kernels,
};

/// The reason why a driver compiles a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileCause {
    /// It is loaded as it is.
    Load,
    /// It is relocatable, and linked when the program starts.
    Link,
}

/// A PTX text in a file.
#[derive(Debug, Clone)]
pub struct PtxText<'f> {
    /// The member of a static library.
    pub member: Option<&'f str>,
    /// The container's number in the file.
    pub container: usize,
    /// The image's number in the container.
    pub image: usize,
    /// The image.
    pub source: &'f Image<'f>,
    /// The reason why it is compiled.
    pub used: CompileCause,
    /// Decompressed, in bytes.
    pub bytes: u64,
    /// Its kernels' names, as they are in the text.
    pub kernels: Vec<String>,
    /// Equal for equal texts with equal options.
    pub content: [u8; 32],
}

/// The texts of a file that the driver compiles on `gpu`, in the order of its containers.
///
/// `verdicts` is the result of `judge` for the same file, `gpu` and `situation`.
pub fn what_is_compiled<'f>(
    found: &'f FoundImages<'f>,
    verdicts: &Verdicts,
    gpu: warpcc_fatbin::Gpu,
    situation: &Situation,
    limits: &ReadLimits,
) -> (Vec<PtxText<'f>>, Vec<Problem>) {
    let mut wanted: BTreeSet<(usize, usize, bool)> = BTreeSet::new();
    let mine = || verdicts.verdicts.iter().filter(|v| v.gpu == gpu);
    for verdict in mine().filter(|v| v.outcome == LoadOutcome::Jit) {
        if let Some(image) = verdict.image {
            wanted.insert((verdict.container, image, false));
        }
    }
    if mine().any(|v| v.outcome == LoadOutcome::JitLink) {
        let inputs = found.containers.iter().enumerate();
        let inputs = inputs.filter(|(_, c)| c.linked && c.section == Section::Relocatable);
        for (number, container) in inputs {
            if let Some(image) = best_text(container, gpu, situation) {
                wanted.insert((number, image, true));
            }
        }
    }
    let places = wanted.into_iter().filter_map(|(number, index, linked)| {
        let container = found.containers.get(number)?;
        let image = container.images.get(index)?;
        let used = if linked {
            CompileCause::Link
        } else {
            CompileCause::Load
        };
        Some((number, index, container, image, used))
    });
    read(places.collect(), limits)
}

/// The PTX that a link at start takes from a relocatable container.
fn best_text(container: &Container<'_>, gpu: Gpu, situation: &Situation) -> Option<usize> {
    let candidates: Vec<Candidate> = container.images.iter().map(Candidate::from).collect();
    let only_text = Situation {
        force_jit: true,
        ..*situation
    };
    match choose(&candidates, gpu, &only_text) {
        Selection::Jit(image) => Some(image),
        _ => None,
    }
}

/// Every PTX of a file.
pub fn every_text<'f>(
    found: &'f FoundImages<'f>,
    limits: &ReadLimits,
) -> (Vec<PtxText<'f>>, Vec<Problem>) {
    let containers = found.containers.iter().enumerate();
    let images = containers.flat_map(|(number, container)| {
        let images = container.images.iter().enumerate();
        images.map(move |(index, image)| (number, index, container, image))
    });
    let texts = images.filter(|(.., image)| image.kind == ImageKind::Ptx);
    let places = texts.map(|(number, index, container, image)| {
        let relocatable = container.section == Section::Relocatable || is_compile_only(image);
        let used = if relocatable {
            CompileCause::Link
        } else {
            CompileCause::Load
        };
        (number, index, container, image, used)
    });
    read(places.collect(), limits)
}

/// Whether nvcc compiled it for a later link: its options say so.
fn is_compile_only(image: &Image<'_>) -> bool {
    let options = image.options.as_deref().unwrap_or_default();
    let mut words = options.split_whitespace();
    words.any(|word| word == "--compile-only" || word == "-c")
}

type PlaceOf<'f> = (usize, usize, &'f Container<'f>, &'f Image<'f>, CompileCause);

fn read<'f>(places: Vec<PlaceOf<'f>>, limits: &ReadLimits) -> (Vec<PtxText<'f>>, Vec<Problem>) {
    let one = |(container_number, image_number, container, image, used): PlaceOf<'f>| {
        let payload = image.payload(limits).map_err(|flaw| Problem {
            member: container.member.clone(),
            offset: image.place.offset,
            flaw,
        })?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(image.options.as_deref().unwrap_or_default().as_bytes());
        // No option list has a zero byte.
        hasher.update(b"\0");
        hasher.update(&payload);
        Ok(PtxText {
            member: container.member.as_deref(),
            container: container_number,
            image: image_number,
            source: image,
            used,
            bytes: payload.len() as u64,
            kernels: ptx_kernels(&payload).map(|(_, n)| n.to_owned()).collect(),
            content: *hasher.finalize().as_bytes(),
        })
    };
    let read: Vec<Result<PtxText<'f>, Problem>> = places.into_par_iter().map(one).collect();
    let mut texts = Vec::new();
    let mut problems = Vec::new();
    for result in read {
        match result {
            Ok(text) => texts.push(text),
            Err(problem) => problems.push(problem),
        }
    }
    (texts, problems)
}
