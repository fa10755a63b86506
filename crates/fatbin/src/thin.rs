//! Rewriting fat binaries without unwanted images.
//!
//! The images of a container that are kept are moved together and its header is made to agree; how the file gets
//! smaller by that depends on its format (`thin_elf`). Nothing is decompressed or compiled.

use crate::container::{Container, HEADER};
use crate::error::ReadLimits;
use crate::host::{self, Format};
use crate::image::{Image, ImageKind};
use crate::inspect::Inside;
use crate::rewritten::Rewritten;
use crate::selection::Keep;
use crate::source::Binary;
use crate::thin_elf;

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
    /// A host file that is not built as expected.
    #[error("the file has an unexpected structure: {0}")]
    Host(String),
}

/// The result of thinning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thinned {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Images before and after.
    pub images: (usize, usize),
    /// Bytes that hold images, before and after.
    pub image_bytes: (u64, u64),
    /// Bytes that are no longer used and had to stay, as zeros.
    pub zeroed: u64,
    /// Containers without a wanted image; each keeps its smallest image, so that the driver answers as it did before.
    pub left_whole: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Rewrites a file without the images that `keep` does not want.
///
/// # Errors
/// It cannot be done safely; the reason says why.
pub fn thin(binary: &Binary, keep: &Keep, limits: &ReadLimits) -> Result<Thinned, Refusal> {
    thin_bytes(binary.bytes(), binary.format, keep, limits)
}

/// Does the same for bytes in memory.
///
/// # Errors
/// As [`thin`].
pub fn thin_bytes(
    file: &[u8],
    format: Format,
    keep: &Keep,
    limits: &ReadLimits,
) -> Result<Thinned, Refusal> {
    match format {
        Format::Elf | Format::Fatbin => {}
        Format::Archive => return Err(Refusal::Format("a static library (take its members out)")),
        Format::Cubin => return Err(Refusal::Format("a single cubin")),
        Format::Wheel => {
            return Err(Refusal::Format(
                "a wheel (its record has hashes of its files)",
            ));
        }
        Format::MachO | Format::Pe => return Err(Refusal::Format("a Mach-O or PE file")),
    }
    let found = host::read(file, format, limits);
    if let Some(problem) = found.problems.first() {
        return Err(Refusal::Problem {
            offset: problem.offset,
            flaw: problem.flaw.to_string(),
        });
    }
    if found.containers.is_empty() {
        return Err(Refusal::NoContainers);
    }
    let images = found.containers.iter().flat_map(|c| &c.images);
    let mut wanted = found.containers.iter().map(|c| keep.wants(&c.images));
    if !wanted.any(|wanted| wanted.contains(&true)) {
        return Err(Refusal::NothingKept(keep.to_string()));
    }
    let mut thinned = Thinned {
        bytes: Vec::new(),
        images: (images.clone().count(), 0),
        image_bytes: (0, 0),
        zeroed: 0,
        left_whole: 0,
        notes: Vec::new(),
    };
    for target in keep.without_match(images.clone()) {
        thinned
            .notes
            .push(format!("there is no image for {target}"));
    }
    for arch in keep.left_out_before(images.clone()) {
        let number = arch.number;
        thinned.notes.push(format!(
            "sm_{arch} is left out, which a GPU sm_{number} takes before sm_{number}; keep both, or what --gpu sm_{number} loads"
        ));
    }
    let mut rewritten = Vec::new();
    for container in &found.containers {
        rewritten.push(rewrite(container, keep, limits, file, &mut thinned));
    }
    thinned.image_bytes = (
        rewritten.iter().map(|r| r.size).sum(),
        rewritten.iter().map(|r| r.bytes.len() as u64).sum(),
    );
    thinned.bytes = match format {
        Format::Fatbin => rewritten.into_iter().flat_map(|r| r.bytes).collect(),
        _ => {
            let placed = thin_elf::place(file, &rewritten).map_err(Refusal::Host)?;
            thinned.zeroed = placed.zeroed;
            thinned.notes.extend(placed.notes);
            placed.bytes
        }
    };
    Ok(thinned)
}

/// Everything of a container that is a unit in the file: a concatenated image goes or stays whole.
fn units<'c, 'a>(container: &'c Container<'a>) -> Vec<(&'c Image<'a>, Vec<&'c Image<'a>>)> {
    let mut units: Vec<(&Image<'_>, Vec<&Image<'_>>)> = Vec::new();
    for image in &container.images {
        match (image.place.part, units.last_mut()) {
            (Some(part), Some((_, parts))) if part > 0 => parts.push(image),
            (Some(_), _) => {
                let bundle = |b: &&Image<'_>| b.place.offset == image.place.offset;
                let outer = container.bundles.iter().find(bundle).unwrap_or(image);
                units.push((outer, vec![image]));
            }
            (None, _) => units.push((image, vec![image])),
        }
    }
    units
}

fn rewrite(
    container: &Container<'_>,
    keep: &Keep,
    limits: &ReadLimits,
    file: &[u8],
    thinned: &mut Thinned,
) -> Rewritten {
    let units = units(container);
    let wants = keep.wants(&container.images);
    let is_wanted = |part: &&Image<'_>| {
        let mut listed = container.images.iter().zip(&wants);
        listed.any(|(image, wanted)| *wanted && std::ptr::eq(image, *part))
    };
    let wanted = |(_, parts): &&(&Image<'_>, Vec<&Image<'_>>)| parts.iter().any(is_wanted);
    let mut kept: Vec<_> = units.iter().filter(wanted).collect();
    if kept.is_empty() {
        kept.extend(units.iter().min_by_key(|(outer, _)| outer.cost()));
        if !kept.is_empty() && !is_empty(container, limits) {
            thinned.left_whole += 1;
        }
    }
    let mut bytes = vec![0; HEADER];
    for (outer, parts) in kept {
        thinned.images.1 += parts.len();
        let from = outer.place.offset as usize;
        let length = outer.cost() as usize;
        // Both lie in the file: they were read from it.
        bytes.extend_from_slice(file.get(from..from + length).unwrap_or_default());
    }
    let from = container.offset as usize;
    let header = file.get(from..from + HEADER).unwrap_or_default();
    bytes[..header.len()].copy_from_slice(header);
    let size = (bytes.len() - HEADER) as u64;
    bytes[8..HEADER].copy_from_slice(&size.to_le_bytes());
    Rewritten {
        section: container.section,
        offset: container.offset,
        size: container.size,
        bytes,
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
