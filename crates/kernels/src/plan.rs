//! A plan and its parts: arrays, a kernel's text, grid and arguments. Also the errors of planning.

use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use crate::expression::CallError;
use crate::parse::ParseError;
use warpcc_rtc::Kernel;

/// An array on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its elements' type.
    pub dtype: DType,
    /// Its sizes, outermost first; empty for a single element.
    pub shape: Vec<u64>,
    /// Steps between neighbours in each dimension, in elements; `None`: rows one after another.
    pub strides: Option<Vec<i64>>,
    /// The device address of element 0, 0, ….
    pub address: u64,
}

impl Tensor {
    /// An array whose rows follow one another.
    #[must_use]
    pub fn new(dtype: DType, shape: &[u64], address: u64) -> Self {
        Self {
            dtype,
            shape: shape.to_vec(),
            strides: None,
            address,
        }
    }

    /// The same with strides of its own, in elements.
    #[must_use]
    pub fn with_strides(mut self, strides: &[i64]) -> Self {
        self.strides = Some(strides.to_vec());
        self
    }
}

/// How the result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteMode {
    /// It replaces what the output holds.
    #[default]
    Write,
    /// It is added to what the output holds.
    Add,
}

impl WriteMode {
    pub(crate) fn device(self) -> &'static str {
        match self {
            Self::Write => "warpcc::request_write",
            Self::Add => "warpcc::request_add",
        }
    }
}

/// How a kernel is cut into blocks; the default is what was fastest on an H200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Threads of a block, a multiple of 32 up to 1024.
    pub threads: u32,
    /// The number of accesses of 16 bytes that a thread has in flight for each array.
    pub unroll: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            threads: 128,
            unroll: 1,
        }
    }
}

/// One of a kernel's arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A device address.
    Address(u64),
    /// The address of memory that the launcher provides, of [`Plan::workspace`] bytes, plus this.
    Workspace(u64),
    /// A value, as its bytes lie in memory.
    Bytes(Arc<[u8]>),
}

impl Argument {
    pub(crate) fn index(value: i64, wide: bool) -> Self {
        Self::Bytes(if wide {
            value.to_ne_bytes().into()
        } else {
            // The caller chose the width for values that fit.
            i32::try_from(value)
                .unwrap_or(i32::MAX)
                .to_ne_bytes()
                .into()
        })
    }
}

/// A kernel and how to start it.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Its text, and its name, which is `extern "C"`. [`HEADER`](crate::HEADER) comes first.
    pub kernel: Kernel,
    /// Blocks in x and y.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub block: u32,
    /// Its arguments, in order.
    pub arguments: Vec<Argument>,
}

/// Kernels to start one after another on one stream. Empty: there is nothing to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The kernels.
    pub launches: Vec<Launch>,
    /// The bytes of device memory that the kernels share, aligned to 16. Its content at the start does not matter.
    pub workspace: u64,
    /// The arrays' addresses, to be named in an error where one is not on the device.
    pub arrays: Vec<(Which, u64)>,
}

