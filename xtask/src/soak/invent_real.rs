//! Invents the parts of a history that differ with real tools: the sources are CUDA, the variables are those that nvcc and
//! gcc read, and most calls are cheap ones. A call that makes an object costs 2.5 times as much as one that makes PTX.

use super::history::Step;
use super::queried_lines;
use super::random::Random;

/// Puts the macro of a host compiler's wrapper into the device code.
const SHOWS_WRAPPED: &str = "#define TEXT(x) #x\n#define TEXT_OF(x) TEXT(x)\n#ifdef WRAPPED\n\
                             __device__ char wrapped[] = TEXT_OF(WRAPPED);\n#endif";

/// The lines of a tiny CUDA source or header.
pub fn lines(random: &mut Random, path: &str) -> Vec<String> {
    let number = random.below(5);
    let stem = path.rsplit('/').next().unwrap_or(path).replace('.', "_");
    if path.ends_with(".h") {
        return header(random, &stem, number);
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
    let body = match random.below(6) {
        0 => "__shared__ int s[32]; s[threadIdx.x] = *p; __syncthreads(); *p = s[0] +",
        1 => "for (int i = 0; i < *p; i++) p[i] +=",
        2 => "atomicAdd(p, 1); p[1] =",
        _ => "*p =",
    };
    all.push(format!(
        "__global__ void kernel_{stem}(int *p) {{ {body} V_a_h + V_b_h + {number}; }}"
    ));
    if random.chance(35) {
        all.push(SHOWS_WRAPPED.to_owned());
    }
    match random.below(16) {
        0 => all.push("const char *file() { return __FILE__; }".to_owned()),
        1 => all.push("static int unused = 1u << 40;".to_owned()),
        2 => all.push("#warning \"said aloud\"".to_owned()),
        3 => all.push("__device__ const char *where = __FILE__;".to_owned()),
        4 => all.push("#pragma message(\"arch\")".to_owned()),
        5 => all.push("asm(\".incbin \\\"data/d1\\\"\");".to_owned()),
        6 => all.push("#ifdef OPT\n__device__ int opt = OPT;\n#endif".to_owned()),
        7 => all.push("__device__ int line = __LINE__ + __COUNTER__;".to_owned()),
        8 => all.push("extern \"C\" __device__ int other(int x) { return x + 1; }".to_owned()),
        9 => all.push(
            "template <int N> __device__ int t() { return N; }\n__device__ int u = sizeof(t<3>());"
                .to_owned(),
        ),
        10 if random.chance(30) => all.push("not C++".to_owned()),
        11..=12 => {
            let header = random.one(&["a_h", "b_h"]);
            all.push(queried_lines::usage(random, header));
        }
        _ => {}
    }
    all
}

fn header(random: &mut Random, stem: &str, number: usize) -> Vec<String> {
    let mut all = match random.below(4) {
        0 => Vec::new(),
        _ => vec!["#pragma once".to_owned()],
    };
    all.push(match random.below(6) {
        0 => format!("#define V_{stem} {number}"),
        1 => format!(
            "#if __CUDA_ARCH__ >= 800\n#define V_{stem} 7\n#else\n#define V_{stem} {number}\n#endif"
        ),
        2 => format!(
            "#if __has_include(\"c.h\")\n#define V_{stem} 8\n#else\n#define V_{stem} {number}\n#endif"
        ),
        3 => format!(
            "#ifndef __CUDA_ARCH__\nstatic int host_{stem} = {number};\n#endif\n#define V_{stem} 1"
        ),
        4 => format!("#ifdef APPENDED\n#define V_{stem} 9\n#else\n#define V_{stem} {number}\n#endif"),
        _ => format!("static __device__ int V_{stem} = {number};"),
    });
    if random.chance(25) {
        all.extend(queried_lines::header(random, stem));
    }
    all
}

/// Words for one call; `-o` names a file in `out`.
pub fn call(random: &mut Random) -> Vec<String> {
    let source = random.one(&["src/s.cu", "src/s.cu", "t.cu"]);
    let mode = random.below(100);
    let line = match mode {
        0..=27 => format!("-ptx {source} -o out/s.ptx"),
        28..=47 => format!("-cubin {source} -o out/s.cubin"),
        48..=57 => format!("-fatbin {source} -o out/s.fatbin"),
        58..=66 => format!("-c {source} -o out/s.o"),
        67..=71 => format!("-dc {source} -o out/s.o"),
        72..=73 => "-dlink out/s.o -o out/l.o".to_owned(),
        74..=82 => "-c f.cpp -o out/f.o".to_owned(),
        83..=84 => "f.cpp -o out/app".to_owned(),
        85 => "src/s.cu f.cpp -o out/app".to_owned(),
        86 => "-lib src/s.cu -o out/x.a".to_owned(),
        87 => "-ptx src/s.cu t.cu -odir out".to_owned(),
        88..=89 => format!("-cubin {source} -o out/s.cubin -keep -keep-dir out"),
        90 => format!("-ptx {source}"),
        91..=92 => format!("-E {source} -o out/s.ii"),
        93 => format!("-M {source} -o out/s.d"),
        94 => format!("-dc -dlto {source} -arch=sm_80 -o out/s.o"),
        95 => format!("-optix-ir {source} -o out/s.optixir"),
        96 => "-x cu f.cpp -ptx -o out/f.ptx".to_owned(),
        97 => format!("-cuda {source} -o out/s.cu.cpp.ii"),
        98 => "-c f.cpp t.cu -odir out".to_owned(),
        _ => format!("-ptx {source} -o out/s.ptx -keep"),
    };
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    if !words.iter().any(|word| word == "-dlto") {
        architecture(random, mode < 58, &mut words);
    }
    options(random, &mut words);
    words
}

fn architecture(random: &mut Random, is_device: bool, words: &mut Vec<String>) {
    let mut push = |list: &str| words.extend(list.split(' ').map(str::to_owned));
    match random.below(20) {
        0..=4 => push("-arch=sm_80"),
        5..=6 => push("-arch=sm_90"),
        7 => push("-arch=compute_80"),
        8 if is_device => push("-gencode arch=compute_80,code=compute_80"),
        9 if !is_device => {
            push("-gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80");
        }
        10 => push("-gencode arch=compute_86,code=sm_86"),
        11 => push("-gpu-architecture compute_75 -gpu-code sm_75"),
        _ => {}
    }
}

fn options(random: &mut Random, words: &mut Vec<String>) {
    for (chance, list) in [
        (14, "-MD -MF out/s.d"),
        (3, "-MMD"),
        (3, "-MD -MP -MT target -MF out/s.d"),
        (6, "-lineinfo"),
        (3, "-g"),
        (2, "-G"),
        (6, "-optf options"),
        (4, "-DOPT=7"),
        (3, "-Xptxas -O1"),
        (4, "--use_fast_math"),
        (3, "-std=c++20"),
        (3, "-rdc=true"),
        (3, "-maxrregcount=32"),
        (3, "-Xcompiler -O2,-fPIC"),
        (2, "-include b.h"),
        (3, "-t 2"),
        (2, "-Werror all-warnings"),
        (2, "-w"),
        (3, "-O0"),
        (2, "-ccbin g++"),
        (2, "-ccbin /usr/bin"),
        (10, "-ccbin {root}/host/mpicxx"),
    ] {
        let clashes = list.starts_with("-M") && words.iter().any(|word| word.starts_with("-M"));
        if random.chance(chance) && !clashes {
            words.extend(list.split(' ').map(str::to_owned));
        }
    }
}

/// A variable that a real tool reads.
pub fn variables(random: &mut Random) -> Vec<Step> {
    vec![match random.below(13) {
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
        9 => Step::new(&[
            "set",
            "NVCC_PREPEND_FLAGS",
            random.one(&["-DAPPENDED=2", "-lineinfo"]),
        ]),
        10 => Step::new(&[
            "set",
            "NVCC_CCBIN",
            random.one(&["g++", "/usr/bin/gcc", "/usr/bin"]),
        ]),
        11 => Step::new(&["set", "CPLUS_INCLUDE_PATH", random.one(&["inc1", "inc2"])]),
        _ => Step::new(&[
            "unset",
            random.one(&["OCG_FLAGS", "CPATH", "NVCC_APPEND_FLAGS", "LPATH"]),
        ]),
    }]
}
