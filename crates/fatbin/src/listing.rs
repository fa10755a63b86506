//! Lists the images of one file, as rows that can be shown, written or compared.

use rayon::prelude::*;
use serde::Serialize;

use crate::container::{Container, Section};
use crate::demangle::demangle;
use crate::error::{Flaw, Problem, ReadLimits};
use crate::image::{Image, ImageKind, Method};
use crate::inspect::Inside;
use crate::kernels::ImageFunction;
use crate::source::Binary;

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Headers: nothing is decompressed.
    Headers,
    /// Also the start of every image, for its toolkit.
    Toolkits,
    /// Reads every image too, for its toolkit and its kernels.
    Kernels,
}

/// One image.
#[derive(Debug, Clone, Serialize)]
pub struct ImageRow {
    /// The file, and the member of a wheel.
    pub file: String,
    /// The member of a static library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The section that holds the container.
    pub section: Section,
    /// The container's number in the file, from 0.
    pub container: usize,
    /// The image's number in the container, from 0.
    pub image: usize,
    /// Where its header begins, in bytes from the start of the file (or wheel's member).
    pub offset: u64,
    /// `elf`, `ptx`, `lto`.
    pub kind: ImageKind,
    /// `sm_90a` whatever the kind, as `cuobjdump` writes it.
    pub arch: String,
    /// `compute_90a` for PTX, `lto_90a` for LTO-IR.
    pub target: String,
    /// Exact size after decompression where that is known without doing it, in bytes.
    pub size: u64,
    /// Header, payload and padding in the file, in bytes; 0 for a part of a concatenated image,
    /// which has none of its own.
    pub stored_size: u64,
    /// Exact size of the compressed payload, in bytes.
    pub compressed_size: Option<u64>,
    /// Its compression.
    pub compression: Method,
    /// PTX ISA version, or the version of the ELF or NVVM encoding: major, minor.
    pub code_version: Option<(u16, u16)>,
    /// The toolkit that made it, where it was looked for and the image says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<String>,
    /// The flag word in words.
    pub flags: Vec<String>,
    /// The flag word.
    pub flag_word: u64,
    /// `ptxas` or NVVM options.
    pub options: Option<String>,
    /// The source's path as nvcc was given it.
    pub identifier: Option<String>,
    /// Whether a cubin must still be linked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relocatable: Option<bool>,
    /// Global variables, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_bytes: Option<u64>,
    /// Kernels, and functions with code of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<FunctionRow>>,
}

/// A function with its readable name.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionRow {
    /// As C++ has it.
    pub demangled: String,
    /// The rest.
    #[serde(flatten)]
    pub function: ImageFunction,
}

impl ImageRow {
    /// The kernels, if the image was looked into.
    pub fn kernels(&self) -> impl Iterator<Item = &FunctionRow> {
        let all = self.functions.iter().flatten();
        all.filter(|row| row.function.is_kernel)
    }
}

/// One file.
#[derive(Debug, Default)]
pub struct Listing {
    /// Its images, in the order of `cuobjdump -all`.
    pub rows: Vec<ImageRow>,
    /// The number of its containers.
    pub containers: usize,
    /// The bytes that concatenated images take in the file.
    pub concatenated_bytes: u64,
    /// The problems found.
    pub problems: Vec<Problem>,
}

/// Lists a file.
pub fn list(binary: &Binary, depth: Depth, limits: &ReadLimits) -> Listing {
    let found = binary.contents(limits);
    let file = binary.input.to_string();
    let numbered: Vec<(usize, usize, &Container<'_>, &Image<'_>)> = found
        .containers
        .iter()
        .enumerate()
        .flat_map(|(number, container)| {
            let images = container.images.iter().enumerate();
            images.map(move |(index, image)| (number, index, container, image))
        })
        .collect();
    let one = |(number, index, container, image): &(_, _, &Container<'_>, &Image<'_>)| {
        let place = (file.as_str(), *number, *index);
        match depth {
            Depth::Headers => row(place, container, image, None),
            Depth::Toolkits => {
                let (mut row, problem) = row(place, container, image, None);
                row.toolkit = image.toolkit(limits);
                (row, problem)
            }
            Depth::Kernels => row(place, container, image, Some(image.inside(limits))),
        }
    };
    let done: Vec<(ImageRow, Option<Problem>)> = match depth {
        // Threads would cost more than the work.
        Depth::Headers => numbered.iter().map(one).collect(),
        Depth::Toolkits | Depth::Kernels => numbered.par_iter().map(one).collect(),
    };
    let (rows, problems): (_, Vec<_>) = done.into_iter().unzip();
    let bundles = found.containers.iter().flat_map(|c| &c.bundles);
    Listing {
        rows,
        containers: found.containers.len(),
        concatenated_bytes: bundles.map(Image::cost).sum(),
        problems: found
            .problems
            .iter()
            .cloned()
            .chain(problems.into_iter().flatten())
            .collect(),
    }
}

fn row(
    (file, number, index): (&str, usize, usize),
    container: &Container<'_>,
    image: &Image<'_>,
    inside: Option<Result<Inside, Flaw>>,
) -> (ImageRow, Option<Problem>) {
    let (inside, flaw) = match inside {
        Some(Ok(inside)) => (Some(inside), None),
        Some(Err(flaw)) => (None, Some(flaw)),
        None => (None, None),
    };
    let compressed = image.compressed_size > 0;
    let size = match &inside {
        Some(inside) => inside.size,
        None if compressed && image.place.part.is_none() => match image.kind {
            // One zero byte behind the text is compressed with it (seen in all of 11.8 to 13.5).
            ImageKind::Ptx => image.uncompressed_size.saturating_sub(1),
            _ => image.uncompressed_size,
        },
        // Nothing has to be decompressed: the tables show the exact length.
        None => image
            .payload(&ReadLimits::default())
            .map_or(image.stored_size, |payload| payload.len() as u64),
    };
    let problem = flaw.map(|flaw| Problem {
        member: container.member.clone(),
        offset: image.place.offset,
        flaw,
    });
    let row = ImageRow {
        file: file.to_owned(),
        member: container.member.clone(),
        section: container.section,
        container: number,
        image: index,
        offset: image.place.offset,
        kind: image.kind,
        arch: format!("sm_{}", image.arch),
        target: image.target(),
        size,
        stored_size: image.cost(),
        compressed_size: compressed.then(|| image.compressed_size.into()),
        compression: image.method(),
        code_version: image.code_version,
        toolkit: inside.as_ref().and_then(|i| i.toolkit.clone()),
        flags: image.flags.words(),
        flag_word: image.flags.0,
        options: image.options.clone(),
        identifier: image.identifier.clone(),
        relocatable: inside.as_ref().and_then(|i| i.relocatable),
        global_bytes: inside.as_ref().map(|i| i.global_bytes),
        functions: inside.map(|inside| {
            let named = inside.functions.into_iter().map(|function| FunctionRow {
                demangled: demangle(&function.name),
                function,
            });
            named.collect()
        }),
    };
    (row, problem)
}
