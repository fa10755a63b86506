//! Who on this machine may run a heavy command now? CPU slots and memory shared by all processes of a user, without a daemon. Knows no nvcc, no cache and no environment variables, and prints nothing.
//!
//! A process that wants to run a tool makes a [`Claim`] on the [`Board`], a file that all processes
//! of the user read and write under a lock. A process that changes the board also decides, with the pure
//! functions of [`decide`], which claim is next, and wakes its owner. Nothing has to be running for that:
//! a claim is alive as long as the kernel holds its owner's file lock.
//!
//! Errors of the budget fail no build. A board that cannot be used leads to a [`Warning`] and to a budget of this
//! process alone.

mod ancestry;
mod board;
mod cancel;
mod cgroup;
mod claim;
mod clock;
pub mod costs;
pub mod decide;
mod file;
mod folder;
pub mod jobserver;
mod kind;
mod label;
mod limits;
mod local;
mod memory;
mod own;
mod past_peak;
mod pool;
mod pressure;
pub mod proc;
mod reconcile;
mod record;
mod seat;
mod shared;
mod small_file;
mod snapshot;
mod table;
mod wait;
mod warning;

pub use board::Board;
pub use cancel::{Cancel, Cancelled};
pub use claim::{Claim, ClaimRequest, ClaimVerdict, GrantKind};
pub use costs::{Costs, Expectation};
pub use folder::BoardPlace;
pub use jobserver::{Joined, Token, Tokens};
pub use kind::CommandKind;
pub use label::Label;
pub use limits::{BudgetLimits, Reserve};
pub use pool::{Pool, PoolSlot};
pub use pressure::{Pressure, Stop, Tick};
pub use record::{Flags, Record, SeatState};
pub use snapshot::Snapshot;
pub use warning::Warning;
