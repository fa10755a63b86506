//! The `warpcc` binary: argv in, exit code out.

mod build;
mod bypass;
mod call_record;
mod cli;
mod cluster;
mod commands;
mod computed_includes;
mod config;
mod dates;
mod direct;
mod doubt;
mod fallback;
mod history;
mod launch;
mod locate;
mod log;
mod messages;
mod module_ids;
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
mod threads;
mod twin;
mod watch_folder;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::SystemTime;

use process_context::ProcessContext;

fn main() -> std::process::ExitCode {
    #[cfg(debug_assertions)]
    config::switch_guards_off();
    outputs::learn_umask();
    let _for_nvcc = standard_streams::any_was_closed();
    signals::survive_file_size_limit();
    let args: Vec<OsString> = std::env::args_os().collect();
    let code = start(&args).unwrap_or_else(|error| {
        log::fail(&format!("{error:#}"));
        2
    });
    // A process's exit code has eight bits; nvcc's 255 stays 255.
    std::process::ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}

/// Decides what this process is: the compiler it is named after, one of warpcc's own commands,
/// or a launcher.
///
/// # Errors
/// One of warpcc's own commands failed.
fn start(args: &[OsString]) -> anyhow::Result<i32> {
    let directory = std::env::current_dir();
    let around = ProcessContext {
        ourselves: config::ourselves()?,
        directory: directory.as_deref().unwrap_or(Path::new("")).to_owned(),
        environment: config::environment(),
        started: SystemTime::now(),
    };
    let (name, rest) = match args {
        [name, rest @ ..] => (name.as_os_str(), rest),
        [] => (OsStr::new("warpcc"), args),
    };
    if locate::is_nvcc(name) {
        return Ok(launch::launch(name, rest, around));
    }
    match rest {
        [first, rest @ ..]
            if !subcommand_words::is_subcommand(first)
                && !first.as_encoded_bytes().starts_with(b"-") =>
        {
            Ok(launch::launch(first, rest, around))
        }
        _ => {
            // A compiler needs no working directory for absolute paths; these commands do.
            directory?;
            cli::run(args, around)
        }
    }
}
