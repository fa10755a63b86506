//! Tests the command lines of programs that call nvcc by themselves, each from two folders of random names: the bytes are
//! nvcc's, and the second folder has a hit. docs/projects.md says which program gives which line.

use crate::space::{Build, Exactness, Program, TestSpace};

/// The two folders of a call. One of them is much longer.
const FOLDERS: [&str; 2] = [
    "cache/jit/5f0c2b9a",
    "cache/jit/a-much-longer-name-7be2c41d",
];

/// What a program compiles.
const SOURCE: &str = "#include \"part.cuh\"\n\
    template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by + PART; }\n\
    template __global__ void scale<float>(float *, float);\n\
    void launch(float *x) { scale<float><<<1, 32>>>(x, 2.0f); }\n";

/// The start of a program, for callers that link in the same call.
const MAIN: &str = "int main() { launch(nullptr); return 0; }\n";

/// How a program calls nvcc.
struct Call {
    /// The folder in which it does; `@` stands for the folder of the build.
    from: &'static str,
    /// Its words.
    line: &'static str,
    /// The source, below the folder of the build.
    source: &'static str,
}

fn lay_out(name: &str, call: &Call) -> TestSpace {
    let space = TestSpace::new(&format!("callers-{name}"));
    space.write("include/part.cuh", "#define PART 1.0f\n");
    for folder in FOLDERS {
        space.write(
            &format!("{folder}/{}", call.source),
            &format!("{SOURCE}{MAIN}"),
        );
        space.write(&format!("{folder}/out/.keep"), "");
    }
    space
}

fn in_folder(space: &mut TestSpace, call: &Call, folder: &str) -> String {
    space.stand_in = call.from.replace('@', folder).into();
    call.line.replace('@', folder)
}

/// Compiles in the first folder, and compares the second with nvcc.
fn second_folder(name: &str, call: &Call) -> Build {
    let mut space = lay_out(name, call);
    let line = in_folder(&mut space, call, FOLDERS[0]);
    space.build(&line).demand_no_fallback();
    let line = in_folder(&mut space, call, FOLDERS[1]);
    // Host debug information names the folder of intermediate files, which is another one in each run of nvcc.
    let exactness = match line.contains("-g1") {
        true => Exactness::ButKeepFolder,
        false => Exactness::Bytes,
    };
    let build = space.agree_as(&Program::Launcher, &line, exactness);
    build.demand_no_fallback();
    build
}

/// A test for each caller whose second folder is answered without nvcc.
macro_rules! hits {
    ($($name:ident: from $from:expr, $source:expr, $line:expr;)*) => {
        mod the_second_folder_hits {
            $(
                #[test]
                fn $name() {
                    let call = super::Call { from: $from, line: $line, source: $source };
                    super::second_folder(stringify!($name), &call).demand_direct_hit();
                }
            )*
        }
    };
}

hits! {
    deep_gemm: from "cache/jit", "kernel.cu",
        "{work}/@/kernel.cu -cubin -o {work}/@/kernel.cubin -std=c++20 --diag-suppress=39,161,174,177,186,940 \
         --ptxas-options=--register-usage-level=10 -I{work}/include --gpu-architecture=sm_90a \
         --compiler-options=-fPIC,-O3,-fconcepts,-Wno-deprecated-declarations,-Wno-abi -O3 \
         --expt-relaxed-constexpr --expt-extended-lambda";
    flash_infer: from "@", "csrc/kernel.cu",
        "--generate-dependencies-with-compile -MF {work}/@/csrc_kernel.cuda.o.d -DPy_LIMITED_API=0x03090000 \
         -D_GLIBCXX_USE_CXX11_ABI=1 -I{work}/include -isystem {toolkit}/include --compiler-options=-fPIC \
         --expt-relaxed-constexpr -static-global-template-stub=false -gencode=arch=compute_90a,code=sm_90a \
         -DFLASHINFER_ENABLE_F16 -std=c++17 --threads=1 -use_fast_math -c {work}/@/csrc/kernel.cu \
         -o {work}/@/csrc_kernel.cuda.o";
    torch_load_inline: from "@", "cuda.cu",
        "-MD -MF cuda.cuda.o.d -DTORCH_EXTENSION_NAME=inl -DTORCH_API_INCLUDE_EXTENSION_H -isystem {work}/include \
         -isystem {toolkit}/include -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ \
         -D__CUDA_NO_BFLOAT16_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__ --expt-relaxed-constexpr \
         -gencode=arch=compute_90,code=sm_90 --compiler-options '-fPIC' -std=c++20 -c {work}/@/cuda.cu -o cuda.cuda.o";
    cupy: from "@", "7c1d_2.cu",
        "-gencode=arch=compute_90,code=sm_90 --cubin -ftz=true -I{work}/include {work}/@/7c1d_2.cu";
    kokkos_nvcc_wrapper: from "@", "kernel.cpp",
        "--expt-extended-lambda -ccbin g++ -arch=sm_90 -I{work}/include -std=c++17 -O3 -Xcompiler -fPIC,-Wall \
         -x cu kernel.cpp -c -o out/kernel.o";
    candle: from "@", "src/kernel.cu",
        "--gpu-architecture=sm_90 --ptx --default-stream per-thread --output-directory {work}/@/out \
         -I{work}/include --expt-relaxed-constexpr -std=c++17 -O3 src/kernel.cu";
    rules_cuda_opt: from "@", "pkg/kernel.cu",
        "-x cu -gencode arch=compute_90,code=sm_90 -Xcompiler -fPIC -ccbin /usr/bin/gcc -I . -I out \
         -isystem {work}/include -Xcompiler -g0 -O2 -DNDEBUG -Xcompiler -ffunction-sections \
         -Xcompiler -fdata-sections -c pkg/kernel.cu -o out/kernel.pic.o";
}

