//! Changes that cannot matter: the result must come from the cache, all of it or the
//! part that the change does not reach.

use crate::space::{Program, TestSpace, small};
use crate::{KERNEL, ONE, TWO, warm};

fn space(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", &format!("#include \"a.h\"\n{KERNEL}"));
    space.write("a.h", "#define VALUE 1\n");
    space
}

#[test]
fn touched_header() {
    let space = space("touched");
    warm(&space, TWO);
    space.touch("a.h");
    space.touch("case.cu");
    space.agree(TWO).demand_direct_hit();
    // The same bytes in a new file.
    space.remove("a.h");
    space.write("a.h", "#define VALUE 1\n");
    space.agree(TWO).demand_direct_hit();
}

#[test]
fn touched_source_whose_time_is_in_the_line_table() {
    // Release 13.0 writes the source's time into the line table, 13.5 does not.
    for toolkit in crate::space::Toolkit::all() {
        let space = TestSpace::with_toolkit("touched-lineinfo", small(toolkit));
        space.write("case.cu", &format!("#include \"a.h\"\n{KERNEL}"));
        space.write(
            "a.h",
            "#define VALUE 1\ninline __device__ int g(int x) { return x + 1; }\n",
        );
        for more in ["-lineinfo", "-G"] {
            let line = &format!("{ONE} {more}");
            space.agree(line);
            for name in ["a.h", "case.cu"] {
                space.set_old(name);
                space.agree(line);
                space.touch(name);
                space.agree(line);
            }
        }
    }
}

/// With LTO, nvlink makes the line table, and asks for the times when it links: the objects may be old.
#[test]
fn touched_source_whose_time_is_in_a_linked_line_table() {
    for toolkit in crate::space::Toolkit::all() {
        let space = TestSpace::with_toolkit("touched-dlto", small(toolkit));
        space.write(
            "a.h",
            "#define VALUE g(*x)\ninline __device__ int g(int x) { return x + 1; }\n",
        );
        space.write(
            "case.cu",
            "#include \"a.h\"\n__global__ void k(int *x) { *x = VALUE; }\n",
        );
        space.build("-dc case.cu -o case.o -gencode arch=compute_90,code=lto_90 -lineinfo");
        for more in ["-lineinfo", ""] {
            let line = &format!("-dlink case.o -o linked.o -arch=sm_90 -dlto {more}");
            space.agree(line);
            for name in ["a.h", "case.cu"] {
                space.set_old(name);
                space.agree(line);
                space.touch(name);
                space.agree(line);
            }
        }
    }
}

#[test]
fn unrelated_file_appears() {
    let space = space("unrelated");
    warm(&space, ONE);
    space.write("unrelated.txt", "nothing");
    space.write("unrelated/x.h", "");
    space.agree(ONE).demand_direct_hit();
}

#[test]
fn comment_in_a_header_runs_no_ptxas() {
    let space = space("comment");
    warm(&space, TWO);
    space.write("a.h", "#define VALUE 1 // the answer\n");
    space
        .agree(TWO)
        .demand_no_fallback()
        .demand_hits_of(&["cicc", "ptxas"]);
    // Lines move: the host side may see it, device code without line tables may not.
    space.write("a.h", "// one line more\n#define VALUE 1\n");
    space
        .agree(TWO)
        .demand_no_fallback()
        .demand_hits_of(&["ptxas"]);
}

#[test]
fn host_only_line_runs_no_ptxas() {
    let space = space("host-line");
    warm(&space, ONE);
    space.write(
        "case.cu",
        &format!("#include \"a.h\"\n{KERNEL}int more() {{ return 3; }}\n"),
    );
    space
        .agree(ONE)
        .demand_no_fallback()
        .demand_hits_of(&["ptxas"]);
}

#[test]
fn another_subset_of_the_architectures() {
    let space = space("subset");
    warm(&space, TWO);
    let arch = |n: u32| format!("-gencode arch=compute_{n},code=sm_{n}");
    for line in [
        format!("-c case.cu -o out.o {}", arch(90)),
        format!("-c case.cu -o out.o {}", arch(80)),
        format!("-c case.cu -o out.o {} {}", arch(90), arch(80)),
    ] {
        space
            .agree(&line)
            .demand_no_fallback()
            .demand_hits_of(&["cicc", "ptxas"]);
    }
    // One architecture more: only that one is compiled.
    let build = space.agree(&format!("{TWO} {}", arch(86)));
    build.demand_no_fallback();
    assert_eq!(build.stats.missed("cicc"), 1, "{:?}", build.stats);
    assert_eq!(build.stats.missed("ptxas"), 1, "{:?}", build.stats);
}

#[test]
fn only_the_fat_binary_changes() {
    let space = space("compress");
    warm(&space, TWO);
    space
        .agree(&format!("{TWO} --compress-mode=size"))
        .demand_no_fallback()
        .demand_hits_of(&["cudafe++", "cicc", "ptxas"]);
}

#[test]
fn another_output_name() {
    let space = space("output-name");
    warm(&space, ONE);
    space
        .agree(&ONE.replace("out.o", "other.o"))
        .demand_no_tool_ran();
    space.write("sub/readme", "");
    space
        .agree(&ONE.replace("out.o", "sub/other.o"))
        .demand_no_tool_ran();
    space
        .agree(&ONE.replace("-o out.o", ""))
        .demand_no_tool_ran();
}

#[test]
fn another_build_folder() {
    let mut space = space("build-folder");
    space.write("one/readme", "");
    space.write("two/readme", "");
    let line = "-c ../case.cu -o out.o -arch=sm_90";
    space.stand_in = "one".into();
    warm(&space, line);
    space.stand_in = "two".into();
    space.agree(line).demand_no_tool_ran();
}

#[test]
fn threads_are_no_part_of_the_key() {
    let space = space("threads");
    warm(&space, TWO);
    space.agree(&format!("{TWO} -t 2")).demand_no_tool_ran();
}

#[test]
fn variables_that_do_not_count() {
    let mut space = space("variables");
    warm(&space, ONE);
    space.set_env("SOME_OTHER_VARIABLE", "x");
    space.set_env("OLDPWD", "/");
    space.agree(ONE).demand_direct_hit();
}

#[test]
fn temporary_folder_elsewhere() {
    let mut space = space("tmpdir");
    warm(&space, ONE);
    crate::space::make_dir(&space.beside("other-tmp"));
    space.set_env("TMPDIR", "{beside}/other-tmp");
    space.agree(ONE).demand_direct_hit();
}

/// nvcc fails where it cannot make intermediate files, also if the result is known.
#[test]
fn without_a_temporary_folder_nvcc_fails() {
    let mut space = space("no-tmpdir");
    warm(&space, ONE);
    space.write("file", "");
    for folder in ["{work}/file", "{work}/missing", "missing"] {
        space.set_env("TMPDIR", folder);
        // The messages name files with process numbers.
        let ends = [Program::Nvcc, Program::Launcher].map(|program| {
            let outcome = space.run(&program, &space.words(ONE));
            let told = outcome.stderr_text();
            (outcome.code, told.split("tmpxft").next().map(str::to_owned))
        });
        assert_eq!(ends[0], ends[1], "{folder}");
        assert_ne!(ends[0].0, 0, "{folder}");
    }
    crate::space::make_dir(&space.work().join("missing"));
    space.agree(ONE).demand_direct_hit();
}

#[test]
fn ptx_and_object_share_cicc() {
    let space = space("ptx-and-object");
    warm(&space, ONE);
    space
        .agree("-cubin case.cu -o out.cubin -arch=sm_90")
        .demand_no_fallback();
}
