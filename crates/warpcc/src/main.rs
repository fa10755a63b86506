//! The `warpcc` binary: argv in, exit code out.

#![cfg_attr(not(test), no_main)]

mod build;
mod bypass;
mod call_record;
mod cli;
mod cluster;
mod commands;
mod computed_includes;
mod config;
mod content_key;
mod dates;
mod direct;
mod fallback;
mod fetched_results;
mod history;
mod launch;
mod locate;
mod log;
mod messages;
mod module_ids;
mod nested_paths;
mod outputs;
mod place;
mod process_context;
mod progress;
mod remotes;
mod request;
mod resources;
mod scratch;
mod seconds;
mod session;
mod signals;
mod standard_streams;
mod store;
mod subcommand_words;
mod temporary_folder;
mod threads;
mod watch_folder;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::SystemTime;

use process_context::ProcessContext;

/// The C library calls this. Rust's runtime would first read `/proc/self/maps`, to say more of a stack overflow than
/// `SIGSEGV` does: a sixteenth of the instructions of a hit. What else it does at the start is done here.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(
    not(test),
    expect(unsafe_code, reason = "the C library finds it by its name")
)]
extern "C" fn main() -> i32 {
    // The exit code after a panic is that of Rust's runtime. The panic has printed its message.
    let code = std::panic::catch_unwind(run).unwrap_or(101);
    // This also writes what is still in standard output's buffer.
    std::process::exit(code)
}

/// Runs the program and returns its exit code, which has eight bits.
fn run() -> i32 {
    #[cfg(debug_assertions)]
    config::switch_guards_off();
    outputs::learn_umask();
    standard_streams::replace_closed();
    signals::survive_closed_pipes();
    signals::survive_file_size_limit();
    let args: Vec<OsString> = std::env::args_os().collect();
    let code = with_enough_stack(|| start(&args)).unwrap_or_else(|error| {
        log::fail(&format!("{error:#}"));
        2
    });
    code & 0xff
}

/// Runs `work`, on a thread if the user's limit leaves this one a small stack (`ulimit -s`). nvcc's own tools need less.
fn with_enough_stack<T: Send>(work: impl Fn() -> T + Sync) -> T {
    const ENOUGH: u64 = 1 << 20;
    const STACK: usize = 8 << 20;
    let limit = rlimit::Resource::STACK.get_soft();
    if limit.is_ok_and(|bytes| bytes < ENOUGH) {
        let done = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let started = thread.spawn_scoped(scope, &work);
            started.ok().map(std::thread::ScopedJoinHandle::join)
        });
        match done {
            Some(Ok(done)) => return done,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            // No thread can be started.
            None => {}
        }
    }
    work()
}

/// Decides what this process does, from its name and its first argument: it runs in place of the compiler that it is named
/// after, it launches a compiler, or it runs one of warpcc's own commands.
///
/// # Errors
/// One of warpcc's own commands failed.
fn start(args: &[OsString]) -> anyhow::Result<i32> {
    let directory = std::env::current_dir();
    let (ourselves, has_proc) = config::ourselves();
    let context = ProcessContext {
        ourselves,
        has_proc,
        directory: directory.as_deref().unwrap_or(Path::new("")).to_owned(),
        environment: config::environment(),
        started: SystemTime::now(),
    };
    let (name, rest) = match args {
        [name, rest @ ..] => (name.as_os_str(), rest),
        [] => (OsStr::new("warpcc"), args),
    };
    if locate::is_nvcc(name) || locate::is_clang(name) {
        return Ok(launch::launch(name, rest, context));
    }
    match rest {
        [first, rest @ ..]
            if !subcommand_words::is_subcommand(first)
                && !first.as_encoded_bytes().starts_with(b"-") =>
        {
            Ok(launch::launch(first, rest, context))
        }
        _ => {
            // A compiler can run in a working directory that was removed. These commands cannot.
            directory?;
            cli::run(args, context)
        }
    }
}
