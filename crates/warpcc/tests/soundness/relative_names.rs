//! Tests host compilers that take relative names from another folder than the working directory, because of an option that
//! warpcc does not see or of a wrapper: sources are read, and outputs are, where nvcc has them.

use crate::ONE;
use crate::space::{Exactness, Program, TestSpace};

/// A space with a source of another text in the folder `sub`.
fn space(name: &str) -> TestSpace {
    let mut space = TestSpace::new(name);
    // As if clang had the words of its options file from where warpcc cannot read them.
    space.set_env("WARPCC_TEST_UNSOUND", "host-option-files");
    for (folder, value) in [("", 1), ("sub/", 2)] {
        let source = format!("__global__ void k() {{}}\nint host() {{ return {value}; }}\n");
        space.write(&format!("{folder}case.cu"), &source);
        let source = format!("int host() {{ return {value}; }}\n");
        space.write(&format!("{folder}case.cpp"), &source);
    }
    space.write("options", &space.fill("-working-directory={work}/sub\n"));
    space
}

/// Asserts that warpcc does what plain nvcc does, the first time and later.
fn is_nvccs(space: &TestSpace, line: &str) {
    for _ in 0..2 {
        space.agree_as(&Program::Launcher, line, Exactness::ButKeepFolder);
    }
}

#[test]
fn clang_reads_a_relative_source_in_its_own_folder() {
    for clang in ["clang++-14", "clang++-19"] {
        let space = space(&format!("source-elsewhere-{clang}"));
        for source in ["case.cu", "case.cpp"] {
            let line = format!("-c {source} -o {{work}}/out.o -MD -arch=sm_90 -ccbin {clang}");
            is_nvccs(&space, &format!("{line} -Xcompiler @options"));
        }
    }
}

#[test]
fn clang_writes_a_relative_object_in_its_own_folder() {
    for clang in ["clang++-14", "clang++-19"] {
        let space = space(&format!("object-elsewhere-{clang}"));
        for source in ["case.cu", "case.cpp"] {
            let line = format!("-c {{work}}/{source} -o out.o -arch=sm_90 -ccbin {clang}");
            is_nvccs(&space, &format!("{line} -Xcompiler @options"));
            assert!(space.exists("sub/out.o") && !space.exists("out.o"));
            space.remove("sub/out.o");
        }
    }
}

/// The name of the output is not in the key.
#[test]
fn an_object_with_an_absolute_name_answers_no_call_with_a_relative_one() {
    let space = space("absolute-first");
    for output in ["{work}/out.o", "out.o"] {
        let line = format!("-c {{work}}/case.cpp -o {output} -ccbin clang++-14");
        is_nvccs(&space, &format!("{line} -Xcompiler @options"));
    }
    assert!(space.exists("sub/out.o"));
}

#[test]
fn a_wrapper_compiles_in_another_folder() {
    let space = space("wrapper-elsewhere");
    space.script(
        "cc.sh",
        &space.fill("#!/bin/sh\ncd {work}/sub && exec g++ \"$@\"\n"),
    );
    for source in ["case.cpp", "{work}/case.cpp"] {
        is_nvccs(
            &space,
            &format!("-c {source} -o out.o -ccbin {{work}}/cc.sh"),
        );
        space.remove("sub/out.o");
    }
}

/// clang's front end resolves names itself: no process is in another folder.
#[test]
fn an_option_of_clangs_front_end_moves_a_relative_object() {
    let words = "-Xclang -working-directory -Xclang {work}/sub";
    let wrapper = format!("#!/bin/sh\nexec clang++-14 {words} \"$@\"\n");
    for (number, places) in ["options", "cc.sh", "clang++.cfg", "variable"]
        .iter()
        .enumerate()
    {
        let mut space = space(&format!("front-end-{number}"));
        let compiler = match *places {
            "options" => {
                space.write("options", &space.fill(words));
                "clang++-14 -Xcompiler @options"
            }
            "cc.sh" => {
                space.script("cc.sh", &space.fill(&wrapper));
                "{work}/cc.sh"
            }
            "clang++.cfg" => {
                space.write("clang++.cfg", &space.fill(words));
                let folder = "--config-system-dir={work} --config clang++.cfg";
                let script = format!("#!/bin/sh\nexec clang++-14 {folder} \"$@\"\n");
                space.script("cc.sh", &space.fill(&script));
                "{work}/cc.sh"
            }
            _ => {
                let folder = space.fill("+-Xclang +-working-directory +-Xclang +{work}/sub");
                space.set_env("CCC_OVERRIDE_OPTIONS", &folder);
                "clang++-14"
            }
        };
        // An absolute name answers no call with a relative one.
        for output in ["{work}/out.o", "out.o"] {
            is_nvccs(
                &space,
                &format!("-c {{work}}/case.cpp -o {output} -ccbin {compiler}"),
            );
        }
        assert!(space.exists("sub/out.o"), "{places}");
    }
}

/// No file has the option's whole name, and only the arguments of clang show it.
#[test]
fn an_option_that_a_wrapper_makes_of_parts_moves_a_relative_object() {
    let space = space("option-of-parts");
    let script = "#!/bin/sh\noption=-working\n\
        exec clang++-14 -Xclang $option-directory -Xclang {work}/sub \"$@\"\n";
    space.script("cc.sh", &space.fill(script));
    for output in ["{work}/out.o", "out.o"] {
        is_nvccs(
            &space,
            &format!("-c {{work}}/case.cpp -o {output} -ccbin {{work}}/cc.sh"),
        );
    }
    assert!(space.exists("sub/out.o"));
}

/// No file that is left has the option's whole name.
#[test]
fn options_in_a_file_that_a_wrapper_removes_move_a_relative_object() {
    let space = space("options-removed");
    let script = "#!/bin/sh\noption=-working\nfile=$(mktemp)\n\
        echo -Xclang $option-directory -Xclang {work}/sub > $file\n\
        clang++-14 @$file \"$@\"\ncode=$?\nrm $file\nexit $code\n";
    space.script("cc.sh", &space.fill(script));
    for output in ["{work}/out.o", "out.o"] {
        is_nvccs(
            &space,
            &format!("-c {{work}}/case.cpp -o {output} -ccbin {{work}}/cc.sh"),
        );
    }
    assert!(space.exists("sub/out.o"));
}

/// Its temporary assembly is gone when the log is read.
#[test]
fn a_clang_that_removes_its_assembly_is_cached() {
    let space = space("assembly-removed");
    space.script(
        "cc.sh",
        "#!/bin/sh\nexec clang++-14 -fno-integrated-as \"$@\"\n",
    );
    let line = format!("{ONE} -ccbin {{work}}/cc.sh");
    let built = space.agree(&line);
    built.demand_no_fallback();
    space.again(&line, &built).demand_direct_hit();
}

/// It opens the source under the plan's name.
#[test]
fn a_wrapper_that_looks_around_first_is_cached() {
    let space = space("wrapper-looks-around");
    let script =
        "#!/bin/sh\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\nexec g++ -DHERE=\"$here\" \"$@\"\n";
    space.script("cc.sh", script);
    let line = format!("{ONE} -ccbin {{work}}/cc.sh");
    let built = space.agree(&line);
    built.demand_no_fallback();
    space.again(&line, &built).demand_direct_hit();
}
