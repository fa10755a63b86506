//! Changes to what nvlink and the host linker find by search.

use crate::space::TestSpace;
use crate::{rebuilt, warm};

/// `main` calls a device function that an archive in `one` or `two` defines.
fn space(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write(
        "main.cu",
        "extern __device__ int value();\n__global__ void k(int *x) { *x = value(); }\n\
         int main() { k<<<1, 1>>>(nullptr); return 0; }\n",
    );
    for (dir, value) in [("one", 1), ("two", 2), ("three", 3)] {
        space.write(
            &format!("{dir}/value.cu"),
            &format!("__device__ int value() {{ return {value}; }}\n"),
        );
        archive(&space, dir);
    }
    nvcc(&space, "-dc main.cu -o main.o -arch=sm_90");
    space
}

fn archive(space: &TestSpace, dir: &str) {
    nvcc(
        space,
        &format!("-rdc=true -lib {dir}/value.cu -o {dir}/libvalue.a -arch=sm_90"),
    );
}

fn nvcc(space: &TestSpace, line: &str) {
    let outcome = space.run(&space.reference(), &space.words(line));
    assert_eq!(outcome.code, 0, "{line}: {}", outcome.stderr_text());
}

const LINK: &str = "main.o -o prog -arch=sm_90 -L{toolkit}/lib -lvalue";
const DLINK: &str = "-dlink main.o -o dlink.o -arch=sm_90 -L{toolkit}/lib -lvalue";

#[test]
fn archive_that_nvlink_searches_changes() {
    let space = space("archive");
    let line = &format!("{DLINK} -L one");
    warm(&space, line);
    space.write("one/value.cu", "__device__ int value() { return 9; }\n");
    archive(&space, "one");
    rebuilt(&space, line);
    let line = &format!("{LINK} -L one");
    warm(&space, line);
    space.write("one/value.cu", "__device__ int value() { return 10; }\n");
    archive(&space, "one");
    rebuilt(&space, line);
}

#[test]
fn order_of_library_folders() {
    let space = space("library-order");
    warm(&space, &format!("{DLINK} -L one -L two"));
    rebuilt(&space, &format!("{DLINK} -L two -L one"));
    warm(&space, &format!("{LINK} -L one -L two"));
    rebuilt(&space, &format!("{LINK} -L two -L one"));
}

#[test]
fn archive_appears_in_an_earlier_folder() {
    let space = space("library-appears");
    space.write("empty/readme", "");
    for line in [
        format!("{DLINK} -L empty -L one"),
        format!("{LINK} -L empty -L one"),
    ] {
        space.remove("empty/libvalue.a");
        warm(&space, &line);
        std::fs::copy(
            space.work().join("three/libvalue.a"),
            space.work().join("empty/libvalue.a"),
        )
        .expect("copying the archive");
        rebuilt(&space, &line);
    }
}

#[test]
fn object_on_the_command_line_changes() {
    let space = space("object");
    nvcc(&space, "-dc one/value.cu -o value.o -arch=sm_90");
    let line = "main.o value.o -o prog -arch=sm_90 -L{toolkit}/lib";
    warm(&space, line);
    nvcc(&space, "-dc two/value.cu -o value.o -arch=sm_90");
    rebuilt(&space, line);
}

#[test]
fn library_path_of_the_host_linker() {
    let mut space = space("library-path");
    space.write(
        "host.cu",
        "int f();\n__global__ void k() {}\nint main() { return f(); }\n",
    );
    for (dir, value) in [("one", 1), ("two", 2)] {
        space.write(
            &format!("{dir}/f.cpp"),
            &format!("int f() {{ return {value}; }}\n"),
        );
        nvcc(&space, &format!("-lib {dir}/f.cpp -o {dir}/libf.a"));
    }
    let line = "host.cu -o prog -arch=sm_90 -L{toolkit}/lib -lf";
    space.set_env("LIBRARY_PATH", "{work}/one");
    space.agree(line);
    space.set_env("LIBRARY_PATH", "{work}/two");
    space.agree(line).demand_no_direct_hit();
}

#[test]
fn existing_archive_is_added_to_or_replaced_as_nvcc_does() {
    // `ar` keeps members that are already there: the output is an input.
    let space = space("archive-again");
    let line = "-lib one/value.cu -o lib.a -arch=sm_90 -rdc=true";
    space.agree(line);
    let other = "-lib main.cu -o lib.a -arch=sm_90 -rdc=true";
    let want_members = |space: &TestSpace| {
        let run = crate::space::Program::Other("/usr/bin/ar".into(), vec!["t".to_owned()]);
        let outcome = space.run(&run, &["lib.a".to_owned()]);
        String::from_utf8_lossy(&outcome.stdout).into_owned()
    };
    space.remove("lib.a");
    nvcc(&space, line);
    nvcc(&space, other);
    let nvcc_has = want_members(&space);
    space.remove("lib.a");
    for line in [line, other] {
        let outcome = space.run(&crate::space::Program::Launcher, &space.words(line));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    }
    assert_eq!(
        nvcc_has,
        want_members(&space),
        "members of an archive built twice"
    );
}
