//! The checks of shapes: offsets, sizes, broadcasting, strides, whole expressions; values in double are exact or nearly so.

use warpcc_kernels::dtype::{DType, Family};
use warpcc_kernels::elementwise::{self, Value};
use warpcc_kernels::expression::Number;
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Tensor, WriteMode};

use super::{Case, Places, elements};
use crate::reference::{Datum, Random, convert, write};

/// A value of an expression at one place, from the inputs' values there.
type Scalar = fn(&[f64]) -> f64;

/// An array's type, shape, steps if its own, and elements that it is off an aligned place.
pub type Input<'a> = (DType, &'a [u64], Option<&'a [i64]>, u64);

/// Shapes, steps, sizes, offsets: an expression whose value in double is exact or nearly so.
struct Shaped<'a> {
    group: &'static str,
    text: &'a str,
    formula: Scalar,
    inputs: Vec<Input<'a>>,
    numbers: &'a [(&'static str, Number)],
    output: Input<'a>,
    request: WriteMode,
}

pub fn dense(shape: &[u64]) -> Vec<i64> {
    let mut steps = vec![1i64; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        steps[d] = steps[d + 1] * shape[d + 1] as i64;
    }
    steps
}

/// Lowest and highest offset.
pub fn reach(shape: &[u64], steps: &[i64]) -> (i64, i64) {
    let (mut low, mut high) = (0, 0);
    for (&size, &step) in shape.iter().zip(steps) {
        let far = (size.max(1) as i64 - 1) * step;
        low += far.min(0);
        high += far.max(0);
    }
    (low, high)
}

/// The offset of each element of `target` in an array of `shape` that broadcasts to it.
pub fn offsets(target: &[u64], shape: &[u64], steps: &[i64]) -> Vec<i64> {
    let count: u64 = target.iter().product();
    let missing = target.len() - shape.len();
    (0..count)
        .map(|mut number| {
            let mut offset = 0;
            for d in (0..target.len()).rev() {
                let here = number % target[d];
                number /= target[d];
                if d >= missing && shape[d - missing] != 1 {
                    offset += here as i64 * steps[d - missing];
                }
            }
            offset
        })
        .collect()
}

/// An input where it lies, and what it has at each place of the output.
struct Placed {
    tensor: Tensor,
    start: u64,
    bytes: Vec<u8>,
    values: Vec<Datum>,
}

fn placed(input: &Input, target: &[u64], places: &mut Places, random: &mut Random) -> Placed {
    let &(dtype, shape, steps, off) = input;
    let steps = steps.map_or_else(|| dense(shape), <[i64]>::to_vec);
    let (low, high) = reach(shape, &steps);
    let is_empty = shape.contains(&0);
    let count = if is_empty { 0 } else { (high - low + 1) as u64 };
    let mut bytes = Vec::new();
    for _ in 0..count {
        // Small halves: sums and products of a few are exact in every floating type.
        let value = (random.below(33) as f64 - 16.0) / 2.0;
        let value = match dtype.family() {
            Family::Float => Datum::F(value),
            _ => Datum::I(value as i128),
        };
        write(dtype, value, &mut bytes);
    }
    let start = places.take(bytes.len() as u64, off, dtype.size());
    let origin = start.wrapping_add_signed(-low * dtype.size() as i64);
    let all = elements(dtype, &bytes);
    let values = match is_empty {
        true => Vec::new(),
        false => offsets(target, shape, &steps)
            .into_iter()
            .map(|offset| all[(offset - low) as usize])
            .collect(),
    };
    Placed {
        tensor: Tensor::new(dtype, shape, origin).with_strides(&steps),
        start,
        bytes,
        values,
    }
}

/// The content of an output of this many elements before the kernel. Gaps keep it, whatever the request.
fn held_before(dtype: DType, span: u64, random: &mut Random) -> Vec<u8> {
    let mut before = Vec::new();
    for _ in 0..span {
        write(dtype, Datum::F(random.below(9) as f64), &mut before);
    }
    let size = dtype.size();
    match dtype.family() {
        Family::Float => before,
        _ => (0..span * size)
            .map(|i| if i % size == 0 { 3 } else { 0 })
            .collect(),
    }
}

