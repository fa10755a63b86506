//! Rewriting fat binaries without unwanted images, and with other compression.
//!
//! The images that are kept are moved together, and the container's header is corrected. How the file gets smaller
//! depends on its format (`thin_elf`, `thin_archive`). Nothing is compiled or linked, and an image is compressed anew
//! only where that was asked for.

use rayon::prelude::*;

use crate::compress::{CompressMode, recompress};
use crate::container::{Container, HEADER, Section};
use crate::error::{Flaw, ReadLimits};
use crate::host::{self, Format};
use crate::image::{Image, ImageKind, Method};
use crate::inspect::Inside;
use crate::rewritten::Rewritten;
use crate::selection::Keep;
use crate::source::Binary;
use crate::units::units;
use crate::{thin_archive, thin_elf};

/// Why a file is not rewritten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Damage: what is not understood is not rewritten.
    #[error("the file has a problem at {offset:#x}: {flaw}")]
    Problem {
        /// Bytes from the start of the file.
        offset: u64,
        /// What.
        flaw: String,
    },
    /// Not a file whose fat binaries can be rewritten in place.
    #[error("{0} is not rewritten")]
    Format(&'static str),
    /// No image of the file is wanted.
    #[error("the file has no image for {0}: nothing would be left to run")]
    NothingKept(String),
    /// There is no container.
    #[error("there is no fat binary in the file")]
    NoContainers,
    /// A container would need more room than it has.
    #[error(
        "its fat binary at {offset:#x} would grow from {from} to {to} bytes, and only a .fatbin file can grow; compile with nvcc -compress-mode instead"
    )]
    Grows {
        /// Bytes from the start of the file.
        offset: u64,
        /// Its length, in bytes.
        from: u64,
        /// What it would need.
        to: u64,
    },
    /// A host file that is not built as expected.
    #[error("the file has an unexpected structure: {0}")]
    Host(String),
}

/// The result of thinning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thinned {
    /// The new file; empty for a wheel, which is written as it is made.
    pub bytes: Vec<u8>,
    /// Images before and after.
    pub images: (usize, usize),
    /// Images with another compression than before.
    pub recompressed: usize,
    /// Bytes that hold images, before and after.
    pub image_bytes: (u64, u64),
    /// Unused bytes that had to stay in the file, as zeros.
    pub zeroed: u64,
    /// Containers without a wanted image; each keeps its smallest image, so that the driver answers as it did before.
    pub left_whole: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Rewrites a file without the images that `keep` does not want, and compresses the rest as `compress` says.
///
/// # Errors
/// It cannot be done safely; the reason says why.
pub fn thin(
    binary: &Binary,
    keep: &Keep,
    compress: Option<CompressMode>,
    limits: &ReadLimits,
) -> Result<Thinned, Refusal> {
    thin_bytes(binary.bytes(), binary.format, keep, compress, limits)
}

/// Does the same for bytes in memory.
///
/// # Errors
/// As [`thin`].
pub fn thin_bytes(
    file: &[u8],
    format: Format,
    keep: &Keep,
    compress: Option<CompressMode>,
    limits: &ReadLimits,
) -> Result<Thinned, Refusal> {
    match format {
        Format::Elf | Format::Fatbin | Format::Archive => {}
        Format::Cubin => return Err(Refusal::Format("a single cubin")),
        Format::Wheel => return Err(Refusal::Format("a wheel in memory")),
        Format::MachO => return Err(Refusal::Format("a Mach-O file (macOS)")),
        Format::Pe => return Err(Refusal::Format("a PE file (Windows)")),
    }
    let found = host::read(file, format, limits);
    if let Some(problem) = found.problems.first() {
        return Err(Refusal::Problem {
            offset: problem.offset,
            flaw: problem.flaw.to_string(),
        });
    }
    // A member that is a single cubin has nothing to leave out.
    let containers = found.containers.iter();
    let containers: Vec<&Container<'_>> =
        containers.filter(|c| c.section != Section::Cubin).collect();
    if containers.is_empty() {
        return Err(Refusal::NoContainers);
    }
    let images = containers.iter().flat_map(|c| &c.images);
    let mut wanted = containers.iter().map(|c| keep.wants(&c.images));
    if !wanted.any(|wanted| wanted.contains(&true)) {
        return Err(Refusal::NothingKept(keep.to_string()));
    }
    let mut thinned = Thinned {
        images: (images.clone().count(), 0),
        ..Thinned::default()
    };
    thinned.notes = notes(keep, images);
    let work = Work {
        keep,
        compress,
        limits,
        file,
        may_grow: format == Format::Fatbin,
    };
    let made: Vec<RewrittenContainer> = containers
        .into_par_iter()
        .map(|container| work.rewrite(container))
        .collect::<Result<_, _>>()?;
    for one in &made {
        thinned.images.1 += one.images;
        thinned.recompressed += one.recompressed;
        thinned.left_whole += usize::from(one.left_whole);
        thinned.image_bytes.0 += one.rewritten.size;
        thinned.image_bytes.1 += one.rewritten.bytes.len() as u64;
    }
    if made.iter().any(|one| one.new_zstd) {
        thinned.notes.push(
            "Zstandard is new in this file: it needs a driver of CUDA 12.4 (550) or newer"
                .to_owned(),
        );
    }
    let rewritten: Vec<Rewritten> = made.into_iter().map(|one| one.rewritten).collect();
    let placed = match format {
        Format::Fatbin => {
            thinned.bytes = rewritten.into_iter().flat_map(|r| r.bytes).collect();
            return Ok(thinned);
        }
        Format::Archive => thin_archive::place(file, rewritten),
        _ => thin_elf::place(file, &rewritten),
    };
    let placed = placed.map_err(Refusal::Host)?;
    thinned.bytes = placed.bytes;
    thinned.zeroed = placed.zeroed;
    thinned.notes.extend(placed.notes);
    Ok(thinned)
}

