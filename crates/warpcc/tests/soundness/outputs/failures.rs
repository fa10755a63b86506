//! Calls that fail: what is left of their outputs is what nvcc leaves.

use std::fs;

use super::compare::{rule, tree};
use crate::space::{Exactness, Outcome, Program, Snapshot, StreamRule, TestSpace, differences};

/// Under `-t` nvcc also shows the messages of commands that ran at the same time as the failing one; their order is a race.
#[test]
fn a_failing_build_with_threads_runs_once() {
    let space = TestSpace::new("outputs-threads");
    let two = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90";
    let device = "#ifdef __CUDA_ARCH__\n__global__ void k(int *x) { *x = nothing; }\n#endif\n";
    let assembly =
        "__global__ void k() {\n#if __CUDA_ARCH__ == 800\nasm(\"nothing;\");\n#endif\n}\n";
    for (what, source, options, once) in [
        ("host and device", "int x = nothing;\n", "-t 2", true),
        ("each device pass", device, "-t 3", true),
        (
            "each device pass, and says when it ends",
            device,
            "-t 2",
            false,
        ),
        ("one ptxas", assembly, "-t 2", true),
    ] {
        space.clear_cache();
        space.write("k.cu", source);
        let words = space.words(&format!("-c k.cu -o k.o -MD -MF k.d {two} {options}"));
        let compared = space.beside("compare");
        let by_nvcc = || {
            space.clear_work();
            space.write("k.cu", source);
            (space.run(&space.reference(), &words), tree(&space))
        };
        let mut wanted = by_nvcc();
        for turn in ["cold", "again"] {
            space.clear_work();
            space.write("k.cu", source);
            let before = space.stats();
            let got = space.run(&Program::Launcher, &words);
            let stats = space.stats().since(&before);
            let made = tree(&space);
            let rule = StreamRule {
                order: true,
                ..rule(&space)
            };
            let unlike = |(want, wanted): &(Outcome, Snapshot)| {
                let mut found = rule.differences(want, &got);
                found.extend(differences(wanted, &made, Exactness::Bytes, &compared));
                found
            };
            let mut found = unlike(&wanted);
            // On a busy machine nvcc may end before or after the second pass has failed, too.
            for _ in 0..10 {
                if found.is_empty() {
                    break;
                }
                wanted = by_nvcc();
                found = unlike(&wanted);
            }
            assert!(found.is_empty(), "{what}, {turn}:\n{}", found.join("\n"));
            assert_eq!(stats.count("fallbacks"), i64::from(!once), "{what}, {turn}");
        }
        space.clear_work();
    }
}

/// Under `-t` nvcc has compiled another source by then, or removed the old archive.
#[test]
fn a_failing_build_with_threads_leaves_what_nvcc_leaves() {
    let space = TestSpace::new("outputs-threads-others");
    let folder = space.work().join("out");
    for (line, left) in [
        ("-c f.cpp k.cu -odir out -t 2 -arch=sm_90", &["f.o"][..]),
        ("-c f.cpp k.cu -odir out -arch=sm_90", &["f.o"]),
        ("-lib k.cu -o out/x.a -t 2 -arch=sm_90", &[]),
        ("-lib k.cu -o out/x.a -arch=sm_90", &["x.a"]),
    ] {
        let args = space.words(line);
        for program in [space.reference(), Program::Launcher, Program::Launcher] {
            space.clear_work();
            space.write("k.cu", "int x = nothing;\n");
            space.write("f.cpp", "int f() { return 3; }\n");
            fs::create_dir(&folder).expect("the folder");
            if line.contains("x.a") {
                space.write("out/x.a", "old");
            }
            let outcome = space.run(&program, &args);
            assert_ne!(outcome.code, 0, "{line}");
            let names = fs::read_dir(&folder).expect("the folder").flatten();
            let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
            assert_eq!(names, left, "{line}");
        }
    }
}

/// clang checks that its old output is there before it removes it; gcc's assembler does not.
#[test]
fn a_failing_clang_takes_the_old_object() {
    let space = TestSpace::new("failing-clang");
    space.write("case.cu", "asm(\".incbin \\\"data/none\\\"\");");
    space.write("out.o", "old");
    let line = "-ccbin clang++-14 -c case.cu -o out.o -arch=sm_90";
    let args = space.words(line);
    let reason = "a failing step looks for its old output";
    let out = space.work().join("out.o");
    for (old, asked) in [(false, None), (true, Some(&1))] {
        let prepare = || match old {
            true => space.write("out.o", "old"),
            false => _ = fs::remove_file(&out),
        };
        prepare();
        let want = space.run(&space.reference(), &args);
        assert!(!out.exists(), "nvcc takes it");
        prepare();
        let (got, _, stats) = space.observe(&Program::Launcher, &args);
        assert_eq!((want.code, got.code), (1, 1));
        assert_eq!(
            space.stream_rule().differences(&want, &got),
            Vec::<String>::new()
        );
        // Without an old output, plain nvcc need not run.
        assert_eq!(stats.reasons.get(reason), asked, "old: {old}");
        assert!(!out.exists(), "warpcc leaves it");
    }
}
