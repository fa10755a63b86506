//! The driver's errors, and what to do about them.

/// The driver's error, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({number}){}", format_advice(.advice))]
pub struct DriverError {
    /// The call that failed.
    pub call: String,
    /// The number in `cuda.h`.
    pub number: u32,
    /// The name in `cuda.h`.
    pub name: String,
    /// How to fix it; empty if unknown.
    pub advice: &'static str,
}

fn format_advice(advice: &str) -> String {
    match advice {
        "" => String::new(),
        advice => format!("; {advice}"),
    }
}

impl DriverError {
    /// The error, with advice on how to fix it.
    pub(crate) fn new(call: String, number: u32, name: String) -> Self {
        Self {
            call,
            number,
            name,
            advice: advice(number),
        }
    }
}

/// How to fix an error of the driver, by its number in `cuda.h`.
fn advice(number: u32) -> &'static str {
    match number {
        100 => "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES",
        200 => {
            "the driver does not recognise the image: a damaged file, or PTX without a zero at its end"
        }
        209 => {
            "the image is for another GPU: compile for this one (Compiler::target_for), or give PTX of an architecture \
             that is not newer"
        }
        218 => {
            "the driver's compiler refuses the PTX: `warpcc jit prove` or KernelCache::load_ptx says why, with ptxas' \
             own words"
        }
        221 => {
            "the driver has no PTX compiler (libnvidia-ptxjitcompiler): give machine code, or repair the driver"
        }
        222 => {
            "the PTX is of a toolkit newer than the driver: give machine code (Target::Cubin, or \
             KernelCache::load_ptx), use an older NVRTC (WARPCC_NVRTC), or update the driver"
        }
        223 => {
            "compiling PTX is switched off: unset CUDA_DISABLE_PTX_JIT, or give machine code for this GPU (Target::Cubin)"
        }
        500 => {
            "the module has no function of this name: give the lowered name (Compiled::lowered_name)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_driver_say_what_to_do() {
        for (number, word) in [
            (209, "another GPU"),
            (218, "load_ptx"),
            (222, "update the driver"),
            (223, "CUDA_DISABLE_PTX_JIT"),
        ] {
            let error = DriverError::new("loading k".to_owned(), number, "CUDA_ERROR".to_owned());
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(advice(1), "");
    }
}