fn shaped(spec: &Shaped, random: &mut Random) -> Result<Case, String> {
    let mut places = Places::new();
    let (dtype, shape, own_steps, off) = spec.output;
    let inputs: Vec<Placed> = spec
        .inputs
        .iter()
        .map(|input| placed(input, shape, &mut places, random))
        .collect();
    let steps = own_steps.map_or_else(|| dense(shape), <[i64]>::to_vec);
    let (low, high) = reach(shape, &steps);
    let is_empty = shape.contains(&0);
    let span = if is_empty { 0 } else { (high - low + 1) as u64 };
    let size = dtype.size();
    let start = places.take(span * size, off, size);
    let origin = start.wrapping_add_signed(-low * size as i64);
    let target = Tensor::new(dtype, shape, origin).with_strides(&steps);
    let before = held_before(dtype, span, random);
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let arrays = inputs.iter().map(|input| Value::from(&input.tensor));
    let numbers = spec.numbers.iter();
    let values: Vec<(&str, Value)> = names
        .iter()
        .map(String::as_str)
        .zip(arrays)
        .chain(numbers.map(|(name, number)| (*name, Value::Number(*number))))
        .collect();
    let expr = parse(spec.text).map_err(|error| error.to_string())?;
    let plan = elementwise::fused(&expr, &values, &target, spec.request)
        .map_err(|error| error.to_string())?;
    let written = match is_empty {
        true => Vec::new(),
        false => offsets(shape, shape, &steps),
    };
    let label = format!(
        "{} {:?} -> {dtype} {shape:?} {own_steps:?} +{off} {:?}",
        spec.text, spec.inputs, spec.request
    );
    let (inputs, values) = inputs
        .into_iter()
        .map(|input| ((input.start, input.bytes), input.values))
        .unzip();
    let wanted = Wanted {
        dtype,
        adds: spec.request == WriteMode::Add,
        formula: spec.formula,
        values,
        held: before.clone(),
        places: written.iter().map(|each| (each - low) as usize).collect(),
    };
    Ok(Case {
        group: spec.group,
        asks: None,
        label,
        plan,
        inputs,
        output: (start, span * size),
        before: Some(before),
        workspace: 0,
        judge: Box::new(move |bytes| wanted.compare(bytes)),
    })
}

/// The expected content of an output.
struct Wanted {
    dtype: DType,
    adds: bool,
    formula: Scalar,
    /// Each input's value for each of the output's elements.
    values: Vec<Vec<Datum>>,
    held: Vec<u8>,
    /// Where each of the output's elements is.
    places: Vec<usize>,
}

impl Wanted {
    fn compare(&self, bytes: &[u8]) -> Result<(), String> {
        let results = elements(self.dtype, bytes);
        let held = elements(self.dtype, &self.held);
        let mut written = vec![false; held.len()];
        for (number, &place) in self.places.iter().enumerate() {
            written[place] = true;
            let values = self.values.iter();
            let given: Vec<f64> = values.map(|each| each[number].real()).collect();
            let mut value = (self.formula)(&given);
            if self.adds {
                value += held[place].real();
            }
            let want = convert(self.dtype, Datum::F(value));
            if !self.is_near(want, results[place]) {
                return Err(format!(
                    "[{number}] {given:?}: {:?}, expected {want:?}",
                    results[place]
                ));
            }
        }
        for (place, written) in written.iter().enumerate() {
            if !written && results[place] != held[place] {
                return Err(format!("place {place}, which is not the output's, changed"));
            }
        }
        Ok(())
    }

    fn is_near(&self, want: Datum, result: Datum) -> bool {
        match (want, result) {
            (Datum::F(a), Datum::F(b)) => {
                a == b
                    || (a - b).abs() <= a.abs() * 4e-3 && self.dtype.size() < 4
                    || (a - b).abs() <= 1e-6 * a.abs()
            }
            (a, b) => a == b,
        }
    }
}