/// Which argument: an input by its name, or the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// An input.
    Input(Arc<str>),
    /// The output.
    Output,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(name) => write!(f, "input {name}"),
            Self::Output => f.write_str("the output"),
        }
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text is no expression.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A function is called as it cannot be.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A name has no value.
    #[error("the expression uses {name:?}, and no array or number is given under that name")]
    Unbound {
        /// The name.
        name: String,
    },
    /// A name is given that the expression does not use, or is given twice.
    #[error("{name:?} was given, but the expression {}", if *twice { "has it already" } else { "does not use it" })]
    Needless {
        /// The name.
        name: String,
        /// It is given twice.
        twice: bool,
    },
    /// A function does not take values of a type.
    #[error("{function} takes integers and bool, not {}", list(.given))]
    Type {
        /// The function.
        function: &'static str,
        /// The types of its arguments.
        given: Vec<DType>,
    },
    /// A number is used with integers that cannot hold it.
    #[error(
        "{number} is used with values of type {dtype}, which does not hold it: convert them, or write it with a decimal point"
    )]
    Number {
        /// The number.
        number: i64,
        /// The type.
        dtype: DType,
    },
    /// More calls than one kernel should hold.
    #[error("the expression has more than {limit} different calls: split it into several kernels")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A shape that does not fit the output's.
    #[error(
        "{which} has shape {shape:?}, which does not broadcast to the output's {output:?}: {reason}"
    )]
    Shape {
        /// The array.
        which: Which,
        /// Its shape.
        shape: Vec<u64>,
        /// The output's.
        output: Vec<u64>,
        /// The difference.
        reason: String,
    },
    /// Shapes of inputs that do not make one.
    #[error(
        "{name} has shape {shape:?}, which does not broadcast with {before:?}, the shape of the inputs before it"
    )]
    Broadcast {
        /// The input.
        name: String,
        /// Its shape.
        shape: Vec<u64>,
        /// The shape of the inputs before it.
        before: Vec<u64>,
    },
    /// Steps that do not belong to the shape.
    #[error(
        "{which} has {dimensions} dimension(s) and {strides} stride(s): give one stride for each dimension"
    )]
    Strides {
        /// The array.
        which: Which,
        /// Its dimensions.
        dimensions: usize,
        /// Its strides.
        strides: usize,
    },
    /// More elements, bytes or dimensions than can be counted.
    #[error("{which} is too large: {reason}")]
    TooLarge {
        /// The array or other part.
        which: Which,
        /// The quantity that is too large.
        reason: &'static str,
    },
    /// No address.
    #[error("{which} is at address 0: a device pointer was expected")]
    Null {
        /// The array.
        which: Which,
    },
    /// An address between elements.
    #[error("{which} is at address {address:#x}, which is not a multiple of the size of {dtype}, {} byte(s)", dtype.size())]
    Misaligned {
        /// The array.
        which: Which,
        /// Its address.
        address: u64,
        /// Its type.
        dtype: DType,
    },
    /// Elements of the output share memory.
    #[error(
        "elements of the output share memory (shape {shape:?}, strides {strides:?}): each needs memory of its own"
    )]
    OutputOverlaps {
        /// Its shape.
        shape: Vec<u64>,
        /// Its strides.
        strides: Vec<i64>,
    },
    /// The output overlaps an input, but elements have different places in the two.
    #[error(
        "the output shares memory with {which}, but not element by element: give it memory of its own, or exactly that input's type, address and strides"
    )]
    Aliases {
        /// The input.
        which: Which,
    },
    /// Blocks that no device starts.
    #[error("{given} threads per block: a multiple of 32 from 32 to 1024 was expected")]
    Threads {
        /// The number that was asked for.
        given: u32,
    },
    /// Accesses at once that no kernel has.
    #[error("{given} accesses at once: 1 to 16 were expected")]
    Unroll {
        /// The number that was asked for.
        given: u32,
    },
    /// A reduction's axis that is not there.
    #[error("axis {axis}: {} has {dimensions} dimension(s){}", Which::Input("x".into()), if *twice { ", and the axis is named twice" } else { "" })]
    Axis {
        /// The axis.
        axis: i64,
        /// The number of dimensions.
        dimensions: usize,
        /// Whether the axis is named twice.
        twice: bool,
    },
    /// A maximum or minimum of nothing.
    #[error("{reduction} of no elements has no value: the reduced axes are empty")]
    Empty {
        /// The reduction.
        reduction: &'static str,
    },
    /// A reduction that there is not.
    #[error("unknown reduction {name:?}; known reductions are {known}")]
    UnknownReduction {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
}

fn list(types: &[DType]) -> String {
    let names: Vec<&str> = types.iter().map(|each| each.name()).collect();
    names.join(", ")
}