fn notes<'i, 'a: 'i>(
    keep: &Keep,
    images: impl Iterator<Item = &'i Image<'a>> + Clone,
) -> Vec<String> {
    let missing = keep.without_match(images.clone());
    let missing = missing
        .into_iter()
        .map(|target| format!("there is no image for {target}"));
    let before = keep.left_out_before(images).into_iter().map(|arch| {
        let number = arch.number;
        format!(
            "sm_{arch} is left out, which a GPU sm_{number} takes before sm_{number}; keep both, or what --gpu sm_{number} loads"
        )
    });
    missing.chain(before).collect()
}

/// What is done to every container of a file.
struct Work<'w> {
    keep: &'w Keep,
    compress: Option<CompressMode>,
    limits: &'w ReadLimits,
    file: &'w [u8],
    may_grow: bool,
}

/// A container that was rewritten.
struct RewrittenContainer {
    rewritten: Rewritten,
    /// Images that are kept.
    images: usize,
    recompressed: usize,
    /// Whether an image is now compressed by Zstandard that was not before.
    new_zstd: bool,
    /// Whether nothing in it was wanted.
    left_whole: bool,
}

impl Work<'_> {
    fn rewrite(&self, container: &Container<'_>) -> Result<RewrittenContainer, Refusal> {
        let units = units(container);
        let wants = self.keep.wants(&container.images);
        let is_wanted = |number: &usize| wants.get(*number).copied().unwrap_or(false);
        let mut kept: Vec<_> = units
            .iter()
            .filter(|unit| unit.images.iter().any(is_wanted))
            .collect();
        let mut left_whole = false;
        if kept.is_empty() {
            kept.extend(units.iter().min_by_key(|unit| unit.outer.cost()));
            left_whole = !kept.is_empty() && !is_empty(container, self.limits);
        }
        let mut made = RewrittenContainer {
            rewritten: Rewritten {
                section: container.section,
                offset: container.offset,
                size: container.size,
                bytes: self.bytes(container.offset, HEADER as u64).to_vec(),
            },
            images: 0,
            recompressed: 0,
            new_zstd: false,
            left_whole,
        };
        for unit in kept {
            made.images += unit.images.len();
            let before = self.bytes(unit.outer.place.offset, unit.outer.cost());
            match self.compressed(unit.outer)? {
                Some(bytes) => {
                    made.recompressed += 1;
                    made.new_zstd |= unit.outer.method() != Method::Zstd
                        && matches!(
                            self.compress,
                            Some(CompressMode::Size | CompressMode::Balance)
                        );
                    made.rewritten.bytes.extend(bytes);
                }
                None => made.rewritten.bytes.extend_from_slice(before),
            }
        }
        let bytes = &mut made.rewritten.bytes;
        let size = (bytes.len() - HEADER) as u64;
        bytes[8..HEADER].copy_from_slice(&size.to_le_bytes());
        if bytes.len() as u64 > container.size && !self.may_grow {
            return Err(Refusal::Grows {
                offset: container.offset,
                from: container.size,
                to: bytes.len() as u64,
            });
        }
        Ok(made)
    }

    /// Bytes that were read from the file, so they are there.
    fn bytes(&self, from: u64, length: u64) -> &[u8] {
        crate::bytes::slice(self.file, from, length).unwrap_or(&[0; HEADER])
    }

    fn compressed(&self, image: &Image<'_>) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(mode) = self.compress else {
            return Ok(None);
        };
        let header = self.bytes(image.place.offset, image.header_size.into());
        let bytes = recompress(header, image, mode, self.limits);
        bytes.map_err(|flaw: Flaw| Refusal::Problem {
            offset: image.place.offset,
            flaw: flaw.to_string(),
        })
    }
}

/// The container of nvcc's device link: its images are not needed.
fn is_empty(container: &Container<'_>, limits: &ReadLimits) -> bool {
    let nothing = |inside: Inside| inside.functions.is_empty() && inside.global_bytes == 0;
    container
        .images
        .iter()
        .all(|image| image.kind == ImageKind::Cubin && image.inside(limits).is_ok_and(nothing))
}