/// Sizes around every edge, and every offset of inputs against the output.
pub fn offsets_and_sizes(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let types = [
        (DType::F16, DType::F32, DType::F16),
        (DType::F32, DType::F32, DType::F32),
        (DType::F16, DType::F16, DType::F16),
        (DType::I8, DType::F32, DType::F64),
        (DType::F8E5M2, DType::BF16, DType::F32),
        (DType::F64, DType::F64, DType::F64),
    ];
    for (a, b, out) in types {
        for n in [0u64, 1, 2, 3, 7, 8, 9, 31, 255, 1023, 4096, 4097, 40_001] {
            for (i, j, k) in [
                (0, 0, 0),
                (1, 1, 1),
                (0, 0, 1),
                (4, 0, 0),
                (2, 2, 6),
                (3, 5, 7),
            ] {
                let shape = [n];
                let spec = Shaped {
                    group: "offsets",
                    text: "x0 * 2 + x1",
                    formula: |v| v[0] * 2.0 + v[1],
                    inputs: vec![(a, &shape, None, i), (b, &shape, None, j)],
                    numbers: &[],
                    output: (out, &shape, None, k),
                    request: if n % 2 == 0 {
                        WriteMode::Write
                    } else {
                        WriteMode::Add
                    },
                };
                cases.push(shaped(&spec, random));
            }
        }
    }
}

/// A shape, and steps if its own.
type Form = (&'static [u64], Option<&'static [i64]>);

/// Two inputs' and the output's.
const FORMS: [(Form, Form, Form); 21] = [
    ((&[33, 64], None), (&[64], None), (&[33, 64], None)),
    ((&[33, 65], None), (&[65], None), (&[33, 65], None)),
    ((&[33, 64], None), (&[33, 1], None), (&[33, 64], None)),
    ((&[33, 1], None), (&[1, 64], None), (&[33, 64], None)),
    ((&[], None), (&[7, 9], None), (&[7, 9], None)),
    ((&[], None), (&[], None), (&[1, 1], None)),
    (
        (&[5, 1, 7, 1], None),
        (&[3, 1, 8], None),
        (&[5, 3, 7, 8], None),
    ),
    (
        (&[40, 50], Some(&[1, 40])),
        (&[40, 50], None),
        (&[40, 50], None),
    ),
    (
        (&[40, 50], Some(&[1, 40])),
        (&[40, 50], Some(&[1, 40])),
        (&[40, 50], Some(&[1, 40])),
    ),
    (
        (&[40, 50], Some(&[100, 2])),
        (&[40, 50], Some(&[-50, -1])),
        (&[40, 50], None),
    ),
    (
        (&[40, 50], None),
        (&[50], Some(&[3])),
        (&[40, 50], Some(&[64, 1])),
    ),
    (
        (&[40, 50], None),
        (&[50], None),
        (&[40, 50], Some(&[150, 3])),
    ),
    (
        (&[2, 3, 4, 5, 6, 7], Some(&[1, 2, 6, 24, 120, 720])),
        (&[5, 1, 7], None),
        (&[2, 3, 4, 5, 6, 7], None),
    ),
    ((&[1000], Some(&[2])), (&[1000], None), (&[1000], None)),
    // A slice of rows, of an odd length.
    (
        (&[40, 51], Some(&[64, 1])),
        (&[51], None),
        (&[40, 51], None),
    ),
    ((&[0, 5], None), (&[5], None), (&[0, 5], None)),
    (
        (&[12, 1, 16], None),
        (&[12, 34, 16], None),
        (&[12, 34, 16], Some(&[-544, 16, 1])),
    ),
    // Transposed: neighbours in another dimension than the output's.
    (
        (&[64, 96], Some(&[1, 64])),
        (&[96], None),
        (&[64, 96], None),
    ),
    (
        (&[3, 32, 48], Some(&[1536, 1, 32])),
        (&[32, 1], None),
        (&[3, 32, 48], Some(&[1536, 48, 1])),
    ),
    (
        (&[8, 16, 32], Some(&[1, 8, 128])),
        (&[8, 16, 32], Some(&[512, 1, 16])),
        (&[8, 16, 32], None),
    ),
    (
        (&[16, 48], Some(&[-1, 32])),
        (&[16, 48], Some(&[1, 32])),
        (&[16, 48], Some(&[64, 1])),
    ),
];

