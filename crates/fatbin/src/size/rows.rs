//! The rows of a report of sizes, as JSON has them. `docs/fatbin.md` describes each field.

use serde::Serialize;

use crate::compress::CompressMode;
use crate::container::Section;
use crate::image::ImageKind;

/// What to measure besides the bytes that are there.
#[derive(Debug, Clone, Copy, Default)]
pub struct SizeOptions {
    /// Functions and images that are in several containers.
    pub duplicates: bool,
    /// Every compression, by doing it: some seconds for each 10 MB.
    pub compression: bool,
}

/// What `warpcc fatbin size` finds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SizeReport {
    /// Bytes of device code in the files: containers with their headers, images and padding.
    pub device_bytes: u64,
    /// The images after decompression, in bytes.
    pub unpacked_bytes: u64,
    /// Of these, what belongs to no single function: tables, names, notes, the head of a PTX text.
    pub shared_bytes: u64,
    /// What concatenated images take in the files; the rows of targets do not have them.
    pub concatenated_bytes: u64,
    /// The files.
    pub files: Vec<FileSize>,
    /// By architecture.
    pub targets: Vec<TargetSize>,
    /// By template, the largest first.
    pub families: Vec<FunctionSize>,
    /// By kernel and device function, the largest first.
    pub functions: Vec<FunctionSize>,
    /// By container, in the order of the files.
    pub containers: Vec<ContainerSize>,
    /// What is there more than once; only where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<Duplicates>,
    /// The device code with other compression; only where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Vec<CompressionSize>>,
}

/// One file, or member of a wheel.
#[derive(Debug, Clone, Serialize)]
pub struct FileSize {
    /// Its name.
    pub file: String,
    /// The whole file, in bytes.
    pub bytes: u64,
    /// Its device code, in bytes.
    pub device_bytes: u64,
    /// Number of containers.
    pub containers: usize,
}

/// The images for one target: `sm_90`, `compute_80`.
#[derive(Debug, Clone, Serialize)]
pub struct TargetSize {
    /// The target.
    pub target: String,
    /// Machine code, PTX or LTO-IR.
    pub kind: ImageKind,
    /// Number of images.
    pub images: u64,
    /// In the files, in bytes.
    pub bytes: u64,
    /// After decompression, in bytes.
    pub unpacked_bytes: u64,
    /// Bytes that are saved by removing all of them; a container keeps one image.
    pub drop_saves: u64,
    /// Of these, in containers where a GPU of this number then compiles PTX.
    pub ptx_only_saves: u64,
    /// Containers where a GPU of this number then runs other machine code.
    pub then_run: u64,
    /// Containers where it then compiles PTX.
    pub then_compile: u64,
    /// Containers where it then finds nothing.
    pub then_fail: u64,
}

impl Default for TargetSize {
    fn default() -> Self {
        Self {
            target: String::new(),
            kind: ImageKind::Cubin,
            images: 0,
            bytes: 0,
            unpacked_bytes: 0,
            drop_saves: 0,
            ptx_only_saves: 0,
            then_run: 0,
            then_compile: 0,
            then_fail: 0,
        }
    }
}

/// A function, or all that are made from one template.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionSize {
    /// Readable.
    pub name: String,
    /// Whether the host starts it. True for a family.
    pub is_kernel: bool,
    /// In how many images it is; for a family, of all its functions.
    pub copies: u64,
    /// What is its own in all images, after decompression, in bytes.
    pub bytes: u64,
}

impl FunctionSize {
    pub(crate) fn named(name: String, is_kernel: bool) -> Self {
        Self {
            name,
            is_kernel,
            copies: 0,
            bytes: 0,
        }
    }
}

/// A container.
#[derive(Debug, Clone, Serialize)]
pub struct ContainerSize {
    /// The file, and the member of a wheel.
    pub file: String,
    /// The member of a static library: the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The section that holds it.
    pub section: Section,
    /// Its number in the file, from 0.
    pub container: usize,
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// In the file, in bytes.
    pub bytes: u64,
    /// Number of images.
    pub images: usize,
    /// One of its kernels, readable: what the object is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// What is there more than once.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Duplicates {
    /// Bytes of functions that would be saved if each stood once, after decompression.
    pub function_bytes: u64,
    /// Images that are equal to an earlier one of another container.
    pub images: u64,
    /// What these take in the files, in bytes.
    pub image_bytes: u64,
    /// The functions, those that would save most first.
    pub functions: Vec<SameFunction>,
}

/// A function with equal code and constants in several containers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SameFunction {
    /// Readable.
    pub name: String,
    /// Its target.
    pub target: String,
    /// Loaded code or input of a device link.
    pub section: Option<Section>,
    /// How often it is there.
    pub copies: u64,
    /// The bytes of all but one, after decompression.
    pub saves: u64,
}

/// The device code with one compression.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CompressionSize {
    /// The mode, as for `nvcc -compress-mode`.
    pub mode: CompressMode,
    /// All device code with it, in bytes.
    pub bytes: u64,
}
