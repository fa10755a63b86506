//! Every reduction: its name, what it gives, and in what type.

use crate::dtype::{DType, Family};

/// A reduction's name and formula.
#[derive(Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Its name, in `warpcc::red`.
    pub name: &'static str,
    /// The formula of its result.
    pub formula: &'static str,
    /// Whether it has a value of no elements.
    pub of_nothing: bool,
}

/// Every reduction.
pub static ALL: &[Reduction] = &[
    Reduction {
        name: "sum",
        formula: "sum of x, compensated; integers in 64 bits",
        of_nothing: true,
    },
    Reduction {
        name: "mean",
        formula: "sum / count; NaN of nothing",
        of_nothing: true,
    },
    Reduction {
        name: "prod",
        formula: "product of x; integers in 64 bits",
        of_nothing: true,
    },
    Reduction {
        name: "max",
        formula: "the largest; NaN if there is one",
        of_nothing: false,
    },
    Reduction {
        name: "min",
        formula: "the smallest; NaN if there is one",
        of_nothing: false,
    },
    Reduction {
        name: "norm1",
        formula: "sum of |x|",
        of_nothing: true,
    },
    Reduction {
        name: "norm2",
        formula: "root of the sum of squares, without overflow on the way",
        of_nothing: true,
    },
    Reduction {
        name: "norm_inf",
        formula: "the largest |x|; NaN if there is one",
        of_nothing: true,
    },
    Reduction {
        name: "sumsq",
        formula: "sum of x^2, compensated",
        of_nothing: true,
    },
    Reduction {
        name: "nansum",
        formula: "sum of what is not NaN",
        of_nothing: true,
    },
    Reduction {
        name: "nanprod",
        formula: "product of what is not NaN",
        of_nothing: true,
    },
    Reduction {
        name: "count_nonzero",
        formula: "how many are not 0; NaN is not",
        of_nothing: true,
    },
    Reduction {
        name: "any",
        formula: "one is not 0",
        of_nothing: true,
    },
    Reduction {
        name: "all",
        formula: "none is 0",
        of_nothing: true,
    },
];

/// The reduction of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Reduction> {
    ALL.iter().find(|each| each.name == name)
}

/// The default type of a reduction's result for `input`; for an unknown reduction, that of a sum.
#[must_use]
pub fn output_type(reduction: &str, input: DType) -> DType {
    match (crate::names::reduction(reduction), input.family()) {
        ("any" | "all", _) => DType::Bool,
        ("count_nonzero", _) => DType::I64,
        ("max" | "min", _) | (_, Family::Float) => input,
        ("mean" | "norm1" | "norm2" | "norm_inf", _) => input.real(),
        _ => input.accumulate(),
    }
}

/// The compute type of a reduction's result.
#[must_use]
pub fn result_type(reduction: &Reduction, input: DType) -> DType {
    match reduction.name {
        "any" | "all" => DType::Bool,
        "count_nonzero" => DType::U64,
        "max" | "min" => input.compute(),
        "mean" | "norm2" if input.compute() == DType::F32 => DType::F32,
        "mean" | "norm2" => DType::F64,
        _ => input.accumulate(),
    }
}
