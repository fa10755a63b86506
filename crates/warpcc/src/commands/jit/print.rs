//! Prints the results of `warpcc jit`: what is compiled and what that costs, what is kept, what is broken.

pub mod advise;
pub mod cache;
pub mod parts;
pub mod prove;
pub mod warm;
