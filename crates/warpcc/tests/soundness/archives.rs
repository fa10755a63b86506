//! Tests libraries that nvcc makes with `ar`: the words of `-Xarchive`, and names of every kind.

use crate::simple;
use crate::space::Program;

#[test]
fn a_library_may_have_any_name() {
    let space = simple("library-names");
    for name in ["lib", "lib.o", "sub/x.lib", "./y"] {
        space.write("sub/kept", "");
        let line = format!("-lib case.cu -arch=sm_90 -o {name}");
        let built = space.agree(&line);
        built.demand_no_fallback();
        space.again(&line, &built).demand_direct_hit();
    }
}

/// The second word is no library, although it has a library's ending.
#[test]
fn a_library_among_the_inputs_is_no_output() {
    let space = simple("library-of-libraries");
    space.build("-c case.cu -arch=sm_90 -o case.o");
    space.build("-lib case.cu -arch=sm_90 -o in.a");
    space.remove("out");
    let line = "-lib case.o in.a -arch=sm_90 -o out";
    let built = space.agree(line);
    built.demand_no_fallback();
    space.again(line, &built).demand_direct_hit();
}

/// A thin archive contains the paths of its objects, which are intermediate files.
#[test]
fn a_thin_library_of_intermediate_files_has_no_path_of_ours() {
    let space = simple("thin-library");
    space.write("options", "--thin\n");
    for option in ["--thin", "@options"] {
        let words = space.words(&format!(
            "-lib case.cu -arch=sm_90 -o x.a -Xarchive {option}"
        ));
        for _ in 0..2 {
            space.remove("x.a");
            assert_eq!(space.run(&Program::Launcher, &words).code, 0);
            let library = String::from_utf8_lossy(&space.read("x.a")).into_owned();
            assert!(library.contains("tmpxft_"), "{library}");
        }
    }
}

/// nvcc's shell asks the host compiler for `ar`. What a wrapper looks at to answer counts, and the user reads what it says.
#[test]
fn the_answer_of_a_wrapper_counts() {
    let space = simple("asked-for-ar");
    space.script(
        "g++",
        "#!/bin/sh\ncase $1 in -print-prog-name=ar) echo asked >&2; cat name; exit;; esac\nexec g++ \"$@\"\n",
    );
    space.script("ar1", "#!/bin/sh\nexec ar \"$@\"\n");
    space.script("ar2", "#!/bin/sh\nar \"$@\" && exec ar q x.a name\n");
    space.write("name", "./ar1\n");
    let line = "-lib case.cu -arch=sm_90 -o x.a -ccbin ./g++";
    let built = space.agree(line);
    built.demand_no_fallback();
    space.again(line, &built).demand_direct_hit();
    space.write("name", "./ar2\n");
    space.agree(line);
}
