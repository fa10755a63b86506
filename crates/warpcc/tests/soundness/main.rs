//! Change one thing after a warm build and demand what a fresh nvcc gives, byte for
//! byte. Where the change cannot matter the result must come from the cache; where it
//! must matter a direct hit is a bug even if the bytes happen to be equal.

#[path = "../space/mod.rs"]
mod space;

mod archives;
mod asked;
mod circumstances;
mod clang;
mod dates;
mod disguised;
mod early_cutoff;
mod early_stub;
mod elsewhere;
mod environment;
mod equal_files;
mod fatbinary;
mod file_systems;
mod hits;
mod inherited;
mod libraries;
mod lines;
mod logs_of_wrappers;
mod observed;
mod options;
mod outputs;
mod precompiled;
mod reads;
mod refused;
mod relative_names;
mod search;
mod shared_files;
mod side_files;
mod strangers;
mod toolchain;
mod unusual;
mod variables;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use space::TestSpace;

/// Two real architectures, the least that has device passes to tell apart.
const TWO: &str = "-c case.cu -o out.o -gencode arch=compute_80,code=sm_80 \
                   -gencode arch=compute_90,code=sm_90";
/// One architecture, for changes that no architecture sees alone.
const ONE: &str = "-c case.cu -o out.o -arch=sm_90";

/// A kernel that stores whatever the test's header or options call VALUE.
const KERNEL: &str = "__global__ void k(int *x) { *x = VALUE; }\n\
                      int host() { return VALUE; }\n";

/// The host function of a wrapper's tests returns what the wrapper defines.
const WRAPPED: &str = "__global__ void k(int *x) { *x = 1; }\n\
                       #ifndef VALUE\n#define VALUE 0\n#endif\nint host() { return VALUE; }\n";
/// A call with the wrappers of [`wrapped`].
const BY_WRAPPER: &str = "-c case.cu -o out.o -arch=sm_90 -ccbin {work}/bin";

/// A space with one source that needs no options.
fn simple(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", &format!("#define VALUE 1\n{KERNEL}"));
    space
}

/// Build until the second run is a direct hit, so that what follows tests something.
#[track_caller]
fn warm(space: &TestSpace, line: &str) {
    let built = space.build(line);
    built.demand_no_direct_hit().demand_no_fallback();
    space.again(line, &built).demand_direct_hit();
}

/// The output must be nvcc's and must not be the old one from the cache.
#[track_caller]
fn rebuilt(space: &TestSpace, line: &str) {
    let built = space.agree(line);
    built.demand_no_direct_hit();
    // And the new state is a result like any other.
    space.again(line, &built).demand_direct_hit();
}

/// A space with this source, whose host compilers are this script.
fn wrapped(name: &str, source: &str, script: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", source);
    for compiler in ["gcc", "g++"] {
        space.script(&format!("bin/{compiler}"), script);
    }
    space
}

fn set_mode(space: &TestSpace, name: &str, mode: u32) {
    let path = space.work().join(name);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}
