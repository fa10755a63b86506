//! Thinned static libraries: `ar` and `nm` read them, `ld` and `nvcc` link them, and members without device code stay
//! byte for byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::space::cuobjdump::{assert_same_images, assert_same_list};
use crate::space::{Toolkit, listed, open, run};
use warpcc_fatbin::{CompressMode, Depth, Keep, ReadLimits, Refusal, thin};

const TWO: &str =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]";

/// Three objects with device code, one of C, and names that are too long for a header.
fn library(at: &Path, toolkit: &Toolkit) {
    for name in ["first", "second_with_a_name_beyond_sixteen", "third"] {
        let mut source = String::new();
        for number in 0..20 {
            source += &format!("__global__ void {name}_{number}(float *p) {{ *p += {number}; }}\n");
        }
        source += &format!(
            "int {name}() {{ {name}_0<<<1, 1>>>(nullptr); return {}; }}\n",
            name.len()
        );
        std::fs::write(at.join(format!("{name}.cu")), source).expect("written");
        toolkit.compile(at, &format!("-c {name}.cu {TWO} -o {name}.o"));
    }
    std::fs::write(at.join("host.c"), "int host(void) { return 7; }").expect("written");
    run(Command::new("gcc").current_dir(at).args(["-c", "host.c"]));
    run(Command::new("ar")
        .current_dir(at)
        .args(["rcs", "lib.a", "first.o", "host.o"])
        .args(["second_with_a_name_beyond_sixteen.o", "third.o"]));
    let main = "int first(); int second_with_a_name_beyond_sixteen(); int third(); extern \"C\" int host();\n\
        int main() { return first() + second_with_a_name_beyond_sixteen() + third() + host() - 50; }\n";
    std::fs::write(at.join("main.cu"), main).expect("written");
}

fn members(at: &Path, library: &str) -> BTreeMap<String, Vec<u8>> {
    let names = run(Command::new("ar").current_dir(at).args(["t", library]));
    let content = |name: &str| {
        let output = Command::new("ar")
            .current_dir(at)
            .args(["p", library, name])
            .output();
        (name.to_owned(), output.expect("ar starts").stdout)
    };
    names.lines().map(content).collect()
}

