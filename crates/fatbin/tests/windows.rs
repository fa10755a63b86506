//! Windows DLLs around a real fat binary: listed and judged as the fat binary itself, and never rewritten.
//!
//! The DLL is made here: there is no compiler for Windows. `objdump` reads it where it knows the format.

use std::path::Path;
use std::process::Command;

use warpcc_fatbin::{
    Binary, BinaryInput, Depth, Format, Keep, LoadOutcome, ReadLimits, Refusal, Situation, judge,
    list, read, thin,
};
use warpcc_testkit::Toolkit;

const FILE_ALIGN: usize = 512;

/// A DLL for x86-64 with these sections after one of code.
fn dll(sections: &[(&[u8; 8], &[u8])]) -> Vec<u8> {
    let mut all: Vec<(&[u8; 8], &[u8])> = vec![(b".text\0\0\0", b"\xc3")];
    all.extend(sections);
    let headers = (64 + 4 + 20 + 240 + all.len() * 40).next_multiple_of(FILE_ALIGN);
    let mut bytes = vec![0; 64];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 64;
    bytes.extend(b"PE\0\0");
    let mut coff = [0_u8; 20];
    coff[..2].copy_from_slice(&0x8664_u16.to_le_bytes());
    coff[2..4].copy_from_slice(&(all.len() as u16).to_le_bytes());
    coff[16..18].copy_from_slice(&240_u16.to_le_bytes());
    coff[18..20].copy_from_slice(&0x2022_u16.to_le_bytes());
    bytes.extend(coff);
    let mut optional = [0_u8; 240];
    optional[..2].copy_from_slice(&0x20b_u16.to_le_bytes());
    for (at, value) in [
        (32, 0x1000_u32),
        (36, FILE_ALIGN as u32),
        (60, headers as u32),
        (108, 16),
    ] {
        optional[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    optional[24..32].copy_from_slice(&0x1_8000_0000_u64.to_le_bytes());
    let (mut address, mut place) = (0x1000, headers);
    let mut table = Vec::new();
    for (name, data) in &all {
        let mut row = [0_u8; 40];
        row[..8].copy_from_slice(*name);
        let raw = data.len().next_multiple_of(FILE_ALIGN);
        for (at, value) in [(8, data.len()), (12, address), (16, raw), (20, place)] {
            row[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        }
        row[36..40].copy_from_slice(&0x4000_0040_u32.to_le_bytes());
        table.extend(row);
        address += data.len().next_multiple_of(0x1000);
        place += raw;
    }
    optional[56..60].copy_from_slice(&(address as u32).to_le_bytes());
    bytes.extend(optional);
    bytes.extend(table);
    bytes.resize(headers, 0);
    for (_, data) in &all {
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(FILE_ALIGN), 0);
    }
    bytes
}

fn fatbin(at: &Path) -> Vec<u8> {
    let source = "__global__ void scale(float *p) { *p *= 2; }\n";
    std::fs::write(at.join("a.cu"), source).expect("written");
    let two =
        "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]";
    Toolkit::newest().compile(at, &format!("-fatbin a.cu {two} -o a.fatbin"));
    std::fs::read(at.join("a.fatbin")).expect("readable")
}

fn opened(path: &Path) -> Binary {
    Binary::open(BinaryInput::file(path), &ReadLimits::default()).expect("it opens")
}

#[test]
fn a_dll_is_listed_and_judged_as_its_fat_binary() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let fatbin = fatbin(at);
    // Two containers, of which one is an input of a link.
    let twice = [&fatbin[..], &fatbin].concat();
    std::fs::write(
        at.join("x.dll"),
        dll(&[(b".nv_fatb", &twice), (b"__nv_rel", &fatbin)]),
    )
    .expect("written");
    let known = Command::new("objdump").arg("-i").output();
    if known.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("pei-x86-64")) {
        let said = Command::new("objdump")
            .arg("-h")
            .arg(at.join("x.dll"))
            .output()
            .expect("objdump");
        assert!(
            String::from_utf8_lossy(&said.stdout).contains(".nv_fatb"),
            "{said:?}"
        );
    }
    let binary = opened(&at.join("x.dll"));
    assert_eq!(binary.format, Format::Pe);
    let limits = ReadLimits::default();
    let listing = list(&binary, Depth::Kernels, &limits);
    assert_eq!(listing.problems, []);
    assert_eq!(listing.containers, 3);
    let alone = list(&opened(&at.join("a.fatbin")), Depth::Kernels, &limits).rows;
    for (index, row) in listing.rows.iter().enumerate() {
        let same = &alone[index % alone.len()];
        assert_eq!(
            (&row.target, row.size, row.stored_size),
            (&same.target, same.size, same.stored_size)
        );
        assert_eq!(
            row.kernels().next().map(|k| &k.demangled),
            Some(&"scale(float*)".to_owned())
        );
        let header = row.offset as usize;
        // The version that every image's header has.
        assert_eq!(
            binary.bytes()[header + 2..][..2],
            [1, 1],
            "not where the image is"
        );
    }
    let gpus = ["sm_75", "sm_90"].map(|gpu| gpu.parse().expect("a GPU"));
    let verdicts = judge(&binary, &gpus, &Situation::default(), &limits);
    let outcomes: Vec<_> = verdicts.verdicts.iter().map(|v| v.outcome).collect();
    use LoadOutcome::{Fail, Run};
    assert_eq!(outcomes, [Fail, Run, Fail, Run]);
    assert_eq!(verdicts.linked_in, 1);
    let keep: Keep = "sm_90".parse().expect("a list");
    let refused = thin(&binary, &keep, None, &limits);
    assert!(matches!(refused, Err(Refusal::Format(what)) if what.contains("PE")));
}

#[test]
fn a_damaged_dll_is_a_problem_and_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let fatbin = fatbin(folder.path());
    let whole = dll(&[(b".nv_fatb", &fatbin)]);
    let problems = |bytes: &[u8]| {
        read(bytes, Format::Pe, &ReadLimits::default())
            .problems
            .len()
    };
    assert_eq!(problems(&whole), 0);
    for length in (2..whole.len() - FILE_ALIGN).step_by(61) {
        assert!(problems(&whole[..length]) > 0, "{length}");
    }
    // Two sections in one place.
    let mut twice = dll(&[(b".nv_fatb", &fatbin), (b".nv_fatb", &fatbin)]);
    let second = 64 + 4 + 20 + 240 + 2 * 40;
    let first: Vec<u8> = twice[second - 40 + 8..second].to_vec();
    twice[second + 8..second + 40].copy_from_slice(&first);
    assert_eq!(problems(&twice), 1);
    // For 32 bits.
    let mut small = whole;
    small[64 + 24..64 + 26].copy_from_slice(&0x10b_u16.to_le_bytes());
    assert_eq!(problems(&small), 1);
}
