//! The `warpcc` binary: argv in, exit code out.

fn main() {}
