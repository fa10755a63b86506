//! Finds other caches and wrappers of the host compiler: in `PATH` under the compiler's name, or in a variable.
//!
//! It does not find a launcher that CMake or a Makefile puts before nvcc.

use std::path::{Path, PathBuf};

use warpcc_engine::compiler_cache::find_compiler;
use warpcc_engine::search_path::find_program;
use warpcc_report::doctor::Finding;

use super::finding::{error_of, fine, note, warning};
use super::variables::variable;
use super::wrapper_names::{self, is_script, wrapper};
use crate::process_context::ProcessContext;

/// Variables with the host compiler's name, and the program that reads each.
const VARIABLES: [(&str, &str); 2] = [("NVCC_CCBIN", "nvcc"), ("CUDAHOSTCXX", "CMake")];

pub(super) fn check(context: &ProcessContext, findings: &mut Vec<Finding>) {
    for (name, reader) in VARIABLES {
        if let Some(value) = variable(context, name) {
            named(context, name, reader, &value.to_string_lossy(), findings);
        }
    }
    if variable(context, "NVCC_CCBIN").is_some() {
        return;
    }
    for name in ["g++", "gcc"] {
        in_path(context, name, findings);
    }
}

fn named(
    context: &ProcessContext,
    name: &str,
    reader: &str,
    value: &str,
    findings: &mut Vec<Finding>,
) {
    let file = match context.directory.join(value) {
        folder if folder.is_dir() => folder.join("g++"),
        _ => match find_program(value, variable(context, "PATH"), &context.directory) {
            Some(file) => file,
            None => PathBuf::from(value),
        },
    };
    if !file.is_file() {
        findings.push(error_of(
            format!("{name}={value} is not a compiler, and {reader} reads it"),
            "every compilation fails",
            &format!("unset {name}, or name a compiler that exists"),
        ));
    } else if let Some(wrapper) = wrapper(&file) {
        findings.push(warning(
            format!("{name}={value} is {wrapper}"),
            "two caches then store the same host objects, and each step waits for both",
            &format!("{name}=/usr/bin/g++, the compiler behind it"),
        ));
    } else {
        findings.push(fine(format!("host compiler {} ({name})", file.display())));
    }
}

fn in_path(context: &ProcessContext, name: &str, findings: &mut Vec<Finding>) {
    let path = variable(context, "PATH");
    let Some(first) = find_program(name, path, &context.directory) else {
        if name == "g++" {
            findings.push(error_of(
                "there is no g++ in PATH",
                "nvcc needs a host compiler for every file",
                "install g++, or name another: NVCC_CCBIN=/path/to/g++",
            ));
        }
        return;
    };
    let shown = first.display();
    let Some(wrapper) = wrapper(&first) else {
        findings.push(if is_script(&first) {
            note(
                format!("{name} is a script: {shown}"),
                "it is treated as a compiler: its result is reused while the files it reads stay the same",
                "name the compiler that it runs: NVCC_CCBIN=/usr/bin/g++",
            )
        } else {
            fine(format!("host compiler {shown}"))
        });
        return;
    };
    let what = format!("{wrapper} is in PATH under the name of {name}: {shown}");
    let folder = first
        .parent()
        .unwrap_or(Path::new("/"))
        .display()
        .to_string();
    let fix = format!("take {folder} out of PATH for CUDA builds, or set NVCC_CCBIN=/usr/bin/g++");
    findings.push(match find_compiler(name, path, &context.directory) {
        Some(behind) if wrapper_names::wrapper(&behind).is_none() => note(
            what,
            &format!(
                "warpcc skips it and runs {}; bypassed calls still go through it",
                behind.display()
            ),
            &fix,
        ),
        _ => warning(
            what,
            "two wrappers then work on the same host code, and each step waits for both",
            &fix,
        ),
    });
}
