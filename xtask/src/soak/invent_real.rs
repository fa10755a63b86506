//! What differs where the tools are the real ones: the sources are CUDA, and the variables those that nvcc and gcc read.

use super::history::Step;
use super::random::Random;

/// The lines of a tiny CUDA source or header.
pub fn lines(random: &mut Random, path: &str) -> Vec<String> {
    let number = random.below(5);
    let stem = path.rsplit('/').next().unwrap_or(path).replace('.', "_");
    if path.ends_with(".h") {
        let mut all = vec!["#pragma once".to_owned()];
        match random.below(5) {
            0 => all.push(format!("#define V_{stem} {number}")),
            1 => all.push(format!(
                "#if __CUDA_ARCH__ >= 800\n#define V_{stem} 7\n#else\n#define V_{stem} {number}\n#endif"
            )),
            2 => all.push(format!(
                "#if __has_include(\"c.h\")\n#define V_{stem} 8\n#else\n#define V_{stem} {number}\n#endif"
            )),
            3 => all.push(format!("#ifndef __CUDA_ARCH__\nstatic int host_{stem} = {number};\n#endif\n#define V_{stem} 1")),
            _ => all.push(format!("static __device__ int V_{stem} = {number};")),
        }
        return all;
    }
    if path.ends_with(".cpp") {
        return vec![
            format!("int f() {{ return {number}; }}"),
            "int main() { return f(); }".to_owned(),
        ];
    }
    let mut all = vec!["#include \"a.h\"".to_owned()];
    if random.chance(50) {
        all.push("#include <b.h>".to_owned());
    } else {
        all.push("#define V_b_h 3".to_owned());
    }
    all.push(format!(
        "__global__ void kernel_{stem}(int *p) {{ *p = V_a_h + V_b_h + {number}; }}"
    ));
    match random.below(6) {
        0 => all.push("const char *file() { return __FILE__; }".to_owned()),
        1 => all.push("static int unused = 1u << 40;".to_owned()),
        2 => all.push("#warning \"said aloud\"".to_owned()),
        _ => {}
    }
    all
}

/// A variable that a real tool reads.
pub fn variables(random: &mut Random) -> Vec<Step> {
    vec![match random.below(10) {
        0 => Step::new(&["set", "OCG_FLAGS", random.one(&["-O0", "-O1", ""])]),
        1 => Step::new(&["set", "NVVM_FLAGS", random.one(&["-opt=0", ""])]),
        2 => Step::new(&["set", "LPATH", random.one(&["lib", "{root}/w/lib"])]),
        3 => Step::new(&["set", "CPATH", random.one(&["inc1", "inc2", "{shm}/inc"])]),
        4 => Step::new(&[
            "set",
            "NVCC_APPEND_FLAGS",
            random.one(&["-lineinfo", "-g", "-DAPPENDED=1"]),
        ]),
        5 => Step::new(&["set", "PTXAS_FLAGS", random.one(&["-O1", ""])]),
        6 => Step::new(&["set", "GNUTARGET", random.one(&["elf64-x86-64", "default"])]),
        7 => Step::new(&[
            "set",
            "compiler-bindir",
            random.one(&["gcc", "/usr/bin/g++"]),
        ]),
        8 => Step::new(&["set", "GCC_EXTRA_DIAGNOSTIC_OUTPUT", "fixits-v1"]),
        _ => Step::new(&[
            "unset",
            random.one(&["OCG_FLAGS", "CPATH", "NVCC_APPEND_FLAGS", "LPATH"]),
        ]),
    }]
}
