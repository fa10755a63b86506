//! Measures where the bytes of device code are, and what would reduce them. Nothing is estimated.
//!
//! *Device code* is what containers take in their files: headers, images, padding. Several files are added up, and a
//! wheel counts as it is installed. Bytes of functions are counted after decompression, for in the file images are
//! compressed whole.

mod dropped;
mod measure;
mod owned;
mod rows;

use std::collections::{BTreeMap, HashMap};

use crate::container::Section;
use crate::demangle::{demangle, template_family};
use crate::diff::without_hashes;
use crate::error::{Problem, ReadLimits};
use crate::source::Binary;
use dropped::Dropped;
use measure::{MeasuredContainer, MeasuredImage, measure};
pub use rows::{
    CompressionSize, ContainerSize, Duplicates, FileSize, FunctionSize, SameFunction, SizeOptions,
    SizeReport, TargetSize,
};

/// The key of a function's copies: loaded or linked, target, name, content.
type Copy = (Section, String, String, [u8; 32]);

/// Adds up files.
#[derive(Debug, Default)]
pub struct SizeSum {
    options: SizeOptions,
    report: SizeReport,
    targets: BTreeMap<(crate::ImageKind, u32, String), TargetSize>,
    functions: HashMap<String, FunctionSize>,
    copies: HashMap<Copy, SameFunction>,
    images: HashMap<(Section, String, [u8; 32]), ()>,
    same_images: Duplicates,
    modes: [u64; crate::CompressMode::ALL.len()],
}

impl SizeSum {
    /// Nothing yet.
    #[must_use]
    pub fn new(options: SizeOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Adds a file; gives the problems in it.
    pub fn add(&mut self, binary: &Binary, limits: &ReadLimits) -> Vec<Problem> {
        let measured = measure(binary, self.options, limits);
        let mut file = FileSize {
            file: binary.input.to_string(),
            bytes: binary.bytes().len() as u64,
            device_bytes: 0,
            containers: measured.containers.len(),
        };
        for container in measured.containers {
            file.device_bytes += container.row.bytes;
            self.add_container(container);
        }
        self.report.device_bytes += file.device_bytes;
        self.report.files.push(file);
        measured.problems
    }

    fn add_container(&mut self, container: MeasuredContainer) {
        let section = container.row.section;
        self.report.concatenated_bytes += container.concatenated;
        for dropped in container.dropped {
            self.add_dropped(dropped);
        }
        // The header, and the bytes between images, are the same with every compression.
        let images: u64 = container.images.iter().map(|image| image.stored).sum();
        for (mode, sum) in self.modes.iter_mut().enumerate() {
            let sizes = container.images.iter().map(|image| image.compressed[mode]);
            *sum += container.row.bytes - images + sizes.sum::<u64>();
        }
        for image in container.images {
            self.add_image(section, image);
        }
        self.report.containers.push(container.row);
    }

    fn target(&mut self, kind: crate::ImageKind, arch: u32, target: &str) -> &mut TargetSize {
        let key = (kind, arch, target.to_owned());
        let new = || TargetSize {
            target: target.to_owned(),
            kind,
            ..TargetSize::default()
        };
        self.targets.entry(key).or_insert_with(new)
    }

    fn add_dropped(&mut self, dropped: Dropped) {
        let row = self.target(dropped.kind, dropped.arch, &dropped.target);
        row.drop_saves += dropped.saves;
        row.ptx_only_saves += dropped.ptx_only_saves;
        row.then_run += dropped.then_run;
        row.then_compile += dropped.then_compile;
        row.then_fail += dropped.then_fail;
    }

    fn add_image(&mut self, section: Section, image: MeasuredImage) {
        let row = self.target(image.kind, image.arch, &image.target);
        row.images += 1;
        row.bytes += image.stored;
        row.unpacked_bytes = row.unpacked_bytes.saturating_add(image.unpacked);
        self.report.unpacked_bytes = self.report.unpacked_bytes.saturating_add(image.unpacked);
        let owned: u64 = image.functions.iter().map(|f| f.bytes).sum();
        self.report.shared_bytes += image.unpacked.saturating_sub(owned);
        // Images in which every function is equal are counted as images too: that is what a file would shrink by.
        if self.options.duplicates && !image.functions.is_empty() {
            let key = (section, image.target.clone(), image.digest);
            if self.images.insert(key, ()).is_some() {
                self.same_images.images += 1;
                self.same_images.image_bytes += image.stored;
            }
        }
        for function in image.functions {
            let sum = match self.functions.get_mut(&function.name) {
                Some(sum) => sum,
                None => {
                    let new = FunctionSize::named(demangle(&function.name), function.is_kernel);
                    self.functions.entry(function.name.clone()).or_insert(new)
                }
            };
            sum.copies += 1;
            sum.bytes = sum.bytes.saturating_add(function.bytes);
            if !self.options.duplicates {
                continue;
            }
            let key = (
                section,
                image.target.clone(),
                function.name.clone(),
                function.digest,
            );
            let same = self.copies.entry(key).or_default();
            same.copies += 1;
            if same.copies > 1 {
                same.saves += function.bytes;
            }
        }
    }

    /// The sums, the largest first.
    #[must_use]
    pub fn finish(self) -> SizeReport {
        let mut report = self.report;
        report.targets = self.targets.into_values().collect();
        let mut families: BTreeMap<String, FunctionSize> = BTreeMap::new();
        for (name, function) in &self.functions {
            let family = without_hashes(&template_family(name));
            let sum = families
                .entry(family)
                .or_insert_with_key(|family| FunctionSize::named(family.clone(), true));
            sum.copies += function.copies;
            sum.bytes = sum.bytes.saturating_add(function.bytes);
        }
        report.families = largest_first(families.into_values().collect());
        report.functions = largest_first(self.functions.into_values().collect());
        if self.options.duplicates {
            let mut found = self.same_images;
            let copies = self.copies.into_iter().filter(|(_, same)| same.copies > 1);
            let rows = copies.map(|((section, target, name, _), same)| SameFunction {
                name: demangle(&name),
                target,
                section: Some(section),
                ..same
            });
            found.functions = rows.collect();
            found.functions.sort_by(|a, b| {
                let key = |same: &SameFunction| (same.name.clone(), same.target.clone());
                b.saves.cmp(&a.saves).then_with(|| key(a).cmp(&key(b)))
            });
            found.function_bytes = found.functions.iter().map(|same| same.saves).sum();
            report.duplicates = Some(found);
        }
        if self.options.compression {
            let modes = crate::CompressMode::ALL.iter().zip(self.modes);
            let rows = modes.map(|(mode, bytes)| CompressionSize { mode: *mode, bytes });
            report.compression = Some(rows.collect());
        }
        report
    }
}

fn largest_first(mut functions: Vec<FunctionSize>) -> Vec<FunctionSize> {
    functions.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    functions
}
