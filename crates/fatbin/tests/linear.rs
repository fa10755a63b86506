//! Files that are made to be read again and again: what is looked at grows as the file does.
//!
//! Work is counted, not time (`work_done`). Each file is made in one size and in four times that size. What is quadratic
//! costs sixteen times as much then, and the test fails.

mod containers;

use std::io::Write;

use containers::{container, image};
use warpcc_fatbin::{
    Binary, BinaryInput, Depth, Format, Keep, OpenFailure, ReadLimits, Situation, demangle, find,
    judge, list, read, thin_bytes, work_done,
};

/// Fails if four times as much costs more than a little over four times as much, or anything costs more than `each`
/// units for a byte.
fn assert_linear(what: &str, each: u64, mut run: impl FnMut(usize) -> usize) {
    let mut cost = |size: usize| {
        let before = work_done();
        let bytes = run(size) as u64;
        let done = work_done() - before;
        assert!(
            done <= each * bytes,
            "{what}: {done} units for {bytes} bytes"
        );
        done
    };
    let (small, large) = (cost(300), cost(1200));
    assert!(large <= 5 * small + 4096, "{what}: {small}, then {large}");
    assert!(large > 0, "{what}: nothing was counted");
}

/// A section: the place of its name, its type, its address, and where in the file it lies.
struct Row {
    name: u32,
    kind: u32,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
}

/// An ELF file of 64 bits: header, `body`, then the table of sections. `names` is the number of the section of names.
fn elf(machine: u16, kind: u16, body: &[u8], rows: &[Row], names: u16) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\x41");
    bytes[8] = 8;
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    // More sections than fit into the header are counted in the first.
    let count = rows.len() + 1;
    let mut first = [0; 64];
    first[32..40].copy_from_slice(&(count as u64).to_le_bytes());
    bytes.extend(first);
    for row in rows {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&row.name.to_le_bytes());
        header[4..8].copy_from_slice(&row.kind.to_le_bytes());
        header[16..24].copy_from_slice(&row.address.to_le_bytes());
        header[24..32].copy_from_slice(&row.offset.to_le_bytes());
        header[32..40].copy_from_slice(&row.size.to_le_bytes());
        header[40..44].copy_from_slice(&row.link.to_le_bytes());
        header[48] = 8;
        if row.kind == 2 {
            header[56] = 24;
        }
        bytes.extend(header);
    }
    for (at, value) in [
        (0x10, kind),
        (0x12, machine),
        (0x14, 1),
        (0x34, 64),
        (0x3a, 64),
        (0x3e, names),
    ] {
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    // sm_90 of the newer generation.
    bytes[0x30..0x34].copy_from_slice(&(90_u32 << 8).to_le_bytes());
    bytes[0x28..0x30].copy_from_slice(&table.to_le_bytes());
    bytes
}

fn row(name: usize, kind: u32, offset: usize, size: usize, link: u32) -> Row {
    Row {
        name: name as u32,
        kind,
        address: 0,
        offset: offset as u64,
        size: size as u64,
        link,
    }
}

fn opened(bytes: &[u8]) -> Binary {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    Binary::open(BinaryInput::file(file.path()), &ReadLimits::default()).expect("it opens")
}

/// Lists with kernels; gives the problems.
fn problems(bytes: &[u8]) -> Vec<String> {
    let listing = list(&opened(bytes), Depth::Kernels, &ReadLimits::default());
    listing
        .problems
        .iter()
        .map(|p| p.flaw.to_string())
        .collect()
}

/// Every section's name is the rest of one long table.
#[test]
fn names_that_overlap_are_read_a_few_times() {
    assert_linear("names of sections", 40, |count| {
        let names = vec![b'x'; count * 64];
        let mut rows = vec![row(0, 3, 64, names.len(), 0), row(0, 2, 64, 0, 1)];
        rows.extend((0..count).map(|number| row(number, 1, 64, 0, 0)));
        let mut table = names.clone();
        table.push(0);
        rows[0].size += 1;
        let bytes = container(&[image(2, 90, &elf(190, 2, &table, &rows, 1))]);
        assert!(
            problems(&bytes)
                .iter()
                .any(|p| p.contains("names in it overlap"))
        );
        bytes.len()
    });
    assert_linear("names of a host's sections", 40, |count| {
        let names = vec![b'.'; count * 64];
        let mut rows = vec![row(0, 3, 64, names.len(), 0)];
        rows.extend((0..count).map(|number| row(number, 1, 64, 0, 0)));
        let bytes = elf(62, 3, &names, &rows, 1);
        problems(&bytes);
        bytes.len()
    });
}

