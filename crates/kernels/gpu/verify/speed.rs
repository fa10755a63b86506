//! How fast element-wise kernels move memory, against the device's own copy in the same run.

use serde_json::{Value as Json, json};
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{Value, fused, tuned};
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Plan, Tensor, Tuning, WriteMode};
use warpcc_kernels::reduce::reduce;

use crate::device::{BASE, Device, Failure, Kernel};

/// Bytes of each array.
const ARRAY: u64 = 1 << 30;

/// Where kernels that need memory of their own get it.
const WORKSPACE: u64 = BASE + 6 * ARRAY;

/// A kernel to be timed.
pub struct Timed {
    pub label: String,
    pub plan: Plan,
    /// Bytes read and written.
    pub bytes: u64,
    /// `None`: the library's own choice.
    pub tuning: Option<Tuning>,
    pub text: &'static str,
    pub dtype: DType,
}

fn planned(
    text: &str,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    request: WriteMode,
    tuning: Option<Tuning>,
) -> Option<Plan> {
    let expr = parse(text).ok()?;
    match tuning {
        Some(tuning) => tuned(&expr, values, output, request, tuning).ok(),
        None => fused(&expr, values, output, request).ok(),
    }
}

fn cut(tuning: Option<Tuning>) -> String {
    tuning.map_or(String::new(), |tuning| {
        format!(" threads {} unroll {}", tuning.threads, tuning.unroll)
    })
}

fn one(
    text: &'static str,
    dtypes: &[DType],
    off: u64,
    request: WriteMode,
    tuning: Option<Tuning>,
) -> Option<Timed> {
    // The smallest type's array has the bytes of `ARRAY` at most; all have as many elements.
    let largest = dtypes.iter().map(|d| d.size()).max()?;
    let count = ARRAY / largest - 64;
    let (output, inputs) = dtypes.split_last()?;
    let at = |place: usize, dtype: DType, off: u64| {
        Tensor::new(
            dtype,
            &[count],
            BASE + place as u64 * (ARRAY + 4096) + off * dtype.size(),
        )
    };
    let tensors: Vec<Tensor> = inputs
        .iter()
        .enumerate()
        .map(|(place, d)| at(place, *d, off))
        .collect();
    let target = at(inputs.len(), *output, 0);
    let values: Vec<(&str, Value)> = ["a", "b", "c"]
        .into_iter()
        .zip(tensors.iter().map(Value::from))
        .collect();
    let plan = planned(text, &values, &target, request, tuning)?;
    let again = if request == WriteMode::Add {
        output.size()
    } else {
        0
    };
    let bytes = count * (dtypes.iter().map(|d| d.size()).sum::<u64>() + again);
    let names: Vec<&str> = dtypes.iter().map(|d| d.name()).collect();
    Some(Timed {
        label: format!(
            "{text} {} +{off} {request:?}{}",
            names.join(","),
            cut(tuning)
        ),
        plan,
        bytes,
        tuning,
        text,
        dtype: *output,
    })
}

/// An expression over matrices of which some are transposed, or rows or columns that are broadcast.
fn matrices(
    text: &'static str,
    dtype: DType,
    shapes: &[(&'static str, Option<[i64; 2]>)],
    tuning: Option<Tuning>,
) -> Option<Timed> {
    let side = if dtype.size() == 4 {
        16384
    } else {
        16384 + 8192
    };
    let at = |place: u64| BASE + place * (ARRAY + (1 << 28) + 4096);
    let shape = |kind: &str| match kind {
        "row" => vec![side],
        "column" => vec![side, 1],
        _ => vec![side, side],
    };
    let tensors: Vec<Tensor> = (0..)
        .zip(shapes)
        .map(|(place, (kind, transposed))| {
            let tensor = Tensor::new(dtype, &shape(kind), at(place));
            if transposed.is_some() {
                tensor.with_strides(&[1, side.cast_signed()])
            } else {
                tensor
            }
        })
        .collect();
    let target = Tensor::new(dtype, &[side, side], at(3));
    let values: Vec<(&str, Value)> = ["a", "b"]
        .into_iter()
        .zip(tensors.iter().map(Value::from))
        .collect();
    let plan = planned(text, &values, &target, WriteMode::Write, tuning)?;
    let elements: u64 = tensors
        .iter()
        .chain([&target])
        .map(|tensor| tensor.shape.iter().product::<u64>())
        .sum();
    let kinds: Vec<String> = shapes
        .iter()
        .map(|(kind, transposed)| {
            format!(
                "{}{kind}",
                if transposed.is_some() {
                    "transposed "
                } else {
                    ""
                }
            )
        })
        .collect();
    Some(Timed {
        label: format!("{text} of {} {}", kinds.join(" and "), dtype.name(),),
        plan,
        bytes: elements * dtype.size(),
        tuning,
        text,
        dtype,
    })
}

/// A reduction of a matrix, over an axis or all.
fn reduction(of: &'static str, dtype: DType, columns: u64, axis: Option<i64>) -> Option<Timed> {
    let rows = ARRAY / dtype.size() / columns;
    let input = Tensor::new(dtype, &[rows, columns], BASE);
    let shape = match axis {
        None => vec![],
        Some(0) => vec![columns],
        Some(_) => vec![rows],
    };
    let output = Tensor::new(dtype, &shape, BASE + 2 * ARRAY);
    let axes = axis.map(|axis| vec![axis]);
    let plan = reduce(of, &input, axes.as_deref(), &output, WriteMode::Write).ok()?;
    Some(Timed {
        label: format!(
            "{of} {} [{rows}, {columns}] over {}",
            dtype.name(),
            axis.map_or("all".to_owned(), |axis| axis.to_string())
        ),
        plan,
        bytes: ARRAY + shape.iter().product::<u64>() * dtype.size(),
        tuning: None,
        text: of,
        dtype,
    })
}

/// The kernels to time: the cuts into blocks, then functions with the default cut.
pub fn timed() -> Vec<Timed> {
    let all = [
        cuts(),
        functions(),
        other_types(),
        long_functions(),
        shapes(),
        reductions(),
    ];
    all.into_iter().flatten().flatten().collect()
}

fn cuts() -> Vec<Option<Timed>> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16] {
        for threads in [128, 256, 512] {
            for unroll in [1, 2, 4, 8] {
                let tuning = Some(Tuning { threads, unroll });
                all.push(one("identity(a)", &[dtype; 2], 0, WriteMode::Write, tuning));
                all.push(one("a + b", &[dtype; 3], 0, WriteMode::Write, tuning));
            }
        }
    }
    all
}