/// The call's folder is inside a repository, and has the name of another folder there: a path to that other folder does not
/// lead into this one.
#[test]
fn the_second_folder_hits_whatever_the_folder_above_is_called() {
    for (number, from) in ["x/tmp/cache/tmp", "x/include"].iter().enumerate() {
        let mut space = TestSpace::new(&format!("callers-same-name-{number}"));
        space.write(".git/HEAD", "");
        space.write("x/tmp/include/part.cuh", "#define PART 1.0f\n");
        for folder in ["5f0c2b9a", "7be2c41d"] {
            space.write(
                &format!("{from}/{folder}/kernel.cu"),
                &format!("{SOURCE}{MAIN}"),
            );
        }
        space.stand_in = from.into();
        let line = |folder: &str| {
            let at = format!("{{work}}/{from}/{folder}");
            format!(
                "{at}/kernel.cu -cubin -o {at}/kernel.cubin -I{{work}}/x/tmp/include -arch=sm_90"
            )
        };
        space.build(&line("5f0c2b9a")).demand_no_fallback();
        space.agree(&line("7be2c41d")).demand_direct_hit();
    }
}

/// Host debug information holds the folder, relocatable device code the module id, which nvcc makes of the path. A program is
/// linked anew. nvcc makes other bytes there, or may; the device code is the same, and ptxas does not run.
const TELLING: [(&str, &str, &str); 4] = [
    (
        "rules-cuda-fastbuild",
        "kernel.cu",
        "-x cu -gencode arch=compute_90,code=sm_90 -Xcompiler -fPIC -ccbin /usr/bin/gcc -I . \
         -isystem {work}/include -Xcompiler -g1 -c kernel.cu -o out/kernel.pic.o",
    ),
    (
        "llm-c",
        "train.cu",
        "-O3 -t=0 --use_fast_math -std=c++17 --generate-code arch=compute_90,code=[compute_90,sm_90] \
         -I{work}/include -Xcompiler -fopenmp -DENABLE_BF16 train.cu -o out/train",
    ),
    (
        "cc-rs",
        "cuda/kernel.cu",
        "-ccbin=c++ -O3 -Xcompiler -ffunction-sections -Xcompiler -fdata-sections -Xcompiler -fPIC -m64 \
         -I {work}/include -Xcompiler -Wall -Xcompiler -Wextra -diag-suppress=20012 -arch=sm_90 \
         -o out/3f9e-kernel.o -c --device-c cuda/kernel.cu",
    ),
    (
        "nccl",
        "src/kernel.cu",
        "-ccbin g++ -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -std=c++17 \
         --expt-extended-lambda -Xptxas -maxrregcount=96 -Xfatbin -compress-all -O3 -I{work}/include \
         -dc src/kernel.cu -o out/kernel.o",
    ),
];

#[test]
fn what_may_hold_its_folder_is_made_anew_and_ptxas_hits() {
    for (name, source, line) in TELLING {
        let from = "@";
        let build = second_folder(name, &Call { from, line, source });
        build.demand_no_direct_hit();
        build.demand_hits_of(&["ptxas"]);
    }
}

#[test]
fn with_a_base_dir_relocatable_objects_hit_too() {
    for (name, source, line) in &TELLING[2..] {
        let from = "@";
        let call = Call { from, line, source };
        let mut space = lay_out(&format!("{name}-base"), &call);
        let mut objects = Vec::new();
        for (folder, hits) in FOLDERS.into_iter().zip([0, 1]) {
            space.set_env("WARPCC_BASE_DIR", &format!("{{work}}/{folder}"));
            let line = in_folder(&mut space, &call, folder);
            let build = space.build(&line);
            build.demand_no_fallback();
            assert_eq!(build.stats.count("direct_hits"), hits, "{name}");
            let object = line
                .split(" -o ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next());
            objects.push(space.read(&format!("{folder}/{}", object.expect("an output"))));
        }
        assert!(objects[0] == objects[1], "{name}");
    }
}
