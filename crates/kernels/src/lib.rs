//! Ready-made kernels: functions over arrays of any type and shape, and expressions of them as one kernel.
//!
//! A plan ([`elementwise`], [`reduce`]) is a function of types, shapes, strides and addresses, so it can be made and tested
//! without a GPU: it gives a kernel's name and source, a grid and arguments. Only a [`Launcher`] needs a driver; it takes
//! the kernels from a [`KernelCache`](warpcc_rtc::KernelCache).

pub mod call;
pub mod dtype;
pub mod elementwise;
pub mod expression;
pub mod functions;
mod generate;
mod infer;
mod launch;
mod layout;
mod memo;
pub mod names;
mod operators;
pub mod parse;
pub mod plan;
pub mod plan_cache;
pub mod reduce;
pub mod reductions;
pub mod shape;
mod tokens;
mod value;
mod workspace;

pub use launch::{LaunchError, Launcher, requests};

/// The device text that every planned kernel and any kernel of a user's own may build on: types,
/// conversions, vectorised access, functions, gradients, reductions. It needs no header of CUDA's.
pub const HEADER: &str = concat!(
    include_str!("../cuda/types.cuh"),
    include_str!("../cuda/memory.cuh"),
    include_str!("../cuda/special.cuh"),
    include_str!("../cuda/functions.cuh"),
    include_str!("../cuda/gradients.cuh"),
    include_str!("../cuda/reduce.cuh"),
);