pub fn broadcasting(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let types = [
        (DType::F32, DType::F32, DType::F32),
        (DType::F16, DType::F32, DType::BF16),
        (DType::F64, DType::I32, DType::F64),
        (DType::I8, DType::I8, DType::I32),
        (DType::F16, DType::F16, DType::F16),
        (DType::I8, DType::I8, DType::I8),
    ];
    // So large that a block's warps have squares both ways.
    let large: (Form, Form, Form) = (
        (&[256, 512], Some(&[1, 256])),
        (&[512], None),
        (&[256, 512], None),
    );
    let each = FORMS.iter().map(|form| (*form, &types[..]));
    for ((x, y, out), types) in each.chain([(large, &types[4..])]) {
        for &(a, b, c) in types {
            for off in [0, 1, 8] {
                let spec = Shaped {
                    group: "broadcasting",
                    text: "x0 * 3 - x1",
                    formula: |v| v[0] * 3.0 - v[1],
                    inputs: vec![(a, x.0, x.1, off), (b, y.0, y.1, 0)],
                    numbers: &[],
                    output: (c, out.0, out.1, off / 2),
                    request: if off == 1 {
                        WriteMode::Add
                    } else {
                        WriteMode::Write
                    },
                };
                cases.push(shaped(&spec, random));
            }
        }
    }
}

/// Inputs of several types, some broadcast, at several offsets.
fn twenty<'a>(shape: &'a [u64]) -> Vec<Input<'a>> {
    let types = [
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::I16,
        DType::I32,
    ];
    (0..20)
        .map(|i| {
            let own = if i % 3 == 0 { &shape[1..] } else { shape };
            (types[i % 6], own, None, i as u64 % 5)
        })
        .collect()
}

pub fn fused(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let many: String = (0..20)
        .map(|i| format!("x{i} * {}", i + 1))
        .collect::<Vec<_>>()
        .join(" + ");
    let shape: &[u64] = &[17, 129];
    let twenty = twenty(shape);
    let f = |dtype| (dtype, shape, None, 0);
    let h = DType::F16;
    let fused = |text, formula, inputs, output| Shaped {
        group: "fused",
        text,
        formula,
        inputs,
        numbers: &[],
        output,
        request: WriteMode::Write,
    };
    let (f32, f64) = (DType::F32, DType::F64);
    let all: Vec<Shaped> = vec![
        fused(
            "relu(x0 * x1 + x2)",
            |v| (v[0] * v[1] + v[2]).max(0.0),
            vec![f(h), f(h), (h, &shape[1..], None, 0)],
            f(h),
        ),
        Shaped {
            numbers: &[("alpha", Number::Float(2.5))],
            request: WriteMode::Add,
            ..fused(
                "relu(x0 * alpha + x1) + relu(x0 * alpha + x1)",
                |v| 2.0 * (v[0] * 2.5 + v[1]).max(0.0),
                vec![f(f32), f(f32)],
                f(f32),
            )
        },
        Shaped {
            numbers: &[("k", Number::Int(-3))],
            ..fused(
                "where(x0 > 0, x0, x1 * k)",
                |v| if v[0] > 0.0 { v[0] } else { v[1] * -3.0 },
                vec![f(DType::I32), f(DType::I16)],
                f(DType::I64),
            )
        },
        fused(
            "(x0 > x1) + (x0 == x1) * 2",
            |v| f64::from(v[0] > v[1]) + 2.0 * f64::from(v[0] == v[1]),
            vec![f(DType::BF16), f(DType::F8E4M3)],
            f(DType::U8),
        ),
        fused(
            "x0 // 3 * 100 + x0 % 3",
            |v| (v[0] / 3.0).floor() * 100.0 + v[0].rem_euclid(3.0),
            vec![f(DType::I64)],
            f(f64),
        ),
        fused(
            "clip(x0, -1, 1) ** 2 - lerp(x1, x0, 0.5)",
            |v| v[0].clamp(-1.0, 1.0).powi(2) - (v[1] + v[0]) / 2.0,
            vec![f(f32), f(f64)],
            f(f64),
        ),
        fused("2.5", |_| 2.5, vec![], f(DType::BF16)),
        fused(
            &many,
            |v| v.iter().enumerate().map(|(i, x)| x * (i + 1) as f64).sum(),
            twenty,
            f(f32),
        ),
    ];
    for spec in &all {
        cases.push(shaped(spec, random));
    }
}
