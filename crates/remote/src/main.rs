//! The program `warpcc-remote`: asks shared caches and clusters for one warpcc. That warpcc starts it, and sends
//! requests through a socket, which is its standard input. It ends when the program that started it ends.

mod serve;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use warpcc_remote_client::protocol::identity;

fn main() -> ExitCode {
    match asker() {
        Some(asker) => serve::serve(asker),
        // Somebody has started it by hand.
        None => {
            let written = writeln!(
                io::stdout(),
                "{}\nwarpcc starts this program to speak with shared caches and clusters; \
                 `warpcc remote` has the commands.",
                identity()
            );
            match written {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
    }
}

/// The socket of the program that asks: our standard input, if that is a socket and there are no arguments.
fn asker() -> Option<UnixStream> {
    if std::env::args_os().len() > 1 {
        return None;
    }
    let input: OwnedFd = io::stdin().as_fd().try_clone_to_owned().ok()?;
    let input = File::from(input);
    let is_socket = input
        .metadata()
        .is_ok_and(|found| found.file_type().is_socket());
    is_socket.then(|| UnixStream::from(OwnedFd::from(input)))
}
