//! Tests that everything a build looked at counts, in any place and for any process: files below mounts and `/proc/self`,
//! variables that are on no list, programs that cannot be watched, toolkits made of links.

use crate::space::TestSpace;
use crate::{KERNEL, ONE, rebuilt, warm};

/// A space whose source includes `a.h`.
fn including(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", &format!("#include \"a.h\"\n{KERNEL}"));
    space.write("a.h", "#define VALUE 1\n");
    space
}

/// A space whose host code takes VALUE from the command line of its host compiler, a script of ours.
fn wrapped(name: &str, script: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write(
        "case.cu",
        "__global__ void k(int *x) { *x = 1; }\n\
         #ifndef VALUE\n#define VALUE 0\n#endif\nint host() { return VALUE; }\n",
    );
    for compiler in ["gcc", "g++"] {
        space.script(&format!("bin/{compiler}"), script);
    }
    space
}

const WRAPPED: &str = "-c case.cu -o out.o -arch=sm_90 -ccbin {work}/bin";

#[test]
fn a_header_below_another_mount_changes() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in /dev/shm");
    let space = TestSpace::new("dev-shm");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file in /dev/shm");
    };
    write("case.cu", &format!("#include \"a.h\"\n{KERNEL}"));
    write("a.h", "#define VALUE 1\n");
    let source = folder.path().join("case.cu");
    let line = &format!("-c {} -o out.o -arch=sm_90", source.display());
    warm(&space, line);
    write("a.h", "#define VALUE 2\n");
    rebuilt(&space, line);
}

#[test]
fn a_header_behind_proc_self_changes() {
    let space = including("proc-self");
    space.write("inc/b.h", "#define VALUE 1\n");
    space.write("a.h", "#include <b.h>\n");
    let line = &format!("{ONE} -I/proc/self/cwd/inc");
    warm(&space, line);
    space.write("inc/b.h", "#define VALUE 2\n");
    rebuilt(&space, line);
}

#[test]
fn a_variable_that_nobody_listed_changes() {
    let mut space = including("unlisted-variable");
    warm(&space, ONE);
    // nvcc passes the first to ptxas; LLVM inside cicc reads the second, gcc the third.
    for (name, value) in [
        ("OCG_FLAGS", "-O1"),
        ("LLVM_OVERRIDE_PRODUCER", "somebody"),
        ("GCC_EXTRA_DIAGNOSTIC_OUTPUT", "fixits-v1"),
    ] {
        space.set_env(name, value);
        rebuilt(&space, ONE);
        space.unset_env(name);
        space.agree(ONE).demand_direct_hit();
    }
    // A variable that no tool reads is no reason to build.
    space.set_env("NOBODY_ASKS_FOR_THIS", "1");
    space.agree(ONE).demand_direct_hit();
}

#[test]
fn a_script_as_compiler_sees_every_variable() {
    let script = "#!/bin/bash\nexec g++ \"$@\" -DVALUE=${SITE_VALUE:-1}\n";
    let mut space = wrapped("script-variable", script);
    warm(&space, WRAPPED);
    space.set_env("SITE_VALUE", "2");
    rebuilt(&space, WRAPPED);
    // A variable that changes from call to call, and that the script does not name, causes no miss.
    space.set_env("MAKELEVEL", "3");
    space.agree(WRAPPED).demand_direct_hit();
}

#[test]
fn a_script_that_looks_along_path_finds_another_compiler() {
    let script = "#!/bin/sh\nexec flavour \"$@\"\n";
    let mut space = wrapped("script-path", script);
    let flavour = |value: u32| format!("#!/bin/sh\nexec g++ \"$@\" -DVALUE={value}\n");
    space.script("one/flavour", &flavour(1));
    space.script("two/flavour", &flavour(2));
    let old = std::env::var("PATH").expect("PATH");
    space.set_env("PATH", &format!("{{work}}/one:{old}"));
    warm(&space, WRAPPED);
    space.set_env("PATH", &format!("{{work}}/two:{{work}}/one:{old}"));
    rebuilt(&space, WRAPPED);
    // A folder without any file that is looked for changes nothing.
    space.set_env(
        "PATH",
        &format!("{{work}}/nothing:{{work}}/two:{{work}}/one:{old}"),
    );
    space.agree(WRAPPED).demand_direct_hit();
}

