//! Reads fat binaries that follow one another: each has a header of 16 bytes, then images up to the stated size.

use std::fmt;

use serde::Serialize;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::concatenated;
use crate::error::{Flaw, Problem, ReadLimits};
use crate::image::{Image, ImageKind};

/// The first four bytes of a container.
pub const MAGIC: u32 = 0xba55_ed50;
/// The magic of CUDA 3 and before.
const ANCIENT_MAGIC: u32 = 0x1ee5_5a01;
/// The length of a container's header in bytes. No other length is known.
pub const HEADER: usize = 16;

/// Which part of a file holds a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// `.nv_fatbin`: loaded by the driver as it is.
    Loaded,
    /// `__nv_relfatbin`: input of a device link.
    Relocatable,
    /// The whole file is fat binaries (`nvcc -fatbin`).
    WholeFile,
    /// The whole file is one cubin; there is no container.
    Cubin,
}

impl Section {
    /// The section's name in an ELF file, or what the file is.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loaded => ".nv_fatbin",
            Self::Relocatable => "__nv_relfatbin",
            Self::WholeFile => "fatbin file",
            Self::Cubin => "cubin file",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Section {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One fat binary. The driver chooses one of its images.
#[derive(Debug, Clone)]
pub struct Container<'a> {
    /// The archive's member it is in.
    pub member: Option<String>,
    /// The part of the file.
    pub section: Section,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Header and images, in bytes.
    pub size: u64,
    /// Its images, in order. In place of a concatenated image there are its parts.
    pub images: Vec<Image<'a>>,
    /// Whether it is in a program or a shared library: the host's link, and with it the device
    /// link, have been done.
    pub linked: bool,
    /// The concatenated images themselves.
    pub bundles: Vec<Image<'a>>,
}

/// The place of a region of containers.
#[derive(Debug, Clone, Copy)]
pub struct Region<'a, 'm> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The offset of the bytes in the file.
    pub base: u64,
    /// The section that holds it.
    pub section: Section,
    /// The archive's member it is in.
    pub member: Option<&'m str>,
    /// Whether it is in a program or a shared library.
    pub linked: bool,
}

/// Everything found in one region or file.
#[derive(Debug, Default)]
pub struct FoundImages<'a> {
    /// In the order of `cuobjdump -all`: `.nv_fatbin` before `__nv_relfatbin`.
    pub containers: Vec<Container<'a>>,
    /// Problems found on the way.
    pub problems: Vec<Problem>,
    /// Bytes of concatenated images that were decompressed and are held.
    unpacked: u64,
}

impl<'a> FoundImages<'a> {
    pub(crate) fn problem(&mut self, member: Option<&str>, offset: u64, flaw: Flaw) {
        self.problems.push(Problem {
            member: member.map(str::to_owned),
            offset,
            flaw,
        });
    }

    /// Walks the containers of a region. After damage it goes on at the next container that can be
    /// found: they begin at multiples of 8.
    pub fn walk(&mut self, region: Region<'a, '_>, limits: &ReadLimits) {
        let bytes = region.bytes;
        let mut at = 0;
        let mut stray: Option<usize> = None;
        while at < bytes.len() {
            let is_container = u32_at(bytes, at) == Some(MAGIC);
            let rest = &bytes[at..bytes.len().min(at + 8)];
            if !is_container {
                if rest.iter().any(|b| *b != 0) && stray.is_none() {
                    stray = Some(at);
                }
                at += 8;
                continue;
            }
            self.report_stray(&region, stray.take(), at);
            // The bytes after the magic may not be a valid header.
            at += self.container(&region, at, limits).unwrap_or(8);
        }
        self.report_stray(&region, stray, bytes.len());
    }

    fn report_stray(&mut self, region: &Region<'a, '_>, from: Option<usize>, to: usize) {
        let Some(from) = from else { return };
        let flaw = match u32_at(region.bytes, from) {
            Some(ANCIENT_MAGIC) => Flaw::Ancient,
            _ => Flaw::Stray((to - from) as u64),
        };
        self.problem(region.member, region.base + from as u64, flaw);
    }

    /// Reads the container at `at`. Returns the distance to the next one.
    fn container(
        &mut self,
        region: &Region<'a, '_>,
        at: usize,
        limits: &ReadLimits,
    ) -> Option<usize> {
        let rest = &region.bytes[at..];
        let offset = region.base + at as u64;
        let header = (u16_at(rest, 4), u16_at(rest, 6), u64_at(rest, 8));
        let (Some(version), Some(header_size), Some(size)) = header else {
            self.problem(region.member, offset, Flaw::Truncated);
            return Some(rest.len());
        };
        if version != 1 || usize::from(header_size) != HEADER {
            let flaw = Flaw::Container {
                version,
                header_size,
            };
            self.problem(region.member, offset, flaw);
            return None;
        }
        let left = rest.len() - HEADER;
        let whole = usize::try_from(size).ok().filter(|size| *size <= left);
        if whole.is_none() {
            self.problem(region.member, offset, Flaw::Truncated);
        }
        let end = at + HEADER + whole.unwrap_or(left);
        let mut container = Container {
            member: region.member.map(str::to_owned),
            section: region.section,
            offset,
            size: (end - at) as u64,
            images: Vec::new(),
            linked: region.linked,
            bundles: Vec::new(),
        };
        let broken = self.images(&mut container, region, (at + HEADER, end), limits);
        self.containers.push(container);
        Some(match broken {
            None => end - at,
            // Its size may be wrong too, so the bytes after it are searched for the next container. The bytes that were
            // read are not searched, or many containers could share the same images.
            Some(place) => place.next_multiple_of(8) - at,
        })
    }

    /// Reads images from `from` to `end`. Returns the place where it had to stop.
    fn images(
        &mut self,
        container: &mut Container<'a>,
        region: &Region<'a, '_>,
        (from, end): (usize, usize),
        limits: &ReadLimits,
    ) -> Option<usize> {
        let inside = &region.bytes[..end];
        let mut at = from;
        while at < end {
            let image = match Image::read(inside, at, region.base) {
                Ok(image) => image,
                Err(flaw) => {
                    self.problem(region.member, region.base + at as u64, flaw);
                    return Some(at);
                }
            };
            let header = at..at + image.header_size as usize;
            at = header.end + image.stored.get().len();
            if image.kind != ImageKind::Concatenated {
                container.images.push(image);
                continue;
            }
            match concatenated::expand(&inside[header], &image, self.unpacked, limits) {
                Ok((parts, bytes)) => {
                    self.unpacked += bytes;
                    container.images.extend(parts);
                    container.bundles.push(image);
                }
                Err(flaw) => {
                    self.problem(region.member, image.place.offset, flaw);
                    // Still an image that can be listed.
                    container.images.push(image);
                }
            }
        }
        None
    }
}
