//! Thinned objects, libraries and programs.

use std::path::Path;
use std::process::Command;

use crate::space::cuobjdump::{assert_same_images, assert_same_list, assert_same_usage};
use crate::space::{Toolkit, folder, listed, open, run};
use warpcc_fatbin::{Depth, ImageRow, Keep, ReadLimits, Refusal, Thinned, thin};

const TWO: &str =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]";

fn thinned(path: &Path, keep: &str) -> Thinned {
    let keep: Keep = keep.parse().expect("a list");
    thin(&open(path), &keep, None, &ReadLimits::default()).expect("it can be thinned")
}

fn refused(path: &Path, keep: &str) -> Refusal {
    let keep: Keep = keep.parse().expect("a list");
    thin(&open(path), &keep, None, &ReadLimits::default()).expect_err("it cannot be thinned")
}

/// Everything about the images that does not depend on where they are.
fn identity(row: &ImageRow) -> (String, u64, Option<u64>, String) {
    let functions = serde_json::to_string(&row.functions).expect("JSON");
    (row.target.clone(), row.size, row.compressed_size, functions)
}

/// Thins `name` to `keep` and compares with the images of the original that are kept.
fn assert_thinned(at: &Path, name: &str, keep: &str, targets: &[&str]) -> u64 {
    let before = at.join(name);
    let after = at.join(format!("thin-{name}"));
    let result = thinned(&before, keep);
    std::fs::write(&after, &result.bytes).expect("written");
    let kept = listed(&before, Depth::Kernels).rows;
    let kept = kept
        .iter()
        .filter(|row| targets.contains(&row.target.as_str()));
    let found = listed(&after, Depth::Kernels).rows;
    let (found_identities, kept): (Vec<_>, Vec<_>) = (
        found.iter().map(identity).collect(),
        kept.map(identity).collect(),
    );
    // Too long to be shown.
    assert!(
        found_identities == kept,
        "{name}: {} and {}",
        found.len(),
        kept.len()
    );
    assert_eq!(assert_same_list(&after), found.len(), "{name}");
    assert_same_images(&after);
    assert_same_usage(&after);
    // A reader that is stricter than a loader.
    let said = run(Command::new("readelf").args(["-lSW"]).arg(&after));
    assert!(
        !said.contains("Warning") && !said.contains("Error"),
        "{said}"
    );
    let saved = before.metadata().expect("a file").len() - after.metadata().expect("a file").len();
    let freed = result.image_bytes.0 - result.image_bytes.1;
    // Each section may keep up to two pages, and a table of segments.
    assert!(
        result.zeroed < 3 * 8192 && saved + result.zeroed >= freed,
        "{name}: {saved} of {freed}"
    );
    saved
}

/// Many kernels, so that there are pages to cut out.
fn write_large(at: &Path) {
    let mut source = String::from("extern \"C\" cudaError_t cudaGetDeviceCount(int *);\n");
    for number in 0..40 {
        source += &format!("__global__ void k{number}(float *p) {{ *p = {number}; }}\n");
    }
    source += "extern \"C\" int answer() { int n = -1; k0<<<1, 1>>>(nullptr); \
               cudaGetDeviceCount(&n); return 42; }\n";
    std::fs::write(at.join("large.cu"), source).expect("written");
    let main = "extern \"C\" int answer();\nint main() { return answer() - 42; }\n";
    std::fs::write(at.join("main.cu"), main).expect("written");
}

