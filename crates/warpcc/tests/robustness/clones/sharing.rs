//! Which results clones share, and which they do not: single steps, results with a folder's name in them, `auto`, nested folders.

use super::{CLONES, PART, SOURCE, clones, make, relocated};
use crate::space::{Program, TestSpace, Toolkit, small};

#[test]
fn steps_are_shared_after_an_edit() {
    let mut space = clones("clones-steps", small(Toolkit::newest()));
    let line = "-arch=sm_90 -c -I@/include @/src/clone.cu -o clone.o";
    let [one, two] = CLONES;
    let (_, first, _) = relocated(&mut space, "steps", one, line);
    let reworded = PART.replace("\n", " // in other words\n");
    space.write(&format!("{two}/include/part.cuh"), &reworded);
    let (_, second, stats) = relocated(&mut space, "steps", two, line);
    assert_eq!(stats.count("direct_hits"), 0, "{stats:?}");
    assert_eq!(stats.all_misses(), 0, "{stats:?}");
    assert!(first == second);
    // Different contents are not taken for the same.
    space.write(
        &format!("{two}/include/part.cuh"),
        &PART.replace("2 * x", "3 * x"),
    );
    let (_, third, stats) = relocated(&mut space, "steps", two, line);
    assert_eq!(stats.missed("ptxas"), 1, "{stats:?}");
    assert!(first != third);
}

#[test]
fn results_with_a_folder_are_used_there_only() {
    let mut space = clones("clones-bound", small(Toolkit::newest()));
    let line = "-arch=sm_90 -c -I@/include @/src/clone.cu -o clone.o -D'TOP=\"@\"'";
    for clone in CLONES {
        let source = format!("{SOURCE}const char *top() {{ return TOP; }}\n");
        space.write(&format!("{clone}/src/clone.cu"), &source);
    }
    let [one, two] = CLONES;
    let (_, first, _) = relocated(&mut space, "bound", one, line);
    let (_, second, stats) = relocated(&mut space, "bound", two, line);
    assert_eq!(stats.count("direct_hits"), 0, "{stats:?}");
    for (clone, files) in [(one, &first), (two, &second)] {
        let folder = space.work().join(clone).display().to_string();
        let found = memchr::memmem::find(&files["clone.o"], folder.as_bytes());
        assert!(found.is_some(), "{folder} is not in its object");
    }
    let (_, again, stats) = relocated(&mut space, "bound", one, line);
    assert_eq!(stats.count("direct_hits"), 1, "{stats:?}");
    assert!(again == first);
}

#[test]
fn auto_finds_what_an_installer_and_a_clone_are_called() {
    let mut space = TestSpace::new("clones-auto");
    // An editable install: built in one random folder, with headers from another, out of a clone.
    let people = [
        [
            "clone-one",
            "tmpabcdefgh.build-temp",
            "pip-build-env-01234567",
        ],
        [
            "second/clone-one",
            "tmpzzzzzzzz.build-temp",
            "pip-build-env-76543210",
        ],
    ];
    space.set_env("WARPCC_BASE_DIR", "auto");
    let mut made = Vec::new();
    for [clone, build, env] in people {
        space.write(&format!("{clone}/.git/HEAD"), "ref: refs/heads/main\n");
        space.write(&format!("{clone}/csrc/clone.cu"), SOURCE);
        space.write(&format!("{env}/overlay/include/part.cuh"), PART);
        space.write(&format!("{build}/.keep"), "");
        space.stand_in = build.into();
        let line = format!(
            "-arch=sm_90 -c -I{{work}}/{env}/overlay/include {{work}}/{clone}/csrc/clone.cu -o {{work}}/{build}/clone.o"
        );
        let before = space.stats();
        let outcome = space.run(&Program::Launcher, &space.words(&line));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        made.push((
            space.read(&format!("{build}/clone.o")),
            space.stats().since(&before),
        ));
    }
    assert_eq!(made[1].1.count("direct_hits"), 1, "{:?}", made[1].1);
    assert!(made[0].0 == made[1].0);
    for name in [
        "repo-clone-one/csrc/clone.cu",
        "pip-build-env/overlay/include/part.cuh",
    ] {
        let name = format!("/warpcc-base/{name}");
        let found = memchr::memmem::find(&made[0].0, name.as_bytes());
        assert!(found.is_some(), "{name} is not in the object");
    }
}

#[test]
fn stats_says_who_would_gain() {
    let mut space = clones("clones-told", small(Toolkit::newest()));
    let told = |space: &TestSpace| {
        let text = space.warpcc_with(&["stats"]);
        String::from_utf8_lossy(&text.stdout).contains("WARPCC_BASE_DIR=auto")
    };
    for clone in CLONES {
        space.write(&format!("{clone}/.git/HEAD"), "");
    }
    let line = "-arch=sm_90 -c -I@/include @/src/clone.cu -o clone.o";
    let build = |space: &mut TestSpace, clone: &str| {
        let (outcome, _) = make(space, &Program::Launcher, clone, line);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    };
    build(&mut space, CLONES[0]);
    // Another header in the same folder is counted as no other folder.
    space.write(
        &format!("{}/include/part.cuh", CLONES[0]),
        &PART.replace('2', "3"),
    );
    build(&mut space, CLONES[0]);
    assert!(!told(&space));
    build(&mut space, CLONES[1]);
    assert!(told(&space));
}

#[test]
fn a_folder_inside_another_one_is_elsewhere_in_another_clone() {
    let mut space = TestSpace::new("clones-nested");
    let source = "#include \"build/value.h\"\n__global__ void k(int *x) { *x = VALUE; }\n";
    for (clone, value) in [("a", 1), ("b", 2)] {
        space.write(&format!("{clone}/kernel.cu"), source);
        let header = format!("#define VALUE {value}\n");
        space.write(&format!("{clone}/build/value.h"), &header);
    }
    space.write("other/value.h", "#define VALUE 1\n");
    let compile = |space: &mut TestSpace, clone: &str, build: &str| {
        space.stand_in = build.into();
        space.set_env(
            "WARPCC_BASE_DIR",
            &format!("{{work}}/{clone}:{{work}}/{build}"),
        );
        let line = format!(
            "-cubin -arch=sm_80 {{work}}/{clone}/kernel.cu -o {{work}}/{clone}/kernel.cubin"
        );
        let built = space.build(&line);
        (built, space.read(&format!("{clone}/kernel.cubin")))
    };
    let (_, first) = compile(&mut space, "a", "a/build");
    // The same name, but what the source includes is not in the build folder.
    let (built, second) = compile(&mut space, "b", "other");
    built.demand_no_direct_hit();
    assert!(first != second);
}
