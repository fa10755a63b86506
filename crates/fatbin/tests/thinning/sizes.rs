//! Sizes of device code, against what `cuobjdump` and `readelf` say, and against really rewritten files.

use std::path::Path;
use std::process::Command;

use crate::space::{Toolkit, folder, listed, open, run};
use warpcc_fatbin::{
    CompressMode, Depth, Keep, ReadLimits, SizeOptions, SizeReport, SizeSum, thin,
};

const TWO: &str =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]";

fn measured(paths: &[&Path], options: SizeOptions) -> SizeReport {
    let mut sum = SizeSum::new(options);
    for path in paths {
        let problems = sum.add(&open(path), &ReadLimits::default());
        assert_eq!(problems, [], "{}", path.display());
    }
    sum.finish()
}

/// The size of a section, as readelf says it.
fn section(path: &Path, name: &str) -> u64 {
    let text = run(Command::new("readelf").arg("-SW").arg(path));
    let line = text
        .lines()
        .find(|line| line.contains(&format!(" {name} ")));
    let words: Vec<&str> = line
        .expect(name)
        .split(']')
        .nth(1)
        .expect("a row")
        .split_whitespace()
        .collect();
    u64::from_str_radix(words[4], 16).expect("hexadecimal")
}

fn compiled(at: &Path) {
    let toolkit = Toolkit::newest();
    toolkit.compile(at, &format!("-c a.cu {TWO} -Xcompiler -fPIC -o a.o"));
    // The same kernels in a second object, as templates in a header give them.
    let second = std::fs::read_to_string(at.join("a.cu")).expect("text");
    let second = second
        .replace("int main()", "int second()")
        .replace("plain", "other");
    std::fs::write(at.join("b.cu"), second).expect("written");
    toolkit.compile(at, &format!("-c b.cu {TWO} -Xcompiler -fPIC -o b.o"));
}

#[test]
fn device_code_is_the_section_and_every_byte_has_an_owner() {
    let folder = folder();
    let at = folder.path();
    compiled(at);
    let object = at.join("a.o");
    let sizes = measured(&[&object], SizeOptions::default());
    assert_eq!(sizes.device_bytes, section(&object, ".nv_fatbin"));
    let rows = listed(&object, Depth::Kernels).rows;
    let unpacked: u64 = rows.iter().map(|row| row.size).sum();
    assert_eq!(sizes.unpacked_bytes, unpacked);
    let owned: u64 = sizes.functions.iter().map(|f| f.bytes).sum();
    assert_eq!(owned + sizes.shared_bytes, unpacked);
    // Its own sections hold at least its code, which is in two cubins.
    let code: u64 = rows
        .iter()
        .flat_map(|row| row.kernels())
        .filter(|kernel| kernel.demangled.contains("scale<float>"))
        .filter_map(|kernel| Some(kernel.function.usage.as_ref()?.code))
        .sum();
    let scale = sizes
        .functions
        .iter()
        .find(|f| f.name.contains("scale<float>"));
    let scale = scale.expect("a kernel");
    assert!(scale.bytes > code && scale.copies == 3, "{scale:?}, {code}");
    // Both instances are one family.
    let family = sizes
        .families
        .iter()
        .find(|f| f.name == "scale")
        .expect("a family");
    assert_eq!(family.copies, 6);
    assert!(sizes.families.iter().any(|f| f.name == "plain"));
}

#[test]
fn what_dropping_saves_is_what_thin_saves() {
    let folder = folder();
    let at = folder.path();
    Toolkit::newest().compile(at, &format!("-fatbin a.cu {TWO} -o a.fatbin"));
    let file = at.join("a.fatbin");
    let sizes = measured(&[&file], SizeOptions::default());
    let before = file.metadata().expect("a file").len();
    assert_eq!(sizes.device_bytes, before);
    for (dropped, keep, then) in [
        ("sm_80", "sm_90+ptx", (0, 0, 1)),
        ("sm_90", "sm_80,compute_90", (0, 1, 0)),
        ("compute_90", "sm_80,sm_90", (0, 0, 0)),
    ] {
        let keep: Keep = keep.parse().expect("a list");
        let thinned = thin(&open(&file), &keep, None, &ReadLimits::default()).expect("thinned");
        let row = sizes
            .targets
            .iter()
            .find(|t| t.target == dropped)
            .expect(dropped);
        assert_eq!(
            row.drop_saves,
            before - thinned.bytes.len() as u64,
            "{dropped}"
        );
        assert_eq!(
            (row.then_run, row.then_compile, row.then_fail),
            then,
            "{dropped}"
        );
        let ptx_only = if then.1 == 1 { row.drop_saves } else { 0 };
        assert_eq!(row.ptx_only_saves, ptx_only, "{dropped}");
    }
}

#[test]
fn equal_kernels_of_two_objects_are_found() {
    let folder = folder();
    let at = folder.path();
    compiled(at);
    let options = SizeOptions {
        duplicates: true,
        compression: false,
    };
    let (a, b) = (at.join("a.o"), at.join("b.o"));
    let alone = measured(&[&a], options).duplicates.expect("asked for");
    assert_eq!((alone.function_bytes, alone.functions.len()), (0, 0));
    let both = measured(&[&a, &b], options).duplicates.expect("asked for");
    let found: Vec<_> = both
        .functions
        .iter()
        .filter(|same| same.name.contains("scale<float>"))
        .map(|same| (same.target.as_str(), same.copies))
        .collect();
    for target in ["sm_80", "sm_90"] {
        assert!(found.contains(&(target, 2)), "{found:?}");
    }
    // The kernel that each has for itself is in none.
    assert!(
        both.functions
            .iter()
            .all(|same| !same.name.contains("plain"))
    );
    assert_eq!(both.images, 0);
    // A file twice: all but one are too many, whole images among them.
    let twice = measured(&[&a, &a], options).duplicates.expect("asked for");
    assert_eq!(twice.images, 3);
    let images: u64 = listed(&a, Depth::Headers)
        .rows
        .iter()
        .map(|r| r.stored_size)
        .sum();
    assert_eq!(twice.image_bytes, images);
}

#[test]
fn other_compression_is_measured_by_doing_it() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    for mode in CompressMode::ALL {
        let options = format!("-fatbin -compress-mode={mode} a.cu {TWO} -o {mode}.fatbin");
        toolkit.compile(at, &options);
    }
    let options = SizeOptions {
        duplicates: false,
        compression: true,
    };
    let from = at.join("none.fatbin");
    let sizes = measured(&[&from], options);
    for row in sizes.compression.expect("asked for") {
        let theirs = at
            .join(format!("{}.fatbin", row.mode))
            .metadata()
            .expect("a file")
            .len();
        // The compressor of nvcc is of another release: it differs by a few bytes.
        assert!(
            row.bytes.abs_diff(theirs) <= 64,
            "{}: {} and {theirs}",
            row.mode,
            row.bytes
        );
    }
}