/// Each function's code is the whole file.
#[test]
fn sections_that_overlap_are_refused() {
    assert_linear("code", 40, |count| {
        let names: Vec<String> = (0..count)
            .map(|number| format!(".text.f{number:06}"))
            .collect();
        let table = names.join("\0") + "\0";
        let mut symbols = vec![0; 24];
        let mut rows = vec![row(0, 3, 64, table.len(), 0)];
        for number in 0..count {
            rows.push(row(number * 14, 1, 64, table.len(), 0));
            let mut symbol = [0; 24];
            symbol[..4].copy_from_slice(&((number * 14 + 6) as u32).to_le_bytes());
            symbol[4] = 0x12;
            symbol[5] = 0x10;
            symbol[6..8].copy_from_slice(&((number + 2) as u16).to_le_bytes());
            symbols.extend(symbol);
        }
        let body = [table.as_bytes(), &symbols].concat();
        rows.push(row(0, 2, 64 + table.len(), symbols.len(), 1));
        let bytes = container(&[image(2, 90, &elf(190, 2, &body, &rows, 1))]);
        let said = problems(&bytes);
        assert!(
            said.iter().any(|p| p.contains("sections overlap")),
            "{said:?}"
        );
        bytes.len()
    });
}

/// Many symbols for one function, whose name unfolds to far more.
#[test]
fn a_name_is_demangled_once_and_not_to_any_length() {
    let mut mangled = "_Z1fI".to_owned();
    for number in 0..20 {
        // Each pair has the one before twice.
        mangled += &match number {
            0 => "St4pairIiiE".to_owned(),
            1 => "S0_IS1_S1_E".to_owned(),
            n => format!("S0_IS{}_S{}_E", n, n),
        };
    }
    mangled += "EvT_";
    assert!(demangle(&mangled).len() <= 64 * mangled.len() + 1024);
    assert_linear("symbols of one name", 400, |count| {
        let name = format!(".text.{mangled}\0");
        let mut symbols = vec![0; 24];
        for _ in 0..count {
            let mut symbol = [0; 24];
            symbol[0] = 6;
            symbol[4] = 0x12;
            symbol[6] = 2;
            symbols.extend(symbol);
        }
        let body = [name.as_bytes(), &symbols].concat();
        let rows = [
            row(0, 3, 64, name.len(), 0),
            row(0, 1, 64, 0, 0),
            row(name.len() - 1, 2, 64 + name.len(), symbols.len(), 1),
        ];
        let bytes = container(&[image(2, 90, &elf(190, 2, &body, &rows, 1))]);
        let listing = list(&opened(&bytes), Depth::Kernels, &ReadLimits::default());
        let functions: usize = listing
            .rows
            .iter()
            .flat_map(|row| &row.functions)
            .map(Vec::len)
            .sum();
        assert!(functions <= 1, "{functions}");
        bytes.len()
    });
}

/// Texts that are almost names, for which the parser takes a time that doubles with each level.
#[test]
fn few_texts_that_are_no_names_are_tried() {
    let almost = |number: usize| {
        let levels = 20 + number % 20;
        format!("_Z{}IF{}{number}", "SsI".repeat(levels), "E".repeat(levels))
    };
    let before = work_done();
    for number in 0..1000 {
        assert_eq!(demangle(&almost(number)), almost(number));
    }
    let done = work_done() - before;
    assert!((1 << 10..100 << 10).contains(&done), "{done}");
}

/// A table of long names without an end, and members that each name a place in it.
#[test]
fn names_of_members_are_short() {
    assert_linear("names of members", 8, |count| {
        let mut bytes = b"!<arch>\n".to_vec();
        let mut member = |name: &str, data: &[u8]| {
            bytes.extend(format!("{name:<16}{:<32}{:<10}`\n", "", data.len()).into_bytes());
            bytes.extend(data);
        };
        member("//", &vec![b'n'; count * 64]);
        for number in 0..count {
            member(&format!("/{number}"), b"");
        }
        let before = work_done();
        let found = read(&bytes, Format::Archive, &ReadLimits::default());
        assert_eq!(found.problems, []);
        assert!(work_done() > before);
        bytes.len()
    });
}

