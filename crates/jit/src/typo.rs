//! Misspelt variables of the driver, which it ignores silently.

/// The variables that control run-time compilation; misspelt names are compared with these.
const OURS: [&str; 8] = [
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_PATH",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_FORCE_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_DISABLE_JIT",
    "CUDA_MODULE_LOADING",
];

/// Similar names that other programs read.
const OTHERS: [&str; 12] = [
    "CUDA_PATH",
    "CUDA_HOME",
    "CUDA_ROOT",
    "CUDA_VERSION",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_DATA_LOADING",
    "CUDA_BINARY_LOADER_THREAD_COUNT",
    "CUDA_CACHE_DIR",
    "CUDA_MODULE_PATH",
    "CUDA_BIN_PATH",
];

/// The most edits that a typing error makes, in a name without its underscores.
const SLIPS: usize = 2;

/// The variable that `name` was probably meant to be; `None` if `name` is one that is read, or nothing
/// like it.
pub fn meant(name: &str) -> Option<&'static str> {
    if OURS.contains(&name) {
        return None;
    }
    // A few projects have a folder of their own by this name, so only the driver's use is in doubt.
    if name == "CUDA_CACHE_DIR" {
        return Some("CUDA_CACHE_PATH");
    }
    if OTHERS.contains(&name) {
        return None;
    }
    let bare = |text: &str| text.to_ascii_uppercase().replace(['_', '-'], "");
    let given = bare(name);
    // Most often it is not a typing error, but another program's variable.
    if !(given.starts_with("CUD") || given.starts_with("NVCUDA") || given.starts_with("CDUA")) {
        return None;
    }
    let distance = |known: &&&'static str| strsim::damerau_levenshtein(&given, &bare(known));
    let nearest = OURS.iter().min_by_key(distance)?;
    (distance(&nearest) <= SLIPS).then_some(*nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_known_and_others_variables_left_alone() {
        for (name, known) in [
            ("CUDA_CACHE_MAX_SIZE", "CUDA_CACHE_MAXSIZE"),
            ("CUDA_CACHE_MAXSIZES", "CUDA_CACHE_MAXSIZE"),
            ("CUDA_CACHEPATH", "CUDA_CACHE_PATH"),
            ("CUDA_CACHE_DIR", "CUDA_CACHE_PATH"),
            ("cuda_cache_path", "CUDA_CACHE_PATH"),
            ("CUDA_CACHE_DISABLED", "CUDA_CACHE_DISABLE"),
            ("CUDA_FORCE_PTXJIT", "CUDA_FORCE_PTX_JIT"),
            ("CUDA_FORCE_PTX_JTI", "CUDA_FORCE_PTX_JIT"),
            ("CUDA_MODULES_LOADING", "CUDA_MODULE_LOADING"),
        ] {
            assert_eq!(meant(name), Some(known), "{name}");
        }
        for name in OURS.into_iter().chain([
            "CUDA_PATH",
            "CUDA_HOME",
            "CUDA_VISIBLE_DEVICES",
            "CUDA_MODULE_DATA_LOADING",
            "CUDAHOSTCXX",
            "MY_CACHE_PATH",
            "PATH",
            "CUDA_ARCH_LIST",
        ]) {
            assert_eq!(meant(name), None, "{name}");
        }
    }
}
