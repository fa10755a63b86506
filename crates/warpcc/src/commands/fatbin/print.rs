//! Prints the results of `warpcc fatbin`: lists, tables, pictures, differences, verdicts.

pub mod check;
pub mod diff;
pub mod list;
pub mod picture;
pub mod size;
mod sums;
pub mod tables;
pub mod thin;
