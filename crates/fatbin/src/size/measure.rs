//! Looks into every image of a file, many at once.

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::dropped::{Dropped, drop_each};
use super::owned::{Owned, owned};
use super::rows::{ContainerSize, SizeOptions};
use crate::compress::{CompressMode, recompress};
use crate::container::Container;
use crate::cubin::Cubin;
use crate::demangle::demangle;
use crate::error::{Flaw, Problem, ReadLimits};
use crate::image::{Image, ImageKind};
use crate::source::Binary;

/// What is in a file.
pub(super) struct Measured {
    pub(super) containers: Vec<MeasuredContainer>,
    pub(super) problems: Vec<Problem>,
}

/// What is in a container.
pub(super) struct MeasuredContainer {
    pub(super) row: ContainerSize,
    pub(super) images: Vec<MeasuredImage>,
    pub(super) dropped: Vec<Dropped>,
    /// Bytes of concatenated images in the file.
    pub(super) concatenated: u64,
}

/// What is in an image.
pub(super) struct MeasuredImage {
    pub(super) kind: ImageKind,
    pub(super) arch: u32,
    pub(super) target: String,
    /// In the file, in bytes.
    pub(super) stored: u64,
    /// After decompression, in bytes.
    pub(super) unpacked: u64,
    pub(super) functions: Vec<Owned>,
    /// Of the whole image.
    pub(super) digest: [u8; 32],
    /// In the file, with each mode of compression.
    pub(super) compressed: [u64; CompressMode::ALL.len()],
    /// Whether it has variables, or what is in it is not known.
    has_more: bool,
}

/// Measures a file. For a part that cannot be read, its size in the file counts.
pub(super) fn measure(binary: &Binary, options: SizeOptions, limits: &ReadLimits) -> Measured {
    let found = binary.contents(limits);
    let file = binary.input.to_string();
    let images: Vec<(usize, &Image<'_>)> = found
        .containers
        .iter()
        .enumerate()
        .flat_map(|(number, container)| container.images.iter().map(move |i| (number, i)))
        .collect();
    let looked: Vec<(usize, MeasuredImage, Option<Flaw>)> = images
        .par_iter()
        .map(|(number, image)| {
            let (measured, flaw) = measure_image(binary.bytes(), image, options, limits);
            (*number, measured, flaw)
        })
        .collect();
    let mut problems = found.problems.clone();
    let mut by_container: Vec<Vec<MeasuredImage>> = Vec::new();
    by_container.resize_with(found.containers.len(), Vec::new);
    for ((number, measured, flaw), (_, image)) in looked.into_iter().zip(&images) {
        if let Some(flaw) = flaw {
            problems.push(Problem {
                member: found.containers[number].member.clone(),
                offset: image.place.offset,
                flaw,
            });
        }
        by_container[number].push(measured);
    }
    let containers = found.containers.iter().zip(by_container).enumerate();
    let containers = containers.map(|(number, (container, images))| {
        let decides = images.iter().any(|i| i.has_more || !i.functions.is_empty());
        MeasuredContainer {
            row: row(&file, number, container, &images),
            dropped: drop_each(container, decides),
            concatenated: container.bundles.iter().map(Image::cost).sum(),
            images,
        }
    });
    Measured {
        containers: containers.collect(),
        problems,
    }
}

fn row(
    file: &str,
    number: usize,
    container: &Container<'_>,
    images: &[MeasuredImage],
) -> ContainerSize {
    let mut functions = images.iter().flat_map(|image| &image.functions);
    ContainerSize {
        file: file.to_owned(),
        member: container.member.clone(),
        section: container.section,
        container: number,
        offset: container.offset,
        bytes: container.size,
        images: images.len(),
        kernel: functions.find(|f| f.is_kernel).map(|f| demangle(&f.name)),
    }
}

fn measure_image(
    file: &[u8],
    image: &Image<'_>,
    options: SizeOptions,
    limits: &ReadLimits,
) -> (MeasuredImage, Option<Flaw>) {
    let mut measured = MeasuredImage {
        kind: image.kind,
        arch: image.arch.number,
        target: image.target(),
        stored: image.cost(),
        unpacked: image.stored_size,
        functions: Vec::new(),
        digest: [0; 32],
        compressed: [image.cost(); CompressMode::ALL.len()],
        has_more: true,
    };
    let flaw = fill(&mut measured, file, image, options, limits).err();
    (measured, flaw)
}

fn fill(
    measured: &mut MeasuredImage,
    file: &[u8],
    image: &Image<'_>,
    options: SizeOptions,
    limits: &ReadLimits,
) -> Result<(), Flaw> {
    let payload = image.payload(limits)?;
    measured.unpacked = payload.len() as u64;
    measured.functions = owned(image.kind, &payload)?;
    if image.kind == ImageKind::Cubin {
        let cubin = Cubin::parse(&payload)?;
        measured.has_more = cubin.global_bytes() > 0;
    }
    if options.duplicates {
        measured.digest = Sha256::digest(&payload).into();
    }
    if options.compression {
        let from = image.place.offset as usize;
        let header = file.get(from..from.saturating_add(image.header_size as usize));
        let header = header.ok_or(Flaw::Truncated)?;
        for (mode, size) in CompressMode::ALL.into_iter().zip(&mut measured.compressed) {
            if let Some(bytes) = recompress(header, image, mode, limits)? {
                *size = bytes.len() as u64;
            }
        }
    }
    Ok(())
}
