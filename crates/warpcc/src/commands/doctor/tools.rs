//! Checks whether each tool of the toolkit runs with the watch library. A tool that hangs with it would delay every build.
//!
//! The tools are those of a plan that nvcc prints.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use warpcc_engine::Children;
use warpcc_engine::process::{Ended, Hung, ProcessSpec};
use warpcc_engine::search_path::find_program;
use warpcc_plan::{Program, TaskGraph, Transcript};
use warpcc_report::doctor::Finding;

use super::finding::{error_of, fine, note, warning};
use crate::commands::nvcc::find_nvcc;
use crate::config::Config;
use crate::process_context::ProcessContext;

/// The time limit for a tool that prints its version. From a network share this may take a few seconds.
const DEADLINE: Duration = Duration::from_secs(20);
/// A tool that makes no progress for this time hangs.
const STILL: Duration = Duration::from_secs(8);

/// A call for which nvcc plans all of its tools. It compiles nothing.
const PLAN: [&str; 7] = [
    "--dryrun",
    "-rdc=true",
    "-x",
    "cu",
    "/dev/null",
    "-o",
    "/dev/null",
];

type Variables = Vec<(OsString, OsString)>;

pub(super) fn check(
    config: &Config,
    context: &ProcessContext,
    library: &Path,
    folder: &Path,
    findings: &mut Vec<Finding>,
) {
    // The check of the toolkit reports this.
    let Ok(nvcc) = find_nvcc(None, config, context) else {
        return;
    };
    let (programs, environment) = match planned(&nvcc, context) {
        Ok(found) => found,
        Err(why) => {
            findings.push(note(
                format!("nvcc's tools cannot be tried: {why}"),
                "it is unknown whether they run with the watch library in them",
                "start nvcc --dryrun by hand to see why",
            ));
            return;
        }
    };
    let mut right = Vec::new();
    for (number, program) in programs.iter().enumerate() {
        let log = folder.join(format!("tool-{number}"));
        match try_with(library, &log, program, &environment, context) {
            Ok(()) => right.push(name_of(program)),
            Err(finding) => findings.push(finding),
        }
    }
    if !right.is_empty() {
        findings.push(fine(format!(
            "tools that run with the watch library in them: {}",
            right.join(", ")
        )));
    }
}

/// nvcc and the programs that it starts, and their environment.
fn planned(nvcc: &Path, context: &ProcessContext) -> Result<(Vec<PathBuf>, Variables), String> {
    let mut environment = context.environment.clone();
    let ended = run(nvcc, &PLAN, &environment, context).map_err(|hang| hang.0)?;
    let text = String::from_utf8_lossy(&ended.stderr);
    let transcript = Transcript::parse(&text).map_err(|why| why.to_string())?;
    let graph = TaskGraph::build(&transcript, "").map_err(|why| why.to_string())?;
    for (name, value) in &transcript.environment {
        environment.retain(|(n, _)| n != name.as_str());
        environment.push((name.into(), value.into()));
    }
    let mut programs = vec![nvcc.to_owned()];
    for step in &graph.steps {
        let name = match &step.program {
            Program::Named(name) => name,
            Program::AskCompiler { compiler, .. } => compiler,
            Program::Internal => continue,
        };
        let path = environment.iter().find(|(n, _)| n == "PATH");
        let path = path.map(|(_, value)| value.as_os_str());
        let found = find_program(name, path, &context.directory);
        if let Some(found) = found.filter(|found| !programs.contains(found)) {
            programs.push(found);
        }
    }
    Ok((programs, environment))
}

fn try_with(
    library: &Path,
    log: &Path,
    program: &Path,
    environment: &Variables,
    context: &ProcessContext,
) -> Result<(), Finding> {
    let inherited = environment.iter().find(|(n, _)| n == "LD_PRELOAD");
    let inherited: Option<&OsStr> = inherited.map(|(_, value)| value.as_os_str());
    let Ok(extra) = warpcc_watch::environment(library, log, inherited) else {
        return Ok(());
    };
    let mut watched = environment.clone();
    watched.retain(|(n, _)| !extra.iter().any(|(e, _)| e == n));
    watched.extend(extra);
    let shown = program.display();
    let without = || run(program, &["--version"], environment, context).is_err();
    match run(program, &["--version"], &watched, context) {
        Err(Hang(_)) if without() => Err(error_of(
            format!("{shown} hangs, with the watch library and without"),
            "no file can be compiled with it",
            "start it by hand, and see what it waits for",
        )),
        Err(Hang(why)) => Err(error_of(
            format!("{shown} hangs with the watch library in it: {why}"),
            "each call waits for stall_timeout, and is then bypassed",
            "set WARPCC_DISABLE=1 until it is fixed; please report it with the output of ldd --version",
        )),
        Ok(ended) if ended.signal.is_some() => Err(error_of(
            format!("{shown} crashes with the watch library in it"),
            "each call is bypassed",
            "set WARPCC_DISABLE=1 until it is fixed; please report it with the output of ldd --version",
        )),
        Ok(_) if !log.exists() => Err(warning(
            format!("the watch library is not loaded into {shown}"),
            "warpcc cannot see what it reads, so calls that run it are not cached as a whole",
            "use a dynamically linked program instead, or a script as a wrapper",
        )),
        Ok(_) => Ok(()),
    }
}

/// Why a program was ended.
struct Hang(String);

/// Runs a program to its end, or ends it after the time limit. A program that cannot be started is not reported as hanging.
fn run(
    program: &Path,
    args: &[&str],
    environment: &Variables,
    context: &ProcessContext,
) -> Result<Ended, Hang> {
    let children = Children::default();
    children.limit_idle_time(Some(STILL));
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let spec = ProcessSpec {
        program,
        name: &program.to_string_lossy(),
        args: &args,
        environment,
        directory: &context.directory,
        terminal: None,
        output_on_terminal: false,
        claim: None,
    };
    let ended = thread::scope(|scope| {
        let (over, wait) = mpsc::channel::<()>();
        let children = &children;
        let guard = move || {
            if wait.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) {
                children.close();
            }
        };
        // If the thread cannot be started, only a program without progress is ended.
        drop(thread::Builder::new().spawn_scoped(scope, guard));
        let ended = children.run(0, &spec);
        drop(over);
        ended
    });
    match ended {
        Ok(ended) if ended.by_us.is_some() => Err(Hang(format!(
            "it did not end within {} s",
            DEADLINE.as_secs()
        ))),
        Ok(ended) => Ok(ended),
        Err(error) if Hung::is_in(&error) => Err(Hang(format!(
            "it used no processor time for {} s",
            STILL.as_secs()
        ))),
        Err(_) => Ok(Ended::default()),
    }
}

fn name_of(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
