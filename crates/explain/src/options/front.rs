//! Options of the two programs with the EDG front end: cudafe++ and cicc.

use super::row::Takes::{Either, Next, Nothing, Rest};
use super::row::{Row, row};

pub const CUDAFE: &[Row] = &[
    row("--m64", Nothing, "sizes and alignments of a 64-bit host"),
    row("--m32", Nothing, "sizes and alignments of a 32-bit host"),
    row(
        "--parse_templates",
        Nothing,
        "parse templates where they are defined, as gcc does",
    ),
    row("--gen_c_file_name", Next, "write the host's C++ there"),
    row(
        "--stub_file_name",
        Next,
        "the stub that cicc is going to write; the host's C++ includes it by this name",
    ),
    row(
        "--gen_module_id_file",
        Nothing,
        "make up the module id and write it down",
    ),
    row(
        "--module_id_file_name",
        Next,
        "where the module id is written",
    ),
];

pub const CICC: &[Row] = &[
    row("-arch", Next, "the virtual architecture to write PTX for"),
    row("-m64", Nothing, "64-bit device pointers"),
    row("-o", Next, "write the PTX there"),
    row(
        "-olto",
        Next,
        "write intermediate code for link-time optimisation there",
    ),
    row(
        "-lto",
        Nothing,
        "stop at intermediate code for link-time optimisation, not at PTX",
    ),
    row(
        "--emit-optix-ir",
        Nothing,
        "write OptiX's intermediate code, not PTX",
    ),
    row(
        "--no-device-int128",
        Nothing,
        "no 128-bit integers in device code",
    ),
    row(
        "--no-version-ident",
        Nothing,
        "leave the compiler's version out of the intermediate code",
    ),
    row(
        "-ftz=",
        Rest,
        "1: denormal floats become zero; 0: they are kept",
    ),
    row(
        "-prec_div=",
        Rest,
        "1: float division is exact; 0: it is fast",
    ),
    row(
        "-prec_sqrt=",
        Rest,
        "1: float square roots are exact; 0: they are fast",
    ),
    row(
        "-fmad=",
        Rest,
        "1: a multiplication and an addition may become one instruction",
    ),
    row(
        "-unsafe-math",
        Rest,
        "mathematical functions may be less exact",
    ),
    row(
        "--use_fast_math",
        Nothing,
        "mathematical functions may be less exact",
    ),
    row(
        "--include_file_name",
        Next,
        "the C form of the fat binary; the stub includes it by this name",
    ),
    row(
        "-tused",
        Nothing,
        "in every call; probably: keep what is marked as used",
    ),
    row(
        "--gen_module_id_file",
        Nothing,
        "make up the module id and write it down",
    ),
    row(
        "--module_id_file_name",
        Next,
        "the module id that cudafe++ made up: both must use the same",
    ),
    row(
        "--gen_c_file_name",
        Next,
        "write what is left of the unit besides its device code there, as C",
    ),
    row(
        "--stub_file_name",
        Next,
        "write the stub there: what a launch calls, and what registers the kernels",
    ),
    row(
        "--gen_device_file_name",
        Next,
        "write the device code there, as plain C",
    ),
    row("-split-compile", Either, "optimise with this many threads"),
    row("-g", Nothing, "debug information for the device code"),
    row("-O", Rest, "how much to optimise the device code"),
    row(
        "-generate-line-info",
        Nothing,
        "remember which source line an instruction comes from",
    ),
    row("-maxreg", Rest, "at most this many registers per thread"),
];

pub const BOTH: &[Row] = &[
    row("--c++", Rest, "the C++ standard to understand"),
    row(
        "--gnu_version=",
        Rest,
        "behave as this version of gcc (120200 is 12.2.0), because gcc compiles the rest",
    ),
    row(
        "--static-host-stub",
        Nothing,
        "the host functions that stand for kernel templates are static: each object has its own",
    ),
    row(
        "--device-hidden-visibility",
        Nothing,
        "device symbols are not seen outside their object",
    ),
    row(
        "--display_error_number",
        Nothing,
        "print a number with each message; options use it to turn the message off",
    ),
    row(
        "--orig_src_file_name",
        Next,
        "the source as it was named, for messages and the module id",
    ),
    row(
        "--orig_src_path_name",
        Next,
        "the source with its whole path, for the module id",
    ),
    row(
        "--allow_managed",
        Nothing,
        "`__managed__` variables are allowed",
    ),
    row(
        "--device-c",
        Nothing,
        "relocatable device code: what is not defined here may be elsewhere",
    ),
    row(
        "--simt-only",
        Nothing,
        "only classic CUDA, where each thread has its own code; no tiles",
    ),
    row("--debug_mode", Nothing, "device code for debugging"),
    row(
        "--relaxed_constexpr",
        Nothing,
        "host code may call constexpr device functions and the other way round",
    ),
    row(
        "--extended-lambda",
        Nothing,
        "`__device__` lambdas in host functions",
    ),
    row(
        "--diag_suppress=",
        Rest,
        "do not show messages with these numbers",
    ),
    row(
        "--diag_error=",
        Rest,
        "messages with these numbers are errors",
    ),
    row(
        "--diag_warning=",
        Rest,
        "messages with these numbers are warnings",
    ),
    row(
        "--diag_default=",
        Rest,
        "messages with these numbers are what they usually are",
    ),
    row("--no_warnings", Nothing, "no warnings of the front end"),
    row(
        "--device-syntax-only",
        Nothing,
        "check the device code and write none",
    ),
    row(
        "-fast-math",
        Nothing,
        "mathematical functions may be less exact (`-use_fast_math`)",
    ),
    row(
        "--gen_div_approx_ftz",
        Nothing,
        "float division is approximate (`-use_fast_math`)",
    ),
];
