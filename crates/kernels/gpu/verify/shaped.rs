//! A check of arrays of given shapes, strides and offsets: how it is planned, and how its result is judged.

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
pub struct ShapedCase<'a> {
    pub group: &'static str,
    pub text: &'a str,
    pub formula: Scalar,
    pub inputs: Vec<Input<'a>>,
    pub numbers: &'a [(&'static str, Number)],
    pub output: Input<'a>,
    pub request: WriteMode,
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

pub fn shaped(spec: &ShapedCase, random: &mut Random) -> Result<Case, String> {
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
    let wanted = ExpectedOutput {
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
struct ExpectedOutput {
    dtype: DType,
    adds: bool,
    formula: Scalar,
    /// Each input's value for each of the output's elements.
    values: Vec<Vec<Datum>>,
    held: Vec<u8>,
    /// Where each of the output's elements is.
    places: Vec<usize>,
}

impl ExpectedOutput {
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
