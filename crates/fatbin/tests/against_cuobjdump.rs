//! The same images, bytes and numbers as NVIDIA's cuobjdump, on what nvcc makes and on what is
//! shipped.

mod space;
mod wheels;

use std::path::Path;
use std::process::Command;

use space::cuobjdump::{assert_same_images, assert_same_list, assert_same_usage};
use space::{Toolkit, folder, run};
use warpcc_fatbin::{Depth, ImageKind, ReadLimits};
use wheels::{BITSANDBYTES, NCCL, NVJPEG};

/// Everything that can be compared about a file; gives the number of images.
fn assert_same(path: &Path) -> usize {
    let images = assert_same_list(path);
    assert_same_images(path);
    assert_same_usage(path);
    images
}

const TWO: &str =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=[sm_90a,compute_90a]";

#[test]
fn objects_libraries_programs_archives_and_fat_binaries() {
    for toolkit in Toolkit::all() {
        let folder = folder();
        let at = folder.path();
        toolkit.compile(at, &format!("-c a.cu {TWO} -o a.o"));
        toolkit.compile(at, &format!("-c a.cu {TWO} -rdc=true -o r.o"));
        toolkit.compile(at, &format!("-fatbin a.cu {TWO} -o a.fatbin"));
        toolkit.compile(at, "a.o -shared -o a.so");
        toolkit.compile(at, &format!("r.o {TWO} -o program"));
        run(Command::new("ar")
            .current_dir(at)
            .args(["rcs", "a.a", "a.o", "r.o"]));
        for (name, images) in [
            ("a.o", 3),
            ("r.o", 3),
            ("a.fatbin", 3),
            ("a.so", 3),
            ("a.a", 6),
        ] {
            let found = assert_same(&at.join(name));
            // A link adds containers without kernels.
            assert!(found >= images, "{} {name}: {found}", toolkit.name);
        }
        assert!(assert_same(&at.join("program")) >= 5, "{}", toolkit.name);
    }
}

#[test]
fn every_way_to_compress_and_every_kind_of_option() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    let cases = [
        "-compress-mode=none",
        "-compress-mode=speed -Xfatbin=-compress-all",
        "-compress-mode=size",
        "-G",
        "-lineinfo",
        "-Xptxas=-O1,-maxrregcount=32",
    ];
    for (number, options) in cases.iter().enumerate() {
        // One image a kind: with a source's name in it, cuobjdump writes two to one file.
        let name = format!("{number}.fatbin");
        toolkit.compile(
            at,
            &format!("-fatbin a.cu -gencode arch=compute_100,code=[sm_100,compute_100] {options} -o {name}"),
        );
        assert_eq!(assert_same_list(&at.join(&name)), 2, "{options}");
        if !["-G", "-lineinfo"].iter().any(|o| options.starts_with(o)) {
            assert_same_images(&at.join(&name));
        }
        assert_same_usage(&at.join(&name));
    }
}

#[test]
fn lto_ir_is_listed_and_a_lone_cubin_says_what_it_is() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    toolkit.compile(
        at,
        "-c a.cu -rdc=true -gencode arch=compute_90,code=lto_90 -o lto.o",
    );
    assert_eq!(assert_same_list(&at.join("lto.o")), 1);
    let lto = space::listed(&at.join("lto.o"), Depth::Kernels);
    assert_eq!(
        (lto.rows[0].kind, lto.rows[0].target.as_str()),
        (ImageKind::LtoIr, "lto_90")
    );
    for (arch, own) in [
        ("sm_80", "sm_80"),
        ("sm_90a", "sm_90a"),
        ("sm_120a", "sm_120a"),
    ] {
        let name = format!("{arch}.cubin");
        toolkit.compile(at, &format!("-cubin a.cu -arch={arch} -o {name}"));
        let rows = space::listed(&at.join(&name), Depth::Kernels).rows;
        assert_eq!(rows[0].target, own);
        assert_eq!(rows[0].toolkit.as_deref().map(|t| &t[..4]), Some("13.5"));
        assert_same_usage(&at.join(&name));
    }
}

