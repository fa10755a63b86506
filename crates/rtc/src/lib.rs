//! Kernels as text: compiles them with NVRTC, keeps what comes of it for every process and machine, loads and launches them.

pub mod kernels;
