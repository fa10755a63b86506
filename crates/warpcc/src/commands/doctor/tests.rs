//! Tests of what the doctor says about setups that are made up.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::SystemTime;

use warpcc_report::doctor::{Finding, Severity};
use warpcc_report::sample::{Shape, build};
use warpcc_report::{Build, Summary};

use super::{past, settings, wrappers};
use crate::config::Config;
use crate::process_context::ProcessContext;

fn context(folder: &Path, environment: &[(&str, &str)]) -> ProcessContext {
    ProcessContext {
        ourselves: Vec::new(),
        has_proc: true,
        directory: folder.to_owned(),
        environment: environment
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        started: SystemTime::UNIX_EPOCH,
    }
}

/// Everything but the text of a finding that holds a temporary path.
fn said(findings: &[Finding], folder: &Path) -> String {
    let folder = folder.display().to_string();
    let mut out = Vec::new();
    warpcc_report::doctor::write_text(findings, &mut out).unwrap();
    String::from_utf8(out).unwrap().replace(&folder, "HERE")
}

fn program(file: &Path) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, b"\x7fELF").unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn wrappers_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for name in ["bin/g++", "bin/gcc", "bin/ccache", "far/distcc"] {
        program(&here.join(name));
    }
    fs::create_dir_all(here.join("lib")).unwrap();
    symlink(here.join("bin/ccache"), here.join("lib/g++")).unwrap();
    symlink(here.join("far/distcc"), here.join("far/gcc")).unwrap();
    let path = ["lib", "far", "bin"].map(|name| here.join(name).display().to_string());
    let path = path.join(":");
    let mut findings = Vec::new();
    wrappers::check(&context(here, &[("PATH", &path)]), &mut findings);
    wrappers::check(
        &context(here, &[("PATH", &path), ("NVCC_CCBIN", "ccache")]),
        &mut findings,
    );
    wrappers::check(
        &context(here, &[("PATH", "/none"), ("CUDAHOSTCXX", "/none/g++")]),
        &mut findings,
    );
    insta::assert_snapshot!("wrappers", said(&findings, here));
}

#[test]
fn settings_are_named() {
    let env = |name: &str| match name {
        "HOME" => Some("/home/ada".into()),
        "WARPCC_RECACHE" | "WARPCC_DISABLE" => Some("1".into()),
        _ => None,
    };
    let flags = (
        "NVCC_APPEND_FLAGS",
        "-O3 -time -I/tmp/pip-build-env-7f/include",
    );
    let mut findings = Vec::new();
    let config = Config::load(env).unwrap();
    let variables = [flags, ("WARPCC_JBOS", "3")];
    settings::check(&config, &context(Path::new("/"), &variables), &mut findings);
    insta::assert_snapshot!("settings", said(&findings, Path::new("/none")));
}

#[test]
fn the_last_build_is_judged() {
    let mut findings = Vec::new();
    past::judge(
        &Summary::compute(&Build::new(build(&Shape::default()))),
        &mut findings,
    );
    assert!(findings.iter().all(|one| one.severity == Severity::Note));
    insta::assert_snapshot!("past", said(&findings, Path::new("/none")));
}
