//! Explains the macros that nvcc defines on the command line of the host compiler.

use warpcc_plan::Tool;

/// The purpose of `definition`, as after `-D`, in a command of `tool`.
pub fn meaning(tool: Tool, definition: &str) -> String {
    let (name, value) = definition.split_once('=').unwrap_or((definition, ""));
    let means = match name {
        "__CUDA_ARCH__" if tool != Tool::Preprocess => {
            "the architecture whose stub is included; the source itself has been preprocessed, and \
             this macro no longer changes it"
        }
        "__CUDA_ARCH__" => {
            return format!(
                "this text is for a GPU of compute capability {}; not defined in the host's pass, \
                 which is how a source tells the two apart",
                capability(value)
            );
        }
        "__CUDA_ARCH_LIST__" => {
            return format!(
                "all architectures of this compilation, defined in the host's pass too: {}",
                value
                    .split(',')
                    .map(capability)
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        "__CUDA_ARCH_SPECIFIC__" => "code for this very architecture only (`sm_90a`)",
        "__CUDA_ARCH_FAMILY_SPECIFIC__" => "code for a family of architectures (`sm_100f`)",
        "__CUDACC__" => "the source is CUDA: headers turn on their CUDA parts",
        "__NVCC__" => "nvcc is the driver, not another CUDA compiler",
        "__CUDACC_RDC__" => "relocatable device code: `-rdc=true`, `-dc` and their kin",
        "__CUDACC_VER_MAJOR__" => "the toolkit's version, first number",
        "__CUDACC_VER_MINOR__" => "the toolkit's version, second number",
        "__CUDACC_VER_BUILD__" => "the toolkit's version, third number",
        "__CUDA_API_VER_MAJOR__" => "the runtime API's version, first number",
        "__CUDA_API_VER_MINOR__" => "the runtime API's version, second number",
        "__NVCC_DIAG_PRAGMA_SUPPORT__" => {
            "`#pragma nv_diag_suppress` and similar pragmas are understood"
        }
        "__CUDACC_DEVICE_ATOMIC_BUILTINS__" => "atomics are built into the device compiler",
        "__CUDACC_RELAXED_CONSTEXPR__" => {
            "host code may call constexpr device functions and the other way round \
             (`--expt-relaxed-constexpr`)"
        }
        "__CUDACC_EXTENDED_LAMBDA__" => {
            "`__device__` lambdas in host functions (`--extended-lambda`)"
        }
        "__CUDACC_DEBUG__" => "device code is compiled for debugging (`-G`)",
        "__CUDA_FTZ" => "denormal floats count as zero in device code, or not",
        "__CUDA_PREC_DIV" => "whether device code divides floats exactly",
        "__CUDA_PREC_SQRT" => "whether device code takes square roots exactly",
        "__CUDA_USE_FAST_MATH__" => {
            "`-use_fast_math`: sinf and similar functions become the fast ones"
        }
        "CUDA_DOUBLE_MATH_FUNCTIONS" => "the GPU computes with doubles, as all current GPUs do",
        "FATBINFILE" => {
            "the C form of the device link's fat binary, which the stub includes by this macro"
        }
        "REGISTERLINKBINARYFILE" => {
            "the registration file of the device link, which the stub includes by this macro"
        }
        "__NV_EXTRA_INITIALIZATION" => "code to run before the linked binary is registered: none",
        "__NV_EXTRA_FINALIZATION" => "code to run after the linked binary is registered: none",
        "__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__" => {
            "allows the inclusion of headers that are not for users"
        }
        "__NV_MODULE_ID" => "the module id, for names that must differ between objects",
        _ if name.starts_with("__CUDA_ARCH_FEAT_SM") => {
            "instructions that only this very architecture has may be used"
        }
        _ if name.starts_with("__CUDA") || name.starts_with("__NV") => "a macro of nvcc's own",
        _ => "a macro from your command line",
    };
    means.to_owned()
}

/// `9.0` from `900`, `12.1` from `1210`.
fn capability(value: &str) -> String {
    match value.parse::<u32>() {
        Ok(number) => format!("{}.{}", number / 100, number / 10 % 10),
        Err(_) => value.to_owned(),
    }
}
