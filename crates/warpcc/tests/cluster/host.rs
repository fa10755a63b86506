//! Tests the host compile on a cluster: with warnings, with several compilers, in one step of the plan or in two.

use crate::space::{Build, TestSpace};
use crate::{demand_equal_records, executed, remote, space, step_records};
use warpcc_testkit::casd::Casd;

const ONE: &str = "-c case.cu -o out.o -arch=sm_80";

/// Steps of one architecture besides the host compile: cudafe++, cicc, ptxas, fatbinary.
const DEVICE: u64 = 4;

/// The steps of these that run again when only host code changes: cudafe++, cicc.
const FRONT: u64 = 2;

/// Host code for which gcc warns of misleading indentation, unless the code is preprocessed.
const MISLEADING: &str = "inline int misleading(int a) {\n\
    \x20 if (a)\n\
    \x20   a += 2;\n\
    \x20   a -= 3;\n\
    \x20 return a;\n}\n";

#[test]
fn warnings_do_not_keep_the_host_compile_here_and_are_nvccs() {
    let Some(casd) = Casd::start() else { return };
    let space = space("cluster-warnings", &casd.address());
    space.write("misleading.h", MISLEADING);
    let write = |more: &str| {
        let kernel = "#include \"misleading.h\"\n__global__ void k(int *x) { *x = 1; }\n\
            int f(int a) { return misleading(a); }\n";
        space.write("case.cu", &format!("{kernel}{more}"));
    };
    let away = |line: &str, steps: u64, build: fn(&TestSpace, &str) -> Build| {
        let before = executed(&space);
        let built = build(&space, line);
        built.demand_no_fallback();
        assert_eq!(executed(&space) - before, steps, "{line}");
        built.outcome.stderr_text()
    };
    let all = format!("{ONE} -Xcompiler -Wall,-Wextra");
    // Uploads the tools, so that no later command is so late that it also runs here.
    write("");
    space.build(&all);
    // The file that gcc gets from cudafe++ has line markers, so gcc does not look at the indentation.
    write("int g() { return 1; }\n");
    assert_eq!(away(&all, FRONT + 1, TestSpace::agree), "");
    // gcc shows its warnings with the source's lines, so the host compile runs here, and its messages are nvcc's.
    write("bool g(int a, unsigned b) { return a < b; }\n");
    assert!(away(&all, FRONT, TestSpace::agree).contains("-Wsign-compare"));
    // The host compile of the next file with these options is not sent in vain. It has no messages, so the one after it is
    // sent again.
    write("int h() { return 1; }\n");
    assert_eq!(away(&all, FRONT, TestSpace::build), "");
    write("int i() { return 1; }\n");
    assert_eq!(away(&all, FRONT + 1, TestSpace::build), "");
    // A user's own file has no line marker, so gcc does look at the indentation.
    space.write("own.cpp", MISLEADING);
    let said = away("-c own.cpp -o own.o -Xcompiler -Wall", 0, TestSpace::agree);
    assert!(said.contains("-Wmisleading-indentation"), "{said}");
}

#[test]
fn tools_that_the_workers_have_are_not_sent() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-installed", &casd.address());
    let write =
        |space: &TestSpace, more: &str| space.write("case.cu", &format!("{}{more}", crate::KERNEL));
    // casd's sandbox has this machine's /usr, but no toolkit: ptxas runs here, and costs no build.
    space.set_env("WARPCC_EXECUTOR_INSTALLED", "host,ptxas");
    space.set_env("WARPCC_EXECUTOR_PROPERTIES", "OSFamily=linux");
    space.build(ONE).demand_no_fallback();
    assert!(executed(&space) <= DEVICE);
    let before = executed(&space);
    write(&space, "int more() { return 1; }\n");
    space.agree(ONE);
    assert_eq!(executed(&space) - before, FRONT + 1);
    let mut away = step_records(&space.cache());
    // The compiler itself is uploaded where no property promises it, and warpcc warns of that.
    let up = remote(&space, "bytes_up");
    space.unset_env("WARPCC_EXECUTOR_PROPERTIES");
    write(&space, "int yet_more() { return 1; }\n");
    let said = space.build(ONE).outcome.stderr_text();
    assert!(said.contains("host is in executor_installed"), "{said}");
    let up = remote(&space, "bytes_up") - up;
    assert!(up > 20 << 20, "{up}");
    // The records are those of a run here.
    space.unset_env("WARPCC_EXECUTOR");
    space.clear_cache();
    write(&space, "int more() { return 1; }\n");
    space.build(ONE);
    let here = step_records(&space.cache());
    away.retain(|name, _| here.contains_key(name));
    assert!(away.len() >= 5, "{:?}", away.keys());
    demand_equal_records(&away, &here);
}

#[test]
fn clang_leaves_too() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-clang", &casd.address());
    let named = "const char *name() { return __FILE__; }\nint line() { return __LINE__; }\n";
    let named = format!("{}{named}", crate::KERNEL);
    let line = format!("{ONE} -ccbin clang++-19 -std=c++20 -Xcompiler -Wall,-fPIC,-march=haswell");
    // Uploads the tools. (clang 19 refuses `native` on the newest processors.)
    space.build(&line).demand_no_fallback();
    space.write("case.cu", &named);
    let before = executed(&space);
    assert_eq!(space.agree(&line).outcome.stderr_text(), "");
    assert_eq!(executed(&space) - before, FRONT + 1);
    let mut away = step_records(&space.cache());
    space.unset_env("WARPCC_EXECUTOR");
    space.clear_cache();
    space.build(&line);
    let here = step_records(&space.cache());
    away.retain(|name, _| here.contains_key(name));
    assert!(away.len() >= 5, "{:?}", away.keys());
    demand_equal_records(&away, &here);
}