#[test]
fn libraries_programs_and_objects_shrink_and_still_load() {
    for toolkit in Toolkit::all() {
        let folder = folder();
        let at = folder.path();
        write_large(at);
        let options = format!("{TWO} -Xcompiler -fPIC");
        toolkit.compile(at, &format!("-c large.cu {options} -o large.o"));
        toolkit.compile(at, &format!("-c main.cu {options} -rdc=true -o main.o"));
        toolkit.compile(at, &format!("-c large.cu {options} -rdc=true -o rdc.o"));
        toolkit.compile(at, &format!("-shared large.o {TWO} -o liblarge.so"));
        toolkit.compile(at, &format!("main.o rdc.o {TWO} -o program"));

        let saved = assert_thinned(at, "liblarge.so", "sm_90+ptx", &["sm_90", "compute_90"]);
        assert!(saved > 8192, "{}: {saved}", toolkit.name);
        assert_thinned(at, "program", "sm_80", &["sm_80"]);
        assert_thinned(at, "large.o", "sm_80", &["sm_80"]);
        assert_thinned(at, "rdc.o", "compute_90", &["compute_90"]);

        // The loader takes the library and the program, and the linker the object.
        let ask = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).answer() - 42)";
        run(Command::new("python3")
            .args(["-c", ask])
            .arg(at.join("thin-liblarge.so")));
        executable(&at.join("thin-program"));
        run(&mut Command::new(at.join("thin-program")));
        toolkit.compile(at, "-shared thin-large.o -o relinked.so");
        assert!(
            listed(&at.join("relinked.so"), Depth::Headers)
                .rows
                .iter()
                .any(|r| r.target == "sm_80")
        );
    }
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn several_containers_move_and_their_wrappers_follow() {
    let folder = folder();
    let at = folder.path();
    write_large(at);
    let toolkit = Toolkit::newest();
    let options = format!("{TWO} -Xcompiler -fPIC");
    let second = std::fs::read_to_string(at.join("large.cu")).expect("text");
    let second = second
        .replace("void k", "void second_k")
        .replace("k0<<<", "second_k0<<<")
        .replace("answer", "second");
    std::fs::write(at.join("second.cu"), second).expect("written");
    for name in ["large", "second"] {
        toolkit.compile(at, &format!("-c {name}.cu {options} -o {name}.o"));
    }
    toolkit.compile(
        at,
        "-shared large.o second.o a.cu -Xcompiler -fPIC -o libboth.so",
    );
    let result = thinned(&at.join("libboth.so"), "sm_90");
    std::fs::write(at.join("thin.so"), &result.bytes).expect("written");
    assert_eq!(
        wrapped(&at.join("thin.so")),
        wrapped(&at.join("libboth.so"))
    );
    assert_eq!(result.notes, Vec::<String>::new());
    // Containers for sm_75 alone keep that: a driver for sm_90 finds nothing, as before.
    assert!(result.left_whole > 0);
}

/// How many wrappers point exactly at a container, by what a loader would make of relocations;
/// read with readelf, not with the code that writes them.
fn wrapped(path: &Path) -> usize {
    let text = run(Command::new("readelf").args(["-SrW"]).arg(path));
    let section = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.contains(&format!("] {name} ")))
            .expect(name);
        let words: Vec<&str> = line
            .split(']')
            .nth(1)
            .expect("a row")
            .split_whitespace()
            .collect();
        let number = |word: &str| u64::from_str_radix(word, 16).expect("hexadecimal");
        (number(words[2]), number(words[3]), number(words[4]))
    };
    let (address, offset, _) = section(".nv_fatbin");
    let (wrappers, _, size) = section(".nvFatBinSegment");
    let starts: Vec<u64> = listed(path, Depth::Headers)
        .rows
        .iter()
        .filter(|row| row.image == 0)
        // An image's header is 16 bytes behind the container's.
        .map(|row| row.offset - 16 - offset + address)
        .collect();
    let mut found = 0;
    for line in text
        .lines()
        .filter(|line| line.contains("R_X86_64_RELATIVE"))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = u64::from_str_radix(words[0], 16).expect("hexadecimal");
        let target = u64::from_str_radix(words[3], 16).expect("hexadecimal");
        // Eight bytes into each of 24 there is the pointer; behind it may be another, to a table.
        let inside = place.checked_sub(wrappers).filter(|inside| *inside < size);
        if inside.is_some_and(|inside| inside % 24 == 8) {
            assert!(
                starts.contains(&target),
                "{}: a wrapper points at {target:#x}",
                path.display()
            );
            found += 1;
        }
    }
    assert!(found > 1);
    found
}

#[test]
fn unsafe_rewrites_are_refused() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    toolkit.compile(at, &format!("-c a.cu {TWO} -o a.o"));
    assert!(matches!(
        refused(&at.join("a.o"), "sm_75"),
        Refusal::NothingKept(_)
    ));
    std::fs::write(at.join("b.cu"), "int f() { return 1; }").expect("written");
    run(Command::new("gcc")
        .current_dir(at)
        .args(["-c", "-x", "c", "b.cu", "-o", "b.o"]));
    assert!(matches!(
        refused(&at.join("b.o"), "sm_90"),
        Refusal::NoContainers
    ));
    let mut damaged = std::fs::read(at.join("a.o")).expect("readable");
    let at_image = listed(&at.join("a.o"), Depth::Headers).rows[0].offset as usize;
    damaged[at_image + 4] = 1;
    std::fs::write(at.join("damaged.o"), damaged).expect("written");
    assert!(matches!(
        refused(&at.join("damaged.o"), "sm_90"),
        Refusal::Problem { .. }
    ));
}
