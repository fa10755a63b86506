//! The gRPC cache against a real server ([`real`]), and against one written to misbehave ([`faults`]);
//! actions on the latter ([`actions`]). Real ones are in warpcc's own tests.

mod actions;
mod fake;
mod faults;
mod real;
mod simultaneous;

use warpcc_remote::grpc::Deadlines;
use warpcc_remote::{Auth, Grpc};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn client(address: &str) -> Grpc {
    let address = address.parse().expect("an address");
    Grpc::new(address, Auth::default(), Deadlines::default()).expect("no certificates")
}

/// Bytes that do not compress and are the same each time.
fn bytes_of(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
