//! Changes to the variables and the folder a command runs in.

use std::process::Command;

use crate::inherited::agree_below;
use crate::space::{Program, TestSpace};
use crate::{KERNEL, ONE, rebuilt, warm};

fn space(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", KERNEL);
    space
}

/// A header found only through a variable.
fn through_variable(variable: &str) {
    let mut space = space(&format!("variable-{variable}"));
    space.write("case.cu", &format!("#include <by_variable.h>\n{KERNEL}"));
    space.write("one/by_variable.h", "#define VALUE 1\n");
    space.write("two/by_variable.h", "#define VALUE 2\n");
    space.set_env(variable, "{work}/one");
    warm(&space, ONE);
    space.set_env(variable, "{work}/two");
    rebuilt(&space, ONE);
    space.write("two/by_variable.h", "#define VALUE 3\n");
    rebuilt(&space, ONE);
    space.set_env(variable, "{work}/none:{work}/two");
    space.agree(ONE);
    space.write("none/by_variable.h", "#define VALUE 4\n");
    space.agree(ONE).demand_no_direct_hit();
}

#[test]
fn cpath() {
    through_variable("CPATH");
}

#[test]
fn cplus_include_path() {
    through_variable("CPLUS_INCLUDE_PATH");
}

#[test]
fn cpath_shadows_nothing_at_first() {
    let mut space = space("cpath-set");
    space.write("case.cu", &format!("#include <a.h>\n{KERNEL}"));
    space.write("inc/a.h", "#define VALUE 1\n");
    space.write("env/b.h", "");
    let line = &format!("{ONE} -isystem inc");
    warm(&space, line);
    space.set_env("CPATH", "{work}/env");
    space.agree(line);
    space.write("env/a.h", "#define VALUE 2\n");
    space.agree(line);
}

#[test]
fn dependencies_output() {
    // gcc writes a dependency file when this is set, whatever the arguments say.
    let mut space = space("dependencies-output");
    let line = &format!("{ONE} -DVALUE=1");
    warm(&space, line);
    space.set_env("DEPENDENCIES_OUTPUT", "{work}/extra.d target");
    // Its text holds nvcc's random names; that it is there is what counts.
    for _ in 0..2 {
        let outcome = space.run(&Program::Launcher, &space.words(line));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        assert!(space.exists("extra.d"), "no dependency file");
        space.remove("extra.d");
    }
}

#[test]
fn nvcc_append_flags() {
    let mut space = space("append-flags");
    space.set_env("NVCC_APPEND_FLAGS", "-DVALUE=1");
    warm(&space, ONE);
    space.set_env("NVCC_APPEND_FLAGS", "-DVALUE=2");
    rebuilt(&space, ONE);
    space.unset_env("NVCC_APPEND_FLAGS");
    space.set_env("NVCC_PREPEND_FLAGS", "-DVALUE=3");
    rebuilt(&space, ONE);
    space.set_env("NVCC_PREPEND_FLAGS", "-DVALUE=4");
    rebuilt(&space, ONE);
}

#[test]
fn variable_inside_an_argument() {
    // nvcc runs its commands through a shell, so a dollar sign in a macro is expanded
    // there: the value of the variable ends up in the object.
    let mut space = space("shell-variable");
    space.write(
        "case.cu",
        "__device__ const char *text = TEXT;\n__global__ void k() {}\n",
    );
    // PTX: an object would hold a temporary name of nvcc's, which runs alone here.
    let line = r#"-ptx case.cu -o out.ptx -arch=sm_90 '-DTEXT="$SOME_VARIABLE"'"#;
    space.set_env("SOME_VARIABLE", "one");
    space.build(line);
    space.set_env("SOME_VARIABLE", "two");
    space.agree(line).demand_no_direct_hit();
}

#[test]
fn locale_of_the_diagnostics() {
    let mut space = space("locale");
    space.write("case.cu", "#warning \"quoted\"\n__global__ void k() {}\n");
    warm(&space, ONE);
    // gcc's quotation marks differ.
    space.set_env("LC_ALL", "C");
    space.agree(ONE);
}

#[test]
fn current_folder_where_it_matters() {
    let mut space = space("cwd");
    for (dir, value) in [("one", 1), ("two", 2)] {
        space.write(&format!("{dir}/case.cu"), KERNEL);
        space.write(&format!("{dir}/a.h"), &format!("#define VALUE {value}\n"));
    }
    let line = "-include a.h -c case.cu -o out.o -arch=sm_90";
    space.stand_in = "one".into();
    warm(&space, line);
    space.stand_in = "two".into();
    space.agree(line).demand_no_direct_hit();
}

#[test]
fn current_folder_in_line_tables() {
    let mut space = space("cwd-lineinfo");
    for dir in ["one", "two"] {
        space.write(&format!("{dir}/x.h"), "");
    }
    for more in ["-lineinfo", "-G", "-lineinfo -rdc=true"] {
        for dir in ["one", "two"] {
            space.stand_in = dir.into();
            space.agree(&format!(
                "-c ../case.cu -o out.o -arch=sm_90 -DVALUE=1 {more}"
            ));
        }
    }
}

#[test]
fn another_gcc_first_in_path() {
    let mut space = space("path");
    let line = &format!("{ONE} -DNOTHING");
    space.write(
        "case.cu",
        "__global__ void k() {}\n#ifdef EXTRA\nint extra() { return 1; }\n#endif\n",
    );
    let path = std::env::var("PATH").expect("PATH");
    for name in ["gcc", "g++"] {
        space.script(
            &format!("bin/{name}"),
            &format!("#!/bin/sh\nexec /usr/bin/{name} -DEXTRA \"$@\"\n"),
        );
    }
    space.build(line);
    space.set_env("PATH", &format!("{{work}}/bin:{path}"));
    space.agree(line).demand_no_direct_hit();
}

/// A C program may start nvcc with a variable that is there twice. nvcc takes the first value, its shell the last one.
#[test]
fn a_variable_that_is_there_twice() {
    for (name, first, last, counted) in [
        ("NVCC_APPEND_FLAGS", "-DVALUE=1", "-DVALUE=2", "fallbacks"),
        ("NVCC_CCBIN", "/nonexistent", "g++", "fallbacks"),
        ("PATH", "/usr/bin:/bin", "/nonexistent", "fallbacks"),
        // Two of one value are like one.
        ("NVCC_APPEND_FLAGS", "-DVALUE=1", "-DVALUE=1", "built"),
    ] {
        let space = space("twice");
        space.write(
            "case.cu",
            &format!("#ifndef VALUE\n#define VALUE 3\n#endif\n{KERNEL}"),
        );
        space.write(
            "twice.c",
            "#include <unistd.h>\nextern char **environ;\nint main(int count, char **words) {\n\
             char *both[100] = {words[1], words[2]};\n\
             for (int i = 0; environ[i]; i++) both[i + 2] = environ[i];\n\
             return execve(words[3], words + 3, both); }\n",
        );
        let program = space.work().join("twice");
        let made = Command::new("gcc")
            .arg(space.work().join("twice.c"))
            .arg("-o")
            .arg(&program)
            .status();
        assert!(made.is_ok_and(|status| status.success()));
        let script = format!(
            "exec {} '{name}={first}' '{name}={last}' \"$@\"",
            program.display()
        );
        let script = format!("unset {name}; {script}");
        let stats = agree_below(&space, &script, "-cubin case.cu -o out.cubin -arch=sm_90");
        assert_eq!(stats.count(counted), 1, "{name}={first}: {stats:?}");
    }
}
