//! The `warpcc` binary: argv in, exit code out.

mod build;
mod bypass;
mod call_record;
mod cli;
mod cluster;
mod commands;
mod config;
mod dates;
mod direct;
mod doubt;
mod explain;
mod fallback;
mod fatbin;
mod history;
mod insight;
mod jit;
mod launch;
mod locate;
mod log;
mod messages;
mod module_ids;
mod outputs;
mod place;
mod remote;
mod report;
mod request;
mod resources;
mod rtc;
mod run;

mod scratch;
mod session;
mod signals;
mod standard_streams;
mod threads;
mod watch_folder;

use std::ffi::OsString;

fn main() -> std::process::ExitCode {
    #[cfg(debug_assertions)]
    config::switch_guards_off();
    outputs::learn_umask();
    let _for_nvcc = standard_streams::any_was_closed();
    signals::survive_file_size_limit();
    let args: Vec<OsString> = std::env::args_os().collect();
    let code = launch::start(&args).unwrap_or_else(|error| {
        log::fail(&format!("{error:#}"));
        2
    });
    // A process's exit code has eight bits; nvcc's 255 stays 255.
    std::process::ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}