#[test]
fn a_thinned_library_is_read_and_linked() {
    for toolkit in Toolkit::all() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        library(at, &toolkit);
        let keep: Keep = "sm_90+ptx".parse().expect("a list");
        let before = open(&at.join("lib.a"));
        let made = thin(&before, &keep, None, &ReadLimits::default()).expect("it can be thinned");
        assert!(made.bytes.len() < before.bytes().len() - 20_000);
        let again = thin(&before, &keep, None, &ReadLimits::default()).expect("again");
        assert!(made.bytes == again.bytes);
        std::fs::write(at.join("thin.a"), &made.bytes).expect("written");

        let targets: Vec<String> = listed(&at.join("thin.a"), Depth::Headers)
            .rows
            .into_iter()
            .map(|row| format!("{}:{}", row.member.expect("a member"), row.target))
            .collect();
        assert_eq!(targets.len(), 3 * 2, "{targets:?}");
        assert!(
            !targets.contains(&"third.o:sm_80".to_owned()),
            "{targets:?}"
        );
        assert_same_images(&at.join("thin.a"));
        assert_same_list(&at.join("thin.a"));

        // Members without a choice are the same, and so is the table of symbols.
        let (old, new) = (members(at, "lib.a"), members(at, "thin.a"));
        assert_eq!(
            old.keys().collect::<Vec<_>>(),
            new.keys().collect::<Vec<_>>()
        );
        assert!(old["host.o"] == new["host.o"]);
        assert!(new["first.o"].len() < old["first.o"].len());
        let symbols = |library: &str| {
            let text = run(Command::new("nm").current_dir(at).args(["-s", library]));
            text.lines()
                .take_while(|line| !line.ends_with(".o:"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(symbols("lib.a"), symbols("thin.a"));
        assert!(
            symbols("thin.a")
                .iter()
                .any(|line| line.contains("host in host.o"))
        );

        // The linker finds members by the table. Whatever is left over, the program runs.
        toolkit.compile(at, "main.cu -L. -l:thin.a -arch=sm_90 -o program");
        run(&mut Command::new(at.join("program")));
        let program = listed(&at.join("program"), Depth::Headers).rows;
        assert!(
            program
                .iter()
                .any(|row| row.target == "sm_90" && row.size > 2000)
        );
    }
}

/// Members that are nothing but device code: a cubin has no choice, a fat binary has.
#[test]
fn members_without_a_host_are_thinned_or_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("a.cu"), "__global__ void k(float *p) { *p += 1; }").expect("written");
    let toolkit = Toolkit::newest();
    toolkit.compile(at, "-cubin -arch=sm_80 a.cu -o a.cubin");
    toolkit.compile(at, &format!("-fatbin a.cu {TWO} -o a.fatbin"));
    let words = ["rcs", "odd.a", "a.cubin", "a.fatbin"];
    run(Command::new("ar").current_dir(at).args(words));
    let keep: Keep = "sm_90".parse().expect("a list");
    let made = thin(
        &open(&at.join("odd.a")),
        &keep,
        None,
        &ReadLimits::default(),
    );
    std::fs::write(at.join("thin.a"), made.expect("thinned").bytes).expect("written");
    let rows = listed(&at.join("thin.a"), Depth::Headers).rows;
    let targets: Vec<&str> = rows.iter().map(|row| row.target.as_str()).collect();
    assert_eq!(targets, ["sm_80", "sm_90"]);
    let (old, new) = (members(at, "odd.a"), members(at, "thin.a"));
    assert!(old["a.cubin"] == new["a.cubin"] && old["a.fatbin"].len() > new["a.fatbin"].len());
}

#[test]
fn a_library_is_compressed_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    library(at, &Toolkit::newest());
    let before = open(&at.join("lib.a"));
    let everything = Keep::everything();
    let mode = Some(CompressMode::Size);
    let made = thin(&before, &everything, mode, &ReadLimits::default()).expect("thinned");
    std::fs::write(at.join("thin.a"), &made.bytes).expect("written");
    assert!(made.bytes.len() < before.bytes().len() && made.recompressed > 0);
    assert_eq!(made.images.0, made.images.1);
    assert_same_images(&at.join("thin.a"));
    Toolkit::newest().compile(at, "main.cu -L. -l:thin.a -arch=sm_90 -o program");
    run(&mut Command::new(at.join("program")));
}

#[test]
fn a_library_that_is_not_understood_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    library(at, &Toolkit::newest());
    let keep: Keep = "sm_90".parse().expect("a list");
    let refused = |name: &str| {
        let path = at.join(name);
        thin(&open(&path), &keep, None, &ReadLimits::default()).expect_err(name)
    };
    let mut damaged = std::fs::read(at.join("lib.a")).expect("readable");
    // The first place in the table of symbols: behind the magic, a header and a count.
    damaged[8 + 60 + 4..][..4].fill(0xee);
    std::fs::write(at.join("damaged.a"), damaged).expect("written");
    let why = refused("damaged.a");
    assert!(
        matches!(&why, Refusal::Host(text) if text.contains("ranlib")),
        "{why}"
    );
    run(Command::new("ar")
        .current_dir(at)
        .args(["rcsT", "thin-form.a", "first.o"]));
    assert!(matches!(refused("thin-form.a"), Refusal::Problem { .. }));
    let mut cut = std::fs::read(at.join("lib.a")).expect("readable");
    cut.truncate(cut.len() - 100);
    std::fs::write(at.join("cut.a"), cut).expect("written");
    assert!(matches!(refused("cut.a"), Refusal::Problem { .. }));
}
