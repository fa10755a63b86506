//! docs/tutorial.md is what nvcc does: written here from stories of the newest toolkit, and compared
//! with what is committed. `WARPCC_TUTORIAL=write` (`cargo xtask tutorial`) writes it.

use std::fs;
use std::path::{Path, PathBuf};

use warpcc_explain::markdown::{self, Detail};

use super::space::TestSpace;
use super::{Explanation, TWO, explanation};

/// Where the files are, as far as the tutorial is concerned.
const FOLDER: &str = "/work/project";
/// The toolkit's place, as far as the tutorial is concerned.
const TOOLKIT: &str = "/usr/local/cuda";
/// The compiler that cudafe++ has to imitate: this machine's may be another.
const GCC: &str = "--gnu_version=120200";
const SOURCES: [&str; 3] = ["saxpy.cu", "main.cu", "twice.cu"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// zlib's CRC-32, bit by bit: the module id's first part, for another path.
fn crc32(text: &str) -> String {
    let crc = text.bytes().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1))
        })
    });
    format!("{:08x}", !crc)
}

/// The explanation as it would be told in [`FOLDER`].
fn elsewhere(space: &TestSpace, explanation: &Explanation) -> Explanation {
    let work = space.work().display().to_string();
    let mut pieces = vec![
        (
            space.toolkit.top().display().to_string(),
            TOOLKIT.to_owned(),
        ),
        (explanation.folder.clone(), "keep/".to_owned()),
    ];
    // Nothing else says where a file is but its path's checksum.
    for source in SOURCES {
        let (here, there) = (format!("{work}/{source}"), format!("{FOLDER}/{source}"));
        pieces.push((crc32(&here), crc32(&there)));
    }
    pieces.push((work, FOLDER.to_owned()));
    let gcc = explanation
        .steps
        .iter()
        .flat_map(|step| &step.options)
        .find(|option| option.words.starts_with("--gnu_version="))
        .expect("cudafe++ is told gcc's version");
    pieces.push((gcc.words.clone(), GCC.to_owned()));
    explanation.replaced(&pieces).expect("an explanation")
}

/// Numbers that count declarations in headers (`__cuda_local_var_36757_9_non_const_i`, `__T5`) or
/// bytes of notes with paths in them (`fatbinData[647]`).
fn without_counts(text: &str) -> String {
    let mut out = text.to_owned();
    for mark in ["__cuda_local_var_", "__T", "fatbinData["] {
        let mut done = String::with_capacity(out.len());
        let mut rest = out.as_str();
        while let Some(at) = rest.find(mark) {
            let (before, after) = rest.split_at(at + mark.len());
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            done.push_str(before);
            if digits > 0 {
                done.push('N');
            }
            rest = &after[digits..];
        }
        done.push_str(rest);
        out = done;
    }
    out
}

fn shown(explanation: &Explanation, depth: Detail) -> String {
    let mut out = Vec::new();
    markdown::write(explanation, depth, 3, &mut out).expect("memory");
    without_counts(&String::from_utf8(out).expect("UTF-8"))
}

fn written() -> String {
    let space = TestSpace::whole("explain-tutorial");
    for source in SOURCES {
        space.write(source, &read(&docs().join("tutorial").join(source)));
    }
    let one = format!("-c saxpy.cu -o saxpy.o {TWO}");
    let rdc = "-rdc=true main.cu twice.cu -o program -arch=sm_90";
    let stories = [one.as_str(), rdc].map(|args| elsewhere(&space, &explanation(&space, args)));
    let mut text = read(&docs().join("tutorial/frame.md.in"));
    let mut fill = |place: &str, with: &str| {
        let place = format!("{{{{{place}}}}}");
        assert!(text.contains(&place), "{place} in frame.md");
        text = text.replace(&place, with);
    };
    fill("toolkit", stories[0].toolkit.as_deref().unwrap_or_default());
    fill("one command", &format!("nvcc {one}"));
    fill("rdc command", &format!("nvcc {rdc}"));
    fill("one", &shown(&stories[0], Detail::Everything));
    fill("rdc", &shown(&stories[1], Detail::LinkOnly));
    for source in SOURCES {
        fill(source, &read(&docs().join("tutorial").join(source)));
    }
    text
}

#[test]
fn the_tutorial_is_what_nvcc_does() {
    let path = docs().join("tutorial.md");
    let text = written();
    if std::env::var_os("WARPCC_TUTORIAL").is_some_and(|word| word == "write") {
        fs::write(&path, text).expect("docs/tutorial.md is written");
        return;
    }
    let committed = read(&path);
    if let Some((at, (new, old))) = text
        .lines()
        .zip(committed.lines())
        .enumerate()
        .find(|(_, (new, old))| new != old)
    {
        panic!(
            "docs/tutorial.md is not what nvcc does, at line {}:\n  it says {old}\n  nvcc does {new}\n\
             run `cargo xtask tutorial` and look at the difference",
            at + 1
        );
    }
    assert_eq!(text.lines().count(), committed.lines().count());
}

#[test]
fn the_checksum_is_zlibs() {
    assert_eq!(crc32("123456789"), "cbf43926");
}