fn functions() -> Vec<Option<Timed>> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let mut add = |text, arrays: usize, off, mode| {
            all.push(one(text, &vec![dtype; arrays], off, mode, None));
        };
        for text in [
            "relu(a)",
            "sigmoid(a)",
            "tanh(a)",
            "gelu(a)",
            "gelu_tanh(a)",
            "exp(a)",
            "a * 2.5",
        ] {
            add(text, 2, 0, WriteMode::Write);
        }
        add("a * b", 3, 0, WriteMode::Write);
        add("relu(a * b + c)", 4, 0, WriteMode::Write);
        add("relu(a)", 2, 0, WriteMode::Add);
        add("relu(a)", 2, 1, WriteMode::Write);
        add("relu(a)", 2, 2, WriteMode::Write);
    }
    all
}

/// Other types, and from one to another.
fn other_types() -> Vec<Option<Timed>> {
    let same = [DType::F64, DType::U8, DType::I32, DType::F8E4M3];
    let same = same.map(|dtype| one("relu(a)", &[dtype; 2], 0, WriteMode::Write, None));
    let converted = [[DType::F32, DType::F16], [DType::F16, DType::F32]];
    let converted = converted.map(|types| one("identity(a)", &types, 0, WriteMode::Write, None));
    same.into_iter().chain(converted).collect()
}

/// Functions that compute long, with one access at once and with two.
fn long_functions() -> Vec<Option<Timed>> {
    let mut all = Vec::new();
    for unroll in [1, 2] {
        let tuning = Some(Tuning {
            unroll,
            ..Tuning::default()
        });
        for text in [
            "gelu(a)",
            "gelu_tanh(a)",
            "silu(a)",
            "sigmoid(a)",
            "tanh(a)",
        ] {
            all.push(one(text, &[DType::F16; 2], 0, WriteMode::Write, tuning));
        }
    }
    all.push(one("silu(a)", &[DType::F16; 2], 0, WriteMode::Write, None));
    all
}

/// Transposed matrices, rows and columns.
fn shapes() -> Vec<Option<Timed>> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::U8] {
        let transposed = Some([1, 0]);
        all.push(matrices(
            "identity(a)",
            dtype,
            &[("matrix", transposed)],
            None,
        ));
        for shapes in [
            [("matrix", None), ("matrix", transposed)],
            [("matrix", None), ("row", None)],
            [("matrix", None), ("column", None)],
        ] {
            all.push(matrices("a + b", dtype, &shapes, None));
        }
    }
    all
}

fn reductions() -> Vec<Option<Timed>> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16] {
        for columns in [128, 4096, 65536] {
            for axis in [Some(1), Some(0)] {
                all.push(reduction("sum", dtype, columns, axis));
            }
        }
        for of in ["sum", "mean", "max", "norm2"] {
            all.push(reduction(of, dtype, 4096, None));
        }
        for of in ["mean", "max", "norm2"] {
            all.push(reduction(of, dtype, 4096, Some(1)));
        }
    }
    all
}

/// Gigabytes a second of the device's own copy: bytes read and written.
pub fn copy_rate(device: &Device) -> Result<f64, Failure> {
    device.fill(BASE, 0x3c, 5 * ARRAY)?;
    let times = device.times(3, 21, &mut || device.copy(BASE + ARRAY + 4096, BASE, ARRAY))?;
    Ok(2.0 * ARRAY as f64 / times[times.len() / 2] / 1e6)
}

/// Times one; its rate next to the copy's.
pub fn time(
    device: &Device,
    kernels: &[Kernel],
    timed: &Timed,
    copy: f64,
) -> Result<Json, Failure> {
    if kernels.is_empty() || kernels.len() != timed.plan.launches.len() {
        return Err("nothing to time".to_owned());
    }
    let times = device.times(3, 15, &mut || {
        for (kernel, launch) in kernels.iter().zip(&timed.plan.launches) {
            device.start(kernel, launch, WORKSPACE)?;
        }
        Ok(())
    })?;
    let median = times[times.len() / 2];
    let rate = timed.bytes as f64 / median / 1e6;
    Ok(json!({
        "label": timed.label,
        "text": timed.text,
        "output": timed.dtype.name(),
        "threads": timed.tuning.map(|tuning| tuning.threads),
        "unroll": timed.tuning.map(|tuning| tuning.unroll),
        "bytes": timed.bytes,
        "ms": median,
        "gb_per_s": rate,
        "of_copy": rate / copy,
    }))
}