#[test]
fn concatenated_images_are_taken_apart() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    toolkit.compile(
        at,
        &format!("-fatbin a.cu {TWO} -compress-mode=size -Xfatbin=--concat -o c.fatbin"),
    );
    assert_eq!(assert_same(&at.join("c.fatbin")), 3);
    let binary = space::open(&at.join("c.fatbin"));
    let found = binary.contents(&ReadLimits::default());
    assert!(
        found.containers.iter().any(|c| !c.bundles.is_empty()),
        "nothing was concatenated"
    );
}

#[test]
fn local_loads_and_stores_are_those_of_nvdisasm() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    for arch in ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"] {
        toolkit.compile(
            at,
            &format!("-cubin a.cu -arch={arch} -maxrregcount=16 -o l.cubin"),
        );
        let text = run(toolkit
            .program("nvdisasm")
            .args(["-c", "-plr"])
            .arg(at.join("l.cubin")));
        let rows = space::listed(&at.join("l.cubin"), Depth::Kernels).rows;
        let (mut loads, mut stores) = (0, 0);
        for function in rows[0].functions.iter().flatten() {
            let usage = function.function.usage.as_ref().expect("machine code");
            loads += usage.local_loads.expect("counted");
            stores += usage.local_stores.expect("counted");
        }
        let count = |word: &str| {
            let lines = text
                .lines()
                .filter(|line| line.contains(&format!(" {word}")));
            u32::try_from(lines.count()).expect("few")
        };
        assert_eq!((loads, stores), (count("LDL"), count("STL")), "{arch}");
        assert!(
            loads > 0 && stores > 0,
            "{arch}: the source has a local array"
        );
    }
}

#[test]
fn bitsandbytes_of_seven_toolkits() {
    let folder = folder();
    let mut images = 0;
    let mut toolkits = Vec::new();
    for path in BITSANDBYTES.unpack("_cuda", folder.path()) {
        let rows = space::listed(&path, Depth::Kernels).rows;
        let toolkit = rows[0].toolkit.clone().expect("it says");
        // cuobjdump 13.5 gives up on the empty cubins of 12.1.
        if toolkit != "12.1" {
            images += assert_same(&path);
        }
        // Reading the start gives the same as reading the whole.
        for (quick, thorough) in space::listed(&path, Depth::Toolkits).rows.iter().zip(&rows) {
            assert_eq!(
                (&quick.toolkit, quick.size),
                (&thorough.toolkit, thorough.size)
            );
        }
        toolkits.push(toolkit);
    }
    toolkits.sort();
    assert_eq!(toolkits.len(), 7, "{toolkits:?}");
    assert_eq!(images, 337);
}

#[test]
fn nvjpeg_of_nvidia() {
    let folder = folder();
    for path in NVJPEG.unpack("libnvjpeg", folder.path()) {
        assert!(assert_same(&path) > 0);
    }
}

#[test]
fn a_wheel_is_what_is_in_it() {
    let limits = ReadLimits::default();
    let (inputs, errors) = warpcc_fatbin::find(&[NVJPEG.fetch()]);
    assert!(errors.is_empty(), "{errors:?}");
    let folder = folder();
    let unpacked = NVJPEG.unpack("libnvjpeg", folder.path());
    assert_eq!(inputs.len(), unpacked.len());
    for (input, path) in inputs.into_iter().zip(unpacked) {
        let member = warpcc_fatbin::Binary::open(input, &limits).expect("it opens");
        assert!(member.bytes() == std::fs::read(path).expect("readable"));
    }
}

/// How fast that is: `cargo xtask bench --only fatbin-list`.
#[test]
#[ignore = "downloads 305 MB: cargo nextest run --release --run-ignored all nccl"]
fn nccl_has_the_images_that_cuobjdump_lists() {
    let folder = folder();
    let path = NCCL.unpack("libnccl.so", folder.path()).remove(0);
    assert_eq!(assert_same_list(&path), 1498);
}
