//! The rules for NVRTC's options: which are refused, and which involve files or paths.

use std::sync::Arc;

use crate::c_text::c_text;
use crate::error::Error;

/// Options for which this library has a field of its own, with that field.
const OWN: [(&str, &str); 16] = [
    ("--gpu-architecture", "give a Target"),
    ("-arch", "give a Target"),
    ("--dlink-time-opt", "give Target::LtoIr"),
    ("-dlto", "give Target::LtoIr"),
    ("--optix-ir", "OptiX IR is not supported"),
    ("-optix-ir", "OptiX IR is not supported"),
    ("--include-path", "give an include folder"),
    ("-I", "give an include folder"),
    // NVRTC would read files that are not checked again.
    (
        "--use-bundled-headers",
        "give the folders of Compiler::install_bundled_headers",
    ),
    (
        "-use-bundled-headers",
        "give the folders of Compiler::install_bundled_headers",
    ),
    ("--pch", "give PrecompiledHeaders::Automatic"),
    ("-pch", "give PrecompiledHeaders::Automatic"),
    ("--create-pch", "give PrecompiledHeaders::Automatic"),
    ("--use-pch", "give PrecompiledHeaders::Automatic"),
    ("-create-pch", "give PrecompiledHeaders::Automatic"),
    ("-use-pch", "give PrecompiledHeaders::Automatic"),
];

pub(crate) fn check_option(option: &str) -> Result<(), Error> {
    c_text("option", option.as_bytes())?;
    if option.trim().is_empty() {
        return Err(Error::invalid("option", "it is empty"));
    }
    // -Idir has its value directly behind it.
    let word = match option.strip_prefix("-I") {
        Some(_) => "-I",
        None => option.split(['=', ' ']).next().unwrap_or(option),
    };
    match OWN.iter().find(|(own, _)| *own == word) {
        Some((_, instead)) => Err(Error::invalid(format!("option {option}"), *instead)),
        None => Ok(()),
    }
}

/// The options for nvJitLink that mean what an option of NVRTC means. NVRTC leaves code generation to the linker when it makes
/// LTO-IR.
pub(crate) fn link_options(option: &str) -> Vec<Arc<str>> {
    let (word, value) = option.split_once(['=', ' ']).unwrap_or((option, ""));
    let word = word.trim_start_matches('-').replace('_', "-");
    let number = match value.trim() {
        "" | "true" => "1",
        "false" => "0",
        other => other,
    };
    let one = |text: String| vec![Arc::from(text)];
    match word.as_str() {
        "use-fast-math" => ["-ftz=1", "-prec-div=0", "-prec-sqrt=0", "-fma=1"]
            .map(Arc::from)
            .to_vec(),
        "ftz" | "prec-div" | "prec-sqrt" => one(format!("-{word}={number}")),
        "fmad" => one(format!("-fma={number}")),
        "maxrregcount" => one(format!("-maxrregcount={number}")),
        "generate-line-info" | "lineinfo" => one("-lineinfo".to_owned()),
        "device-debug" | "G" => one("-g".to_owned()),
        _ => Vec::new(),
    }
}

/// The file that an option includes before the source.
pub(crate) fn pre_include(option: &str) -> Option<&str> {
    ["--pre-include", "-include"].iter().find_map(|word| {
        let rest = option.strip_prefix(word)?;
        let name = rest.strip_prefix(['=', ' '])?;
        Some(name.trim())
    })
}

/// Whether an option makes NVRTC write a file, which a hit could not restore.
pub(crate) fn writes_a_file(option: &str) -> bool {
    let word = option.split(['=', ' ']).next().unwrap_or(option);
    [
        "--time",
        "-time",
        "--fdevice-time-trace",
        "-fdevice-time-trace",
    ]
    .contains(&word)
}

/// Whether an option that another program gives its own NVRTC makes it read or write files that are not known: precompiled
/// headers, headers out of NVRTC's own library, times.
pub(crate) fn reads_or_writes_more(option: &str) -> bool {
    let word = option.split(['=', ' ']).next().unwrap_or(option);
    let word = word.trim_start_matches('-');
    let more = [
        "pch",
        "create-pch",
        "use-pch",
        "pch-dir",
        "use-bundled-headers",
    ];
    more.contains(&word) || writes_a_file(option)
}

/// Whether an option puts paths into the image.
pub(crate) fn keeps_paths(option: &str) -> bool {
    let word = option.split(['=', ' ']).next().unwrap_or(option);
    ["-lineinfo", "--generate-line-info", "-G", "--device-debug"].contains(&word)
}

/// Whether an option asks for code that a debugger steps through.
pub(crate) fn debugs(option: &str) -> bool {
    ["-G", "--device-debug"].contains(&option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_words_of_our_own_are_refused() {
        for option in [
            "-arch=sm_90",
            "--gpu-architecture sm_90",
            "-Ix",
            "-I",
            "--use-pch=a",
            "--use-bundled-headers=/tmp/x",
            " ",
        ] {
            assert!(check_option(option).is_err(), "{option}");
        }
        for option in ["-DI=1", "--std=c++17", "-rdc=true", "-archaic"] {
            assert!(check_option(option).is_ok(), "{option}");
        }
    }
}
