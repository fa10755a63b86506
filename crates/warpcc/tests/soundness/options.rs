//! Changes to what the command line says, directly or through a file it names.

use crate::space::{Program, TestSpace};
use crate::{KERNEL, ONE, TWO, rebuilt, warm};

fn space(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", KERNEL);
    space
}

#[test]
fn macro_changes() {
    let space = space("macro");
    warm(&space, &format!("{TWO} -DVALUE=1"));
    rebuilt(&space, &format!("{TWO} -DVALUE=2"));
    rebuilt(&space, &format!("{TWO} -DVALUE=2 -UVALUE -DVALUE=3"));
}

#[test]
fn option_file_changes() {
    let space = space("option-file");
    space.write("opts.txt", "-DVALUE=1\n");
    let line = &format!("{ONE} -optf opts.txt");
    warm(&space, line);
    space.write("opts.txt", "-DVALUE=2\n");
    rebuilt(&space, line);
}

/// nvcc's rules for quotes are not the shell's.
#[test]
fn quotes_in_an_option_file_are_nvccs() {
    let space = space("option-file-quotes");
    let line = &format!("{ONE} -optf opts.txt");
    space.write("opts.txt", "-DVALUE=7\n");
    warm(&space, line);
    for (text, reason) in [
        ("-DVALUE='7'", None),
        ("-D'VALUE=7'", None),
        ("'-DVALUE=7'", None),
        ("-DVALUE=\"7\"", None),
        ("-DVALUE=\\7", Some("a quote or a backslash in flags")),
        ("-DVALUE=\\\n7", Some("a quote or a backslash in flags")),
        (
            "-DVALUE=7\u{b}-DOTHER",
            Some("a quote or a backslash in flags"),
        ),
    ] {
        space.write("opts.txt", text);
        // Where nvcc fails it says so itself, where it does not, it may be a hit.
        let line = match reason {
            None => line.clone(),
            Some(_) => line.replace("-c case.cu -o out.o", "-E case.cu -o out.i"),
        };
        let build = space.agree(&line);
        if let Some(reason) = reason {
            assert_eq!(build.stats.reasons.get(reason), Some(&1), "{text}");
        }
    }
}

#[test]
fn nested_option_file_changes() {
    let space = space("option-file-nested");
    space.write("outer.txt", "-optf inner.txt\n");
    space.write("inner.txt", "-DVALUE=1\n");
    let line = &format!("{ONE} --options-file=outer.txt");
    warm(&space, line);
    space.write("inner.txt", "-DVALUE=2\n");
    rebuilt(&space, line);
}

#[test]
fn response_file_of_the_host_compiler_changes() {
    let space = space("host-response-file");
    space.write(
        "case.cu",
        "__global__ void k(int *x) { *x = 1; }\nint host() { return VALUE; }\n",
    );
    space.write("flags", "-DVALUE=1\n");
    let line = &format!("{ONE} -Xcompiler @flags");
    space.build(line);
    space.write("flags", "-DVALUE=2\n");
    space.agree(line).demand_no_direct_hit();
}

/// The writer of the pipe has one reader: nvcc.
#[test]
fn a_pipe_of_options_is_left_to_nvcc() {
    let space = space("options-in-a-pipe");
    let mut mkfifo = std::process::Command::new("mkfifo");
    let made = mkfifo.arg(space.work().join("pipe")).status();
    assert!(made.expect("mkfifo starts").success());
    for option in ["-optf pipe", "--options-file=pipe"] {
        let words = space.words(&format!("{ONE} {option}"));
        let calls = [Program::Nvcc, Program::Launcher, Program::Launcher].map(|program| {
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| std::fs::write(space.work().join("pipe"), "-DVALUE=3"));
                let said = space.run(&program, &words);
                writer.join().expect("no panic").expect("a reader");
                (said.code, space.read("out.o").len())
            })
        });
        assert_eq!(calls[0].0, 0);
        assert!(calls.iter().all(|call| *call == calls[0]), "{calls:?}");
    }
}

#[test]
fn forced_header_changes() {
    let space = space("forced-header");
    space.write("forced.h", "#define VALUE 1\n");
    let line = &format!("{ONE} -include forced.h");
    warm(&space, line);
    space.write("forced.h", "#define VALUE 2\n");
    rebuilt(&space, line);
    space.write("other.h", "#define VALUE 2\n");
    rebuilt(&space, &format!("{ONE} -include other.h"));
}