/// A linked file: many containers that do not fit the GPU, and many inputs of a link.
fn linked(count: usize) -> Vec<u8> {
    let text = |number: usize, arch| {
        let text = format!(".visible .entry k{number}() {{ ret; }}\n");
        container(&[image(1, arch, text.as_bytes())])
    };
    let loaded: Vec<u8> = (0..count).flat_map(|number| text(number, 100)).collect();
    let inputs: Vec<u8> = (0..count).flat_map(|number| text(number, 80)).collect();
    let names = b"\0.nv_fatbin\0__nv_relfatbin\0.nvFatBinSegment\0";
    let mut wrappers = Vec::new();
    let each = loaded.len() / count;
    for number in 0..count {
        let address = 0x1000 + (number * each) as u64;
        wrappers.extend([1, address, 0].map(u64::to_le_bytes).concat());
    }
    let body = [&loaded[..], &inputs, &wrappers, names].concat();
    let mut at = 64;
    let mut place = |length: usize| {
        at += length;
        at - length
    };
    let mut rows = vec![
        row(1, 1, place(loaded.len()), loaded.len(), 0),
        row(12, 1, place(inputs.len()), inputs.len(), 0),
        row(27, 1, place(wrappers.len()), wrappers.len(), 0),
        row(0, 3, place(names.len()), names.len(), 0),
    ];
    rows[0].address = 0x1000;
    rows[2].address = 0x100_0000;
    elf(62, 3, &body, &rows, 4)
}

#[test]
fn many_containers_that_fail_ask_for_the_link_once() {
    assert_linear("verdicts", 4, |count| {
        let bytes = linked(count);
        let gpus = ["sm_90".parse().expect("a GPU")];
        let verdicts = judge(
            &opened(&bytes),
            &gpus,
            &Situation::default(),
            &ReadLimits::default(),
        );
        assert_eq!(
            (verdicts.verdicts.len(), verdicts.linked_in),
            (count, count)
        );
        bytes.len()
    });
}

#[test]
fn many_wrappers_and_sections_are_thinned_in_one_pass() {
    let keep: Keep = "compute_100".parse().expect("a list");
    let mut seen = 0;
    assert_linear("wrappers", 4, |count| {
        let bytes = linked(count);
        let thinned = thin_bytes(&bytes, Format::Elf, &keep, None, &ReadLimits::default());
        seen += usize::from(thinned.is_ok());
        bytes.len()
    });
    assert_eq!(seen, 2);
}

/// Parts of a concatenated image that are each the whole.
#[test]
fn parts_of_a_concatenated_image_do_not_overlap() {
    let content = vec![b'\n'; 4096];
    let packed = zstd::bulk::compress(&content, 3).expect("compressed");
    let mut part = image(1, 90, b"");
    part[4..8].fill(0);
    part[8..16].copy_from_slice(&(content.len() as u64).to_le_bytes());
    let parts = [part.clone(), part].concat();
    let mut outer = image(0x100, 0, &packed);
    outer[0x10..0x14].copy_from_slice(&(packed.len() as u32).to_le_bytes());
    outer[0x28..0x30].copy_from_slice(&0x8011_u64.to_le_bytes());
    outer[0x38..0x40].copy_from_slice(&(content.len() as u64).to_le_bytes());
    outer[4..8].copy_from_slice(&((64 + 8 + parts.len()) as u32).to_le_bytes());
    outer[0x14] = 64;
    let table = [2_u32.to_le_bytes(), (8 + parts.len() as u32).to_le_bytes()].concat();
    outer.splice(64..64, [table, parts].concat());
    let found = problems(&container(&[outer]));
    assert!(
        found
            .iter()
            .any(|p| p.contains("table of a concatenated image")),
        "{found:?}"
    );
}

/// A wheel's directory is read once for all its members, and members that share bytes are refused.
#[test]
fn a_wheel_with_many_members_is_opened_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.whl");
    assert_linear("members of a wheel", 4, |count| {
        let file = std::fs::File::create(&path).expect("a file");
        let mut wheel = zip::ZipWriter::new(file);
        for number in 0..count {
            let options = zip::write::SimpleFileOptions::default();
            wheel
                .start_file(format!("{number}.fatbin"), options)
                .expect("a member");
            wheel.write_all(&container(&[])).expect("written");
        }
        wheel.finish().expect("written");
        let (inputs, errors) = find(std::slice::from_ref(&path));
        assert_eq!((inputs.len(), errors.len()), (count, 0));
        for input in inputs {
            Binary::open(input, &ReadLimits::default()).expect("it opens");
        }
        path.metadata().expect("a file").len() as usize
    });
    let file = std::fs::File::create(&path).expect("a file");
    let mut wheel = zip::ZipWriter::new(file);
    let options = zip::write::SimpleFileOptions::default();
    wheel.start_file("a.fatbin", options).expect("a member");
    wheel.write_all(&container(&[])).expect("written");
    wheel
        .shallow_copy_file("a.fatbin", "b.fatbin")
        .expect("a second name");
    wheel.finish().expect("written");
    let (inputs, errors) = find(&[path]);
    assert_eq!(inputs.len(), 0);
    assert!(matches!(errors[0].why, OpenFailure::Overlap), "{errors:?}");
}
