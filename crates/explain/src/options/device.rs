//! Options of the programs that know GPUs only: ptxas, fatbinary and nvlink.

use super::row::Takes::{Either, Next, Nothing, Rest};
use super::row::{Row, row};

pub const PTXAS: &[Row] = &[
    row(
        "-arch=",
        Rest,
        "the real architecture to write machine code for",
    ),
    row(
        "-arch",
        Next,
        "the real architecture to write machine code for",
    ),
    row("-m64", Nothing, "64-bit addresses"),
    row(
        "-o",
        Next,
        "write the machine code there; without it the PTX is only checked",
    ),
    row(
        "--compile-only",
        Nothing,
        "write relocatable code, to be linked by nvlink",
    ),
    row("-g", Nothing, "debug information"),
    row(
        "--dont-merge-basicblocks",
        Nothing,
        "leave blocks of code apart, for debugging",
    ),
    row(
        "--return-at-end",
        Nothing,
        "leave a return at the end of each function, for debugging",
    ),
    row("--generate-line-info", Nothing, "keep the line table"),
    row("-lineinfo", Nothing, "keep the line table"),
    row("-split-compile", Rest, "optimise with this many threads"),
    row(
        "-v",
        Nothing,
        "say how many registers and how much memory each kernel takes",
    ),
    row("-O", Rest, "how much to optimise"),
    row(
        "-maxrregcount",
        Either,
        "at most this many registers per thread",
    ),
    row(
        "--maxrregcount",
        Either,
        "at most this many registers per thread",
    ),
    row(
        "-warn-spills",
        Nothing,
        "warn when registers are spilled to memory",
    ),
    row(
        "--warn-on-spills",
        Nothing,
        "warn when registers are spilled to memory",
    ),
    row("-Werror", Rest, "warnings are errors"),
];

pub const FATBINARY: &[Row] = &[
    row("--create=", Rest, "write the fat binary there"),
    row(
        "--embedded-fatbin=",
        Rest,
        "write it there once more, as a C file for the host compiler",
    ),
    row(
        "--image3=",
        Rest,
        "put this image in: its kind (elf is machine code, ptx, nvvm), its architecture, its file",
    ),
    row(
        "--image=",
        Rest,
        "put this image in: its architecture, its file",
    ),
    row("-64", Nothing, "for a 64-bit host"),
    row(
        "--cmdline=",
        Rest,
        "ptxas' options, remembered for compiling again from PTX",
    ),
    row(
        "--cicc-cmdline=",
        Rest,
        "cicc's options, kept for compiling again from intermediate code",
    ),
    row(
        "--device-c",
        Nothing,
        "the images are relocatable: a later device link reads them",
    ),
    row("-link", Nothing, "the images come from a device link"),
    row("-compress-all", Nothing, "compress every image"),
    row("--compress-all", Nothing, "compress every image"),
    row(
        "--compress-mode=",
        Rest,
        "what compression is to be good at",
    ),
    row("-compress=", Rest, "compress images, or not"),
    row("--no-compress", Nothing, "do not compress images"),
    row(
        "--ident=",
        Rest,
        "a name that is put into the images' headers",
    ),
    row("-g", Nothing, "the images have debug information"),
    row("--concat", Rest, "compress images of a kind together"),
];

pub const NVLINK: &[Row] = &[
    row("-m64", Nothing, "64-bit addresses"),
    row(
        "--arch=",
        Rest,
        "the architecture to link for; one run of nvlink for each",
    ),
    row(
        "--register-link-binaries=",
        Rest,
        "write the names of the objects that were linked there, for their registration",
    ),
    row(
        "-cpu-arch=",
        Rest,
        "which processor the host objects are for",
    ),
    row(
        "-report-arch",
        Nothing,
        "put the architecture into messages",
    ),
    row("-o", Next, "write the linked machine code there"),
    row(
        "--host-ccbin",
        Next,
        "the host compiler, asked where its libraries are",
    ),
    row(
        "-L",
        Either,
        "search this folder for libraries with device code",
    ),
    row(
        "-lcudadevrt",
        Nothing,
        "the device runtime: what device code calls to launch kernels itself",
    ),
    row(
        "-l",
        Either,
        "link with this library, if it has device code",
    ),
    row(
        "-dlto",
        Nothing,
        "optimise across objects: the intermediate code of all of them is compiled here",
    ),
    row(
        "-nvvmpath=",
        Rest,
        "where the device compiler's library is, for link-time optimisation",
    ),
    row(
        "--shared",
        Nothing,
        "the host's link makes a shared library",
    ),
    row(
        "-v",
        Nothing,
        "say how many registers and how much memory each kernel takes",
    ),
    row(
        "-maxrregcount",
        Either,
        "at most this many registers per thread",
    ),
    row("-g", Nothing, "debug information"),
    row(
        "-Xptxas",
        Rest,
        "options for compiling what link-time optimisation made",
    ),
    row("--split-compile", Rest, "optimise with this many threads"),
    row("-split-compile", Rest, "optimise with this many threads"),
    row("-kernels-used", Rest, "keep only these kernels"),
    row("-variables-used", Rest, "keep only these variables"),
];