#[test]
fn options_of_every_tool_count() {
    let space = space("tool-options");
    let line = &format!("{ONE} -DVALUE=1");
    warm(&space, line);
    for more in [
        "-Xptxas -O1",
        "-Xcompiler -O3",
        "-Xcudafe --diag_suppress=1",
        "-Xfatbin -compress-all",
        "--compress-mode=none",
        "-use_fast_math",
        "-lineinfo",
        "-std=c++14",
        "-rdc=true",
        "-maxrregcount 32",
        "--default-stream per-thread",
        "-fmad=false",
    ] {
        let build = space.agree(&format!("{line} {more}"));
        assert!(!build.is_direct_hit(), "{more} made no difference");
    }
    // None of them may have changed what the first one is.
    space.agree(line).demand_direct_hit();
}

#[test]
fn order_of_options_counts_where_it_does() {
    let space = space("option-order");
    space.write("a.h", "#undef VALUE\n#define VALUE 1\n");
    space.write("b.h", "#undef VALUE\n#define VALUE 2\n");
    warm(&space, &format!("{ONE} -include a.h -include b.h"));
    rebuilt(&space, &format!("{ONE} -include b.h -include a.h"));
}

#[test]
fn a_second_value_is_warned_of_also_where_no_value_counts() {
    let space = space("second-value");
    let object = |first: &str| ONE.replace("-o ", &format!("{first} -o "));
    for (once, again) in [
        (object("-o out.o"), object("-o other.o")),
        (object("-t1"), object("-t2 -t1")),
    ] {
        space.agree(&once);
        let warned = space.agree(&again);
        warned.demand_no_direct_hit();
        assert!(!warned.outcome.stderr.is_empty(), "{again}");
        // From the cache, with the warning and without it.
        space.agree(&again);
        space.agree(&once);
    }
}

/// warpcc adds a folder of its own to the command line of nvcc's dry run.
#[test]
fn a_folder_for_kept_files_without_kept_files_is_not_warned_of() {
    let space = space("keep-dir-alone");
    space.write("kept/file", "");
    for folders in ["-keep-dir kept", "-keep-dir kept -keep-dir none"] {
        let words = space.words(&format!("{ONE} -DVALUE=1 {folders}"));
        let nvccs = space.run(&Program::Nvcc, &words);
        assert_eq!(nvccs.code, 0, "{}", nvccs.stderr_text());
        for _ in 0..2 {
            let ours = space.run(&Program::Launcher, &words);
            assert_eq!(ours, nvccs, "{folders}");
        }
        assert!(space.stats().count("direct_hits") > 0);
    }
}

#[test]
fn same_name_in_another_folder() {
    let space = space("same-name");
    space.write("one/case.cu", &format!("#define VALUE 1\n{KERNEL}"));
    space.write("two/case.cu", &format!("#define VALUE 2\n{KERNEL}"));
    warm(&space, "-c one/case.cu -o out.o -arch=sm_90");
    rebuilt(&space, "-c two/case.cu -o out.o -arch=sm_90");
}

#[test]
fn same_text_where_the_path_shows() {
    // The path is in the module id, in __FILE__ and in the line table.
    let text = "static __device__ int v;\n__global__ void k(int *x) { *x = v; }\n\
                const char *file() { return __FILE__; }\n";
    let space = space("path-shows");
    space.write("one/case.cu", text);
    space.write("two/case.cu", text);
    for more in ["", "-lineinfo", "-rdc=true", "-G"] {
        space.agree(&format!("-c one/case.cu -o out.o -arch=sm_90 {more}"));
        space.agree(&format!("-c two/case.cu -o out.o -arch=sm_90 {more}"));
    }
}

#[test]
fn dependency_file_names_this_target() {
    let space = space("dependency-target");
    space.write("a.h", "#define VALUE 1\n");
    let line = |out: &str| format!("-MD -include a.h -c case.cu -o {out} -arch=sm_90");
    warm(&space, &line("one.o"));
    // The object is the same, the dependency file is not.
    let build = space.agree(&line("two.o"));
    assert!(
        build.outputs.entries.contains_key("two.d"),
        "no dependency file"
    );
    let other = "-MD -MT x -MF y.d -include a.h -c case.cu -o two.o -arch=sm_90";
    let build = space.agree(other);
    assert!(
        build.outputs.entries.contains_key("y.d"),
        "no dependency file"
    );
}

#[test]
fn dependency_file_lists_a_header_that_no_longer_has_text() {
    // The preprocessed text stays the same, the list of headers does not.
    let space = space("dependency-list");
    space.write("a.h", "#define VALUE 1\n");
    space.write("b.h", "");
    let line = "-MD -include a.h -c case.cu -o out.o -arch=sm_90";
    warm(&space, line);
    space.write("a.h", "#include \"b.h\"\n#define VALUE 1\n");
    rebuilt(&space, line);
}
