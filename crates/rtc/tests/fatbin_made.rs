//! Fat binaries made by nvFatbin, against this project's reader, cuobjdump, and the toolkit's own `fatbinary`.

mod space;

use std::path::{Path, PathBuf};
use std::process::Command;

use space::{Nvrtc, nvfatbin, open_compiler, request};
use warpcc_fatbin::{Format, Image, ReadLimits as Sizes, read};
use warpcc_rtc::{
    CacheSettings, CallLimits, Compiled, Environment, Error, ErrorKind, FatbinImage, FatbinMaker,
    Found, KernelCache, LinkRequest, Linker, Piece, PieceKind, RealArch, Target,
};

const SOURCE: &str = "extern \"C\" __global__ void k(float* x) { *x = *x * 3.f; }\n";
const TARGETS: [&str; 5] = ["sm_80", "sm_90", "sm_90a", "compute_90", "lto_90"];

fn makers() -> Vec<FatbinMaker> {
    let found =
        nvfatbin().map(|file| FatbinMaker::find_with(Some(&file), None, &Environment::default()));
    found
        .into_iter()
        .map(|maker| maker.expect("nvFatbin"))
        .collect()
}

fn compiled(target: &str) -> Compiled {
    // Of a toolkit that is neither nvFatbin's.
    let compiler = open_compiler(&Nvrtc::all()[1]);
    let made = compiler.compile(&request("k", SOURCE, target), &CallLimits::default());
    made.unwrap_or_else(|error| panic!("{target}: {error}"))
}

fn images_of(bytes: &[u8]) -> Vec<Image<'_>> {
    let found = read(bytes, Format::Fatbin, &Sizes::default());
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let containers = found.containers.into_iter();
    containers.flat_map(|container| container.images).collect()
}

/// Without the zeros that end a text or fill up to a multiple of eight.
fn bare(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().rev().take_while(|b| **b == 0).count();
    &bytes[..bytes.len() - zeros]
}

/// nvFatbin of 13.5, like the toolkit's `fatbinary`, leaves comments and blanks of PTX out.
fn same(target: Target, got: &[u8], put: &[u8]) -> bool {
    let words = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8(bare(text).to_vec()).expect("PTX is text");
        let code = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        code.flat_map(str::split_whitespace)
            .map(str::to_owned)
            .collect()
    };
    match target {
        Target::Ptx(_) => words(got) == words(put),
        _ => bare(got) == bare(put),
    }
}

fn payload(image: &Image<'_>) -> Vec<u8> {
    image
        .payload(&Sizes::default())
        .expect("a payload")
        .to_vec()
}

#[test]
fn a_fat_binary_holds_the_images_it_was_made_of() {
    let all: Vec<_> = TARGETS.iter().map(|target| compiled(target)).collect();
    for maker in makers() {
        let images: Vec<_> = all
            .iter()
            .map(|one| FatbinImage::from_compiled("k.cu", one))
            .collect();
        for options in [&[][..], &["-compress=false"], &["-compress-all"]] {
            let bytes = maker
                .make(&images, options)
                .unwrap_or_else(|error| panic!("{} {options:?}: {error}", maker.version()));
            let read = images_of(&bytes);
            let targets: Vec<_> = read.iter().map(Image::target).collect();
            assert_eq!(targets, TARGETS, "{} {options:?}", maker.version());
            for (image, put) in read.iter().zip(&all) {
                assert_eq!(image.identifier.as_deref(), Some("k.cu"));
                // Its form in a fat binary is another one: see below.
                if let Target::LtoIr(_) = put.target {
                    continue;
                }
                let got = payload(image);
                assert!(
                    same(put.target, &got, &put.image),
                    "{} {options:?} {}",
                    maker.version(),
                    put.target
                );
            }
        }
    }
}

#[test]
fn lto_ir_in_a_fat_binary_links_to_the_same_machine_code() {
    let nvrtc = Nvrtc::newest();
    let linker = Linker::find_with(None, Some(&nvrtc.folder), &Environment::default());
    let linker = linker.expect("nvJitLink");
    let compiler = open_compiler(&nvrtc);
    let made = compiler.compile(&request("k", SOURCE, "lto_90"), &CallLimits::default());
    let made = made.expect("compiles");
    let fatbin = makers()[0]
        .make(&[FatbinImage::from_compiled("k", &made)], &[])
        .expect("made");
    let link = |kind, bytes: &[u8]| {
        let piece = Piece {
            name: "k".into(),
            kind,
            bytes: bytes.into(),
        };
        let request = LinkRequest {
            name: "k".into(),
            pieces: vec![piece],
            target: RealArch::new(90),
            options: vec!["-lto".into()],
        };
        linker.link(&request).expect("links").image
    };
    let (direct, through) = (
        link(PieceKind::LtoIr, &made.image),
        link(PieceKind::Fatbin, &fatbin),
    );
    assert!(direct.starts_with(b"\x7fELF") && direct == through);
}

