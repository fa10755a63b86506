//! Reads the output of the real cuobjdump about a file, in our words.

use std::collections::BTreeMap;
use std::path::Path;

use warpcc_fatbin::{Binary, Depth, Image, ImageKind, ImageRow, ReadLimits};

use super::{Toolkit, listed, open, run};

/// One image as cuobjdump lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    kind: &'static str,
    arch: String,
    version: String,
    compressed: bool,
    debug: bool,
    identifier: Option<String>,
    options: Option<String>,
}

/// Lists with `-all`.
pub fn list(path: &Path) -> Vec<Listed> {
    let text = run(Toolkit::newest().program("cuobjdump").arg("-all").arg(path));
    let blocks = text.split("Fatbin ").skip(1);
    // Its parts follow as images of their own.
    let images = blocks.filter(|block| !block.starts_with("concatenated entry"));
    images.map(parse).collect()
}

fn parse(block: &str) -> Listed {
    let kind = match block.split_whitespace().next() {
        Some("elf") => "elf",
        Some("ptx") => "ptx",
        Some("nvvm") => "lto",
        other => panic!("a new kind: {other:?}"),
    };
    let value = |key: &str| {
        let mut lines = block.lines().map(str::trim_start);
        let line = lines.find_map(|line| line.strip_prefix(key));
        line.map(|rest| rest.strip_prefix(" = ").unwrap_or(rest).to_owned())
    };
    Listed {
        kind,
        arch: value("arch").unwrap_or_default(),
        version: value("code version").unwrap_or_default(),
        compressed: value("compressed").is_some(),
        debug: value("has debug info").is_some(),
        identifier: value("identifier").map(|text| text.trim().to_owned()),
        options: value("ptxasOptions")
            .map(|text| text.trim_start_matches(" =").trim().to_owned())
            .filter(|text| !text.is_empty()),
    }
}

/// The same values from our row.
pub fn in_its_words(row: &ImageRow) -> Listed {
    let (major, minor) = row.code_version.unwrap_or_default();
    let options = row.options.as_deref().map(str::trim);
    Listed {
        kind: match row.kind {
            ImageKind::Ptx => "ptx",
            ImageKind::LtoIr => "lto",
            _ => "elf",
        },
        arch: row.arch.clone(),
        version: format!("[{major},{minor}]"),
        compressed: row.compressed_size.is_some(),
        debug: row.flags.iter().any(|flag| flag == "debug"),
        identifier: row.identifier.as_deref().map(|text| text.trim().to_owned()),
        // It shows those of PTX.
        options: options
            .filter(|text| row.kind == ImageKind::Ptx && !text.is_empty())
            .map(str::to_owned),
    }
}

/// The same images in the same order, with all that cuobjdump says about them.
pub fn assert_same_list(path: &Path) -> usize {
    let theirs = list(path);
    let ours = listed(path, Depth::Toolkits).rows;
    let ours: Vec<_> = ours.iter().map(in_its_words).collect();
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "{}: image {number}", path.display());
    }
    assert_eq!(ours.len(), theirs.len(), "{}", path.display());
    theirs.len()
}

/// Every cubin and every PTX, byte for byte. Gives how many.
///
/// cuobjdump numbers them by kind, and names them by number and architecture.
pub fn assert_same_images(path: &Path) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let path = path.canonicalize().expect("a file");
    run(Toolkit::newest()
        .program("cuobjdump")
        .current_dir(folder.path())
        .args(["-all", "-xelf", "all", "-xptx", "all"])
        .arg(&path));
    let mut theirs = BTreeMap::new();
    for entry in folder.path().read_dir().expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        // From the end: NUMBER.sm_ARCH.EXTENSION, as the stem may have dots.
        let mut words = name.rsplit('.');
        let (extension, arch, number) = (words.next(), words.next(), words.next());
        let number: usize = number.expect("a number").parse().expect(&name);
        let key = (extension.expect("an ending").to_owned(), number);
        let bytes = std::fs::read(entry.path()).expect("readable");
        theirs.insert(key, (arch.expect("an arch").to_owned(), bytes));
    }
    let binary = open(&path);
    let ours = extracted(&binary);
    for (key, (arch, bytes)) in &theirs {
        let (image, payload) = &ours[key];
        // It leaves the f of a cubin out.
        assert_eq!(
            format!("sm_{}", image.arch).trim_end_matches('f'),
            arch.trim_end_matches('f'),
            "{} {key:?}",
            path.display()
        );
        assert!(payload == bytes, "{} {key:?} differs", path.display());
    }
    assert_eq!(ours.len(), theirs.len(), "{}", path.display());
    theirs.len()
}

type Extracted<'a> = BTreeMap<(String, usize), (Image<'a>, Vec<u8>)>;

fn extracted(binary: &Binary) -> Extracted<'_> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all = BTreeMap::new();
    for container in binary.contents(&ReadLimits::default()).containers {
        for image in container.images {
            let extension = image.kind.extension();
            if !matches!(image.kind, ImageKind::Cubin | ImageKind::Ptx) {
                continue;
            }
            let number = numbers.entry(extension).or_default();
            *number += 1;
            let payload = image
                .payload(&ReadLimits::default())
                .expect("it decompresses");
            let payload = payload.into_owned();
            all.insert((extension.to_owned(), *number), (image, payload));
        }
    }
    all
}

/// Registers, stack, shared, local and constant memory of every function.
pub fn assert_same_usage(path: &Path) -> usize {
    let text = run(Toolkit::newest()
        .program("cuobjdump")
        .args(["-all", "-res-usage"])
        .arg(path));
    let mut theirs = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix(" Function ") {
            let numbers = lines.next().unwrap_or_default().trim();
            let numbers = numbers.split(" TEXTURE").next().unwrap_or_default();
            // Constant banks come in the order of their sections.
            let mut numbers: Vec<String> = numbers.split(' ').map(str::to_owned).collect();
            numbers.sort();
            theirs.push((name.trim_end_matches(':').to_owned(), numbers));
        }
    }
    let mut ours = Vec::new();
    for row in listed(path, Depth::Kernels).rows {
        let modern = row
            .target
            .trim_end_matches(['a', 'f'])
            .trim_start_matches("sm_");
        let modern = modern.parse::<u32>().is_ok_and(|number| number >= 90);
        for function in row.functions.iter().flatten() {
            let Some(usage) = &function.function.usage else {
                continue;
            };
            // It prints 0 for device functions from sm_90 on, where the real number is elsewhere.
            let registers = match function.function.is_kernel || !modern {
                true => usage.registers.unwrap_or(0),
                false => 0,
            };
            let mut numbers = vec![
                format!("REG:{registers}"),
                format!("STACK:{}", usage.stack.unwrap_or(0)),
                format!("SHARED:{}", usage.shared),
                format!("LOCAL:{}", usage.local),
            ];
            let constants = usage.constants.iter();
            numbers.extend(constants.map(|(bank, bytes)| format!("CONSTANT[{bank}]:{bytes}")));
            numbers.sort();
            ours.push((function.function.name.clone(), numbers));
        }
    }
    // It goes through the symbols of an image in an order of its own.
    theirs.sort();
    ours.sort();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{}", path.display());
    }
    assert_eq!(ours.len(), theirs.len(), "{}", path.display());
    theirs.len()
}