#[test]
fn a_static_wrapper_is_noticed() {
    let program = "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
        int main(int n, char **v) {\n\
          static char text[64]; FILE *f = fopen(\"{work}/value\", \"r\");\n\
          if (f && fgets(text, sizeof text, f)) text[strcspn(text, \"\\n\")] = 0;\n\
          char *words[9999]; int i;\n\
          for (i = 0; i < n; i++) words[i] = v[i];\n\
          words[0] = \"g++\"; words[i++] = text; words[i] = 0;\n\
          execv(\"/usr/bin/g++\", words); return 1; }\n";
    for (kind, is_seen) in [("-static", false), ("-O1", true)] {
        let space = wrapped(&format!("wrapper{kind}"), "#!/bin/sh\nfalse\n");
        space.write("wrapper.c", &space.fill(program));
        space.write("value", "-DVALUE=1\n");
        let wrapper = space.work().join("bin/g++");
        let built = std::process::Command::new("cc")
            .args([kind, "-w", "-o"])
            .arg(&wrapper)
            .arg(space.work().join("wrapper.c"))
            .status()
            .expect("cc runs");
        assert!(built.success(), "cc {kind}");
        std::fs::copy(&wrapper, space.work().join("bin/gcc")).expect("a copy");
        space.agree(WRAPPED);
        let again = space.agree(WRAPPED);
        assert_eq!(again.is_direct_hit(), is_seen, "{kind}: {:?}", again.stats);
        space.write("value", "-DVALUE=2\n");
        space.agree(WRAPPED).demand_no_direct_hit();
    }
}

#[test]
fn a_file_that_a_linker_writes_besides_is_there_again() {
    let space = including("map-file");
    for option in [
        "-Xlinker -Map=case.map",
        "-Xlinker -Map -Xlinker case.map",
        "-Xlinker --dependency-file=case.map",
    ] {
        let line = &format!("case.cu -o case.so -arch=sm_90 -shared -Xcompiler -fPIC {option}");
        space.build(line);
        space.remove("case.map");
        space.build(line).demand_no_direct_hit();
        assert!(space.exists("case.map"), "{option}");
    }
}

#[test]
fn a_date_in_an_option_is_of_today() {
    let space = including("date-option");
    // Put together by the preprocessor, so that no file and no option names the macro.
    space.write(
        "case.cu",
        "#define PASTE(a, b) a##b\nconst char *stamp() { return PASTE(__TI, ME__); }\n",
    );
    let line = "-c case.cu -o out.o -arch=sm_90";
    space.build(line);
    space.build(line).demand_no_direct_hit();
    space.write("case.cu", "const char *stamp() { return STAMP; }\n");
    let line = "-c case.cu -o out.o -arch=sm_90 -DSTAMP=__TIME__";
    space.build(line);
    space.build(line).demand_no_direct_hit();
    // A date that stands in the source itself is like any other text.
    let line = "-c case.cu -o out.o -arch=sm_90";
    space.write(
        "case.cu",
        "const char *stamp() { return \"Nov 21 2026\"; }\n",
    );
    warm(&space, line);
}

#[test]
fn the_directory_has_another_name() {
    let space = including("pwd");
    let line = &format!("{ONE} -g");
    let link = space.beside("entered");
    std::os::unix::fs::symlink(space.work(), &link).expect("a link");
    let mut space = space;
    space.set_env("PWD", &space.work().to_string_lossy());
    space.build(line);
    space.build(line).demand_direct_hit();
    space.set_env("PWD", &link.to_string_lossy());
    space.build(line).demand_no_direct_hit();
    let object = space.read("out.o");
    let name = link.to_string_lossy().into_owned();
    let names_link = object.windows(name.len()).any(|w| w == name.as_bytes());
    assert!(
        names_link,
        "the debug information has the name that PWD gives"
    );
    space.build(line).demand_direct_hit();
}

#[test]
fn a_result_put_together_from_hits_knows_its_own_toolkit() {
    // As Nix, Spack and conda make them: a toolkit of links to another.
    let space = TestSpace::whole("toolkit-of-links");
    space.write("case.cu", &format!("#define VALUE 1\n{KERNEL}"));
    let real = space.toolkit.top();
    let linked = space.beside("linked");
    link_tree(&real, &linked, 3);
    let nvcc = linked.join("bin/nvcc");
    warm(&space, ONE);
    let run = |line: &str| {
        let program =
            crate::space::Program::Other(TestSpace::warpcc(), vec![nvcc.display().to_string()]);
        let before = space.warpcc_with(&["stats", "--json"]);
        let outcome = space.run(&program, &space.words(line));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        drop(before);
        space.read("out.o")
    };
    let first = run(ONE);
    assert_eq!(first, run(ONE));
    // The linked toolkit gets another ptxas; the real one is as it was.
    let ptxas = linked.join("bin/ptxas");
    std::fs::remove_file(&ptxas).expect("a link of ours");
    let text = format!("#!/bin/sh\nexec {}/bin/ptxas -O0 \"$@\"\n", real.display());
    std::fs::write(&ptxas, text).expect("a script");
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(&ptxas, mode).expect("a script that runs");
    assert_ne!(first, run(ONE), "the new ptxas did not run");
}

/// Makes `to` a tree of folders with links to the files of `from`; folders deeper than `depth` are links themselves.
fn link_tree(from: &std::path::Path, to: &std::path::Path, depth: u32) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if depth > 0 && source.is_dir() && !source.is_symlink() {
            link_tree(&source, &target, depth - 1);
        } else {
            std::os::unix::fs::symlink(&source, &target).expect("a link");
        }
    }
}