#[test]
fn a_driver_would_take_the_image_that_was_put_in() {
    let cache = KernelCache::with(
        open_compiler(&Nvrtc::newest()),
        CacheSettings::default(),
        None,
    );
    for maker in makers() {
        let images: Vec<_> = ["sm_80", "compute_80"]
            .iter()
            .map(|target| FatbinImage::from_compiled("k", &compiled(target)))
            .collect();
        let bytes = maker.make(&images, &[]).expect("made");
        let taken = |gpu| {
            cache
                .get_fatbin("k", &bytes, gpu, None, &CallLimits::default())
                .expect("taken")
        };
        let own = taken(86);
        assert_eq!(
            (own.found, own.compiled.target.to_string()),
            (Found::Given, "sm_80".to_owned())
        );
        assert!(bare(&own.compiled.image) == bare(&images[0].bytes));
        let newer = taken(90);
        assert_eq!(newer.compiled.target.to_string(), "sm_90");
        assert_eq!(newer.found, Found::Made);
    }
}

fn tool(name: &str) -> PathBuf {
    // …/nvidia/cu13/lib
    Nvrtc::newest().folder.join("../bin").join(name)
}

fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

/// cuobjdump's list of a file, without the file's name.
fn listed(file: &Path, which: &str) -> Vec<String> {
    let said = said(Command::new(tool("cuobjdump")).arg(which).arg(file));
    let name = file
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    said.lines()
        .map(|line| line.replace(&name, "NAME"))
        .collect()
}

#[test]
fn cuobjdump_and_fatbinary_see_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let all: Vec<_> = ["sm_80", "sm_90a", "compute_90"].map(compiled).into();
    // The toolkit's own program, given the same images.
    let theirs = folder.path().join("theirs.fatbin");
    let mut fatbinary = Command::new(tool("fatbinary"));
    fatbinary
        .arg("-64")
        .arg(format!("--create={}", theirs.display()));
    for one in &all {
        let file = folder
            .path()
            .join(format!("{}.{}", one.target, one.target.extension()));
        std::fs::write(&file, &one.image).expect("written");
        let kind = match one.target {
            Target::Ptx(_) => "ptx",
            _ => "elf",
        };
        let arch = format!("sm_{}", one.target.arch());
        fatbinary.arg(format!(
            "--image3=kind={kind},sm={},file={}",
            arch.trim_start_matches("sm_"),
            file.display()
        ));
    }
    said(&mut fatbinary);
    let expected = std::fs::read(&theirs).expect("made");
    let maker = &makers()[0];
    let images: Vec<_> = all
        .iter()
        .map(|one| FatbinImage::from_compiled("k.cu", one))
        .collect();
    let bytes = maker.make(&images, &[]).expect("made");
    let ours = folder.path().join("ours.fatbin");
    std::fs::write(&ours, &bytes).expect("written");
    for which in ["--list-elf", "--list-ptx"] {
        let lines = listed(&ours, which);
        assert_eq!(
            lines.len(),
            if which == "--list-elf" { 2 } else { 1 },
            "{lines:?}"
        );
        for (target, line) in all
            .iter()
            .map(|one| one.target.arch())
            .zip(&lines)
            .take(lines.len())
        {
            if which == "--list-elf" {
                assert!(line.contains(&format!("sm_{target}")), "{line}");
            }
        }
    }
    let (mine, theirs) = (images_of(&bytes), images_of(&expected));
    assert_eq!(mine.len(), theirs.len());
    for (mine, theirs) in mine.iter().zip(&theirs) {
        assert_eq!(mine.target(), theirs.target());
        assert_eq!(mine.code_version, theirs.code_version);
        assert_eq!(mine.method(), theirs.method());
        assert!(payload(mine) == payload(theirs), "{}", mine.target());
    }
}

#[test]
fn images_that_do_not_fit_are_errors() {
    let cubin = compiled("sm_90");
    for maker in makers() {
        let invalid = |image: FatbinImage, words: &str| {
            let error = maker.make(&[image], &[]).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(words), "{error}");
        };
        assert!(maker.make(&[], &[]).is_err());
        let of = |target: &str, bytes: &[u8]| FatbinImage {
            name: "k".into(),
            target: target.parse().expect("a target"),
            bytes: bytes.into(),
            options: "".into(),
        };
        invalid(of("sm_90", b"junk"), "ELF");
        invalid(of("compute_90", b"a\0b"), "NUL");
        invalid(of("lto_90", b""), "empty");
        // A cubin of another architecture than was said.
        let error = maker
            .make(&[of("sm_80", &cubin.image)], &[])
            .expect_err("refused");
        assert!(
            matches!(&error, Error::Fatbin { what, .. } if what.contains("sm_80")),
            "{error}"
        );
        let image = FatbinImage::from_compiled("k", &cubin);
        let error = maker
            .make(std::slice::from_ref(&image), &["-no-such-option"])
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Fatbin, "{error}");
        assert!(maker.make(&[image], &[]).is_ok());
    }
}
