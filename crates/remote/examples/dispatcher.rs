//! The tests' dispatcher as a program, for `cargo xtask bench --only cluster`: see `warpcc_testkit::dispatcher`.
//!
//! ```text
//! dispatcher PORT ROUND_TRIP_MS FRONT WORKER...
//! ```

use std::io::{Error, Read};
use std::time::Duration;

use warpcc_testkit::dispatcher::Dispatcher;

/// Serves until its standard input ends, then says what each worker was given.
#[tokio::main]
#[expect(clippy::print_stdout, reason = "a person who measures reads it")]
async fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wrong = || Error::other("usage: dispatcher PORT ROUND_TRIP_MS FRONT WORKER...");
    let [port, round_trip, front, workers @ ..] = words.as_slice() else {
        return Err(wrong());
    };
    let port = port.parse().map_err(|_| wrong())?;
    let round_trip = Duration::from_millis(round_trip.parse().map_err(|_| wrong())?);
    let (dispatcher, _) = Dispatcher::start(port, front, workers, round_trip)?;
    let waiting = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    waiting.await.map_err(Error::other)??;
    let taken = dispatcher.taken().into_iter().map(|n| n.to_string());
    println!("{}", taken.collect::<Vec<_>>().join(" "));
    Ok(())
}
