//! Options of the host compiler, in its four jobs: preprocess, compile, link, and `ar`.

use warpcc_plan::Tool;

use super::row::Takes::{Either, Next, Nothing, Rest};
use super::row::{Row, row};

/// Whether the tool is the host compiler.
pub fn is_host(tool: Tool) -> bool {
    matches!(
        tool,
        Tool::Preprocess | Tool::HostCompile | Tool::HostAssembly | Tool::Assemble | Tool::HostLink
    )
}

pub const PREPROCESS: &[Row] = &[
    row(
        "-E",
        Nothing,
        "preprocess only: headers in, macros out, and stop",
    ),
    row("-o", Next, "write the preprocessed text there"),
    row("-x", Next, "the input is C++, whatever its name says"),
];

pub const COMPILE: &[Row] = &[
    row("-c", Nothing, "compile and assemble, and do not link"),
    row("-S", Nothing, "compile to assembly, and stop"),
    row("-o", Next, "write the object there"),
    row("-x", Next, "the input is C++, whatever its name says"),
];

pub const LINK: &[Row] = &[
    row("-o", Next, "write the program or library there"),
    row(
        "-Wl,--start-group",
        Nothing,
        "search the following libraries again until nothing new is found",
    ),
    row("-Wl,--end-group", Nothing, "the end of that group"),
    row(
        "-lcudadevrt",
        Nothing,
        "the device runtime: what device code calls to launch kernels itself",
    ),
    row(
        "-lcudart_static",
        Nothing,
        "the CUDA runtime, linked in: what the host code calls to register and launch",
    ),
    row("-lcudart", Nothing, "the CUDA runtime as a shared library"),
    row(
        "-lrt",
        Nothing,
        "the system's clocks and shared memory, which the CUDA runtime uses",
    ),
    row(
        "-lpthread",
        Nothing,
        "the system's threads, which the CUDA runtime uses",
    ),
    row(
        "-ldl",
        Nothing,
        "loads libcuda.so at run time: a program starts without a driver, too",
    ),
    row("-L", Either, "search this folder for libraries"),
    row("-l", Either, "link with this library"),
    row("-shared", Nothing, "make a shared library, not a program"),
    row(
        "-Xlinker",
        Next,
        "hand the next word to the linker as it is",
    ),
    row("-Wl,", Rest, "hand these words to the linker as they are"),
    row(
        "-rpath",
        Next,
        "where the program looks for shared libraries",
    ),
    row("-static", Nothing, "link with static libraries only"),
    row("-no-pie", Nothing, "a program with fixed addresses"),
    row("-pie", Nothing, "a program that can be loaded anywhere"),
];

pub const HOST: &[Row] = &[
    row("-I", Either, "look for included files here"),
    row(
        "-isystem",
        Next,
        "look for included files here after the others, and keep their warnings quiet",
    ),
    row("-iquote", Next, "look for files included with quotes here"),
    row(
        "-include",
        Next,
        "include this header before anything else: it is why a .cu needs no #include for CUDA",
    ),
    row("-U", Either, "take back a macro"),
    row(
        "-m64",
        Nothing,
        "64-bit code: pointers must have the same size on both sides",
    ),
    row("-m32", Nothing, "32-bit code"),
    row("-std=", Rest, "the C++ standard, from your command line"),
    row("-O", Rest, "how much to optimise the host code"),
    row("-g", Rest, "debug information for the host code"),
    row("-pg", Nothing, "calls that a profiler counts"),
    row(
        "-fPIC",
        Nothing,
        "code that can be loaded at any address, as shared libraries need",
    ),
    row(
        "-f",
        Rest,
        "a code generation option of the host compiler, from your command line",
    ),
    row(
        "-m",
        Rest,
        "a machine option of the host compiler, from your command line",
    ),
    row(
        "-Wno-psabi",
        Nothing,
        "no notes about argument passing that changed between releases of gcc",
    ),
    row(
        "-W",
        Rest,
        "a warning option of the host compiler, from your command line",
    ),
    row("-w", Nothing, "no warnings of the host compiler"),
    row("-pthread", Nothing, "code for several threads"),
    row(
        "-pipe",
        Nothing,
        "pipes between the compiler's parts, not files",
    ),
    row(
        "-nostdinc",
        Rest,
        "do not look in the standard include folders",
    ),
];

pub const ARCHIVE: &[Row] = &[];
