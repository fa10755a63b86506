//! Steps of the relocatable mode on a cluster: what is made there is what is made here, byte for byte, and with the same
//! records. nvcc knows no such mode, so that a run here is what a run there is compared with.

use crate::{demand_equal_records, executed, space, step_records};
use warpcc_testkit::casd::Casd;

/// Code that holds names of files, by macros and in what cudafe++ says, and whose id comes from an external function.
const NAMED: &str = "#include <cassert>\n\
    __global__ void k(int *x) { int never = 1; assert(*x); }\n\
    const char *where() { return __FILE__; }\n";

/// Without an external function the front ends end their id in a process id.
const NAMELESS: &str = "static __device__ int x = 3;\n\
    static __global__ void k() { x = 4; }\n\
    static const void *const p = (const void *)k;\n";

#[test]
fn steps_below_roots_leave_too() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-roots", &casd.address());
    let root = space.work();
    space.set_env("WARPCC_BASE_DIR", &root.to_string_lossy());
    space.write("case.cu", NAMED);
    space.write("nameless.cu", NAMELESS);
    let lines = [
        ("-c case.cu -o out.o -arch=sm_80 -Xcompiler -O2", 5),
        // The directory that cicc packs is the one that it has here.
        ("-dlto -c case.cu -o lto.o -arch=sm_80", 4),
        // cudafe++ runs here, once more with an id that lasts.
        ("-c nameless.cu -o nameless.o -arch=sm_80", 4),
    ];
    let mut built = Vec::new();
    for (line, steps) in lines {
        let before = executed(&space);
        let there = space.build(line);
        there.demand_no_fallback();
        let away = executed(&space) - before;
        // On a slow machine a late one is done here as well, and may end first.
        assert!(away <= steps, "{away}: {line}: {:?}", there.stats);
        built.push(there);
    }
    assert!(executed(&space) > 4);
    let mut away = step_records(&space.cache());
    space.unset_env("WARPCC_EXECUTOR");
    space.clear_cache();
    for ((line, _), there) in lines.into_iter().zip(&built) {
        there.outputs.delete_from(&root);
        let here = space.build(line);
        here.demand_no_direct_hit();
        assert!(here.outputs.entries == there.outputs.entries, "{line}");
        assert_eq!(
            here.outcome.stderr_text(),
            there.outcome.stderr_text(),
            "{line}"
        );
    }
    assert!(built[0].outcome.stderr_text().contains("never"));
    // A stub that was guessed wrong may have a host compile of its own, or not, wherever that runs.
    let mut here = step_records(&space.cache());
    here.retain(|name, _| away.contains_key(name));
    away.retain(|name, _| here.contains_key(name));
    assert!(here.len() >= 12, "{:?}", here.keys());
    demand_equal_records(&away, &here);
}
