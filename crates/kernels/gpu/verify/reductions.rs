//! The checks of reductions: over rows, columns, several axes, found in parts, of nothing.

use warpcc_kernels::dtype::{DType, Family};
use warpcc_kernels::plan::{Tensor, WriteMode};
use warpcc_kernels::reduce::reduce;
use warpcc_kernels::reductions::{self, Reduction};

use super::shaped::{Input, dense, offsets, reach};
use super::{Case, Places, compare, elements};
use crate::reference::{Datum, Expected, Random, convert, write};

/// One reduction of an array.
struct Reduced<'a> {
    of: &'static Reduction,
    input: Input<'a>,
    axes: &'a [i64],
    output: DType,
    request: WriteMode,
    keep: bool,
}

/// An element of a reduction's input.
fn element(of: &Reduction, dtype: DType, random: &mut Random) -> Datum {
    let floating = dtype.family() == Family::Float;
    let special = of.name.starts_with("nan") || matches!(of.name, "max" | "min");
    let value = match (of.name, floating) {
        // Products stay within reach; truths are mixed.
        ("prod" | "nanprod", true) => Datum::F(0.9 + 0.2 * random.unit()),
        ("prod" | "nanprod", false) => Datum::I([1, 1, 1, 3][random.below(4) as usize]),
        ("any", _) => Datum::I(i128::from(random.below(50) == 0)),
        ("all", _) => Datum::I(i128::from(random.below(50) != 0)),
        (_, true) => Datum::F(random.unit() * 20.0 - 8.0),
        (_, false) if dtype.is_signed() => Datum::I(i128::from(random.below(200)) - 100),
        (_, false) => Datum::I(i128::from(random.below(200))),
    };
    match floating && special && random.below(97) == 0 {
        true => Datum::F(f64::NAN),
        false => value,
    }
}

/// Each element's value, gathered by its result.
struct Gathered {
    dtype: DType,
    bytes: Vec<u8>,
    shape: Vec<u64>,
    steps: Vec<i64>,
    /// The shape of the input, reduced axes of size 1.
    full: Vec<u64>,
}

impl Gathered {
    fn gather(&self) -> Vec<Vec<Datum>> {
        let all = elements(self.dtype, &self.bytes);
        let results: u64 = self.full.iter().product();
        let mut gathered: Vec<Vec<Datum>> = vec![Vec::new(); results as usize];
        if !self.shape.contains(&0) {
            let (low, _) = reach(&self.shape, &self.steps);
            let own = offsets(&self.shape, &self.shape, &self.steps);
            let places: Vec<i64> = offsets(&self.shape, &self.full, &dense(&self.full));
            for (element, result) in own.into_iter().zip(places) {
                gathered[result as usize].push(all[(element - low) as usize]);
            }
        }
        gathered
    }
}

/// The shape that is left, with the reduced axes of size 1 and without them.
fn left(shape: &[u64], axes: &[i64]) -> (Vec<u64>, Vec<u64>) {
    let is_reduced = |axis: usize| {
        let mut axes = axes.iter();
        axes.any(|each| each.rem_euclid(shape.len() as i64) == axis as i64)
    };
    let sizes = || shape.iter().copied().enumerate();
    let full = sizes().map(|(axis, size)| if is_reduced(axis) { 1 } else { size });
    let short = sizes().filter(|(axis, _)| !is_reduced(*axis));
    (full.collect(), short.map(|(_, size)| size).collect())
}

fn reduced(spec: &Reduced, random: &mut Random) -> Result<Case, String> {
    let (dtype, shape, own_steps, off) = spec.input;
    let steps = own_steps.map_or_else(|| dense(shape), <[i64]>::to_vec);
    let (low, high) = reach(shape, &steps);
    let is_empty = shape.contains(&0);
    let count = if is_empty { 0 } else { (high - low + 1) as u64 };
    let mut bytes = Vec::new();
    for _ in 0..count {
        let value = element(spec.of, dtype, random);
        write(dtype, convert(dtype, value), &mut bytes);
    }
    let mut places = Places::new();
    let start = places.take(bytes.len() as u64, off, dtype.size());
    let origin = start.wrapping_add_signed(-low * dtype.size() as i64);
    let input = Tensor::new(dtype, shape, origin).with_strides(&steps);
    let (full, short) = left(shape, spec.axes);
    let out_shape = if spec.keep { &full } else { &short };
    let results: u64 = out_shape.iter().product();
    let size = spec.output.size();
    let at = places.take(results * size, off, size);
    let target = Tensor::new(spec.output, out_shape, at);
    let plan = reduce(spec.of.name, &input, Some(spec.axes), &target, spec.request)
        .map_err(|error| error.to_string())?;
    let workspace = places.take(plan.workspace, 0, 1);
    let mut before = Vec::new();
    for number in 0..results {
        let value = Datum::I(i128::from(number % 7));
        write(spec.output, convert(spec.output, value), &mut before);
    }
    let (of, output, request) = (spec.of, spec.output, spec.request);
    let held = before.clone();
    let label = format!(
        "{} {dtype} {shape:?} {own_steps:?} over {:?} -> {output} {request:?}",
        of.name, spec.axes
    );
    let given = Gathered {
        dtype,
        bytes: bytes.clone(),
        shape: shape.to_vec(),
        steps,
        full,
    };
    Ok(Case {
        group: "reduce",
        asks: None,
        label,
        plan,
        inputs: vec![(start, bytes)],
        output: (at, results * size),
        before: Some(before),
        workspace,
        judge: Box::new(move |bytes| {
            let held = elements(output, &held);
            // Only now: most cases of a host's test are not judged.
            let gathered = given.gather();
            compare(output, bytes, |index| {
                let want = reduction(of, dtype, &gathered[index]);
                let before = (request == WriteMode::Add).then(|| held[index]);
                (want, before, format!("{} values", gathered[index].len()))
            })
        }),
    })
}

/// A sum in double with what rounding lost (Neumaier): a plain one is further off than a compensated kernel.
fn total(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut plain, mut lost) = (0.0f64, 0.0f64, 0.0f64);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() {
            (sum - next) + value
        } else {
            (value - next) + sum
        };
        sum = next;
        plain += value;
    }
    // Where an infinity or NaN came in, nothing was lost that counts.
    if plain.is_finite() { sum + lost } else { plain }
}

/// The expected result of a reduction.
fn reduction(of: &'static Reduction, dtype: DType, values: &[Datum]) -> Expected {
    let result = reductions::result_type(of, dtype);
    let exact = |value| Expected {
        value,
        error: 0.0,
        dtype: result,
    };
    let reals = || values.iter().map(|v| v.real());
    let floating = matches!(values.first(), Some(Datum::F(_)))
        || (values.is_empty() && dtype.family() == Family::Float);
    match of.name {
        "any" => exact(Datum::I(i128::from(reals().any(|v| v != 0.0)))),
        "all" => exact(Datum::I(i128::from(reals().all(|v| v != 0.0)))),
        "count_nonzero" => exact(Datum::I(reals().filter(|v| *v != 0.0).count() as i128)),
        name if floating || matches!(name, "mean" | "norm2") => {
            let (value, scale) = of_reals(name, &reals().collect::<Vec<_>>());
            let unit = match result {
                DType::F32 => f64::from(f32::EPSILON),
                _ => f64::EPSILON,
            };
            Expected {
                value: Datum::F(value),
                error: unit * 4.0 * scale,
                dtype: result,
            }
        }
        name => {
            let whole = |v: &Datum| match v {
                Datum::I(v) => *v,
                Datum::F(_) => 0,
            };
            let value = of_wholes(name, &values.iter().map(whole).collect::<Vec<_>>());
            exact(convert(result, Datum::I(value)))
        }
    }
}

/// A reduction of floating values, and that of which a few units may be off: 0 where it is exact.
fn of_reals(name: &str, values: &[f64]) -> (f64, f64) {
    let reals = || values.iter().copied();
    let numbers = || reals().filter(|v| !v.is_nan());
    let n = values.len() as f64;
    let scale = total(numbers().map(f64::abs));
    let or_nan = |pick: fn(f64, f64) -> f64| {
        move |m: f64, v: f64| match m.is_nan() || v.is_nan() {
            true => f64::NAN,
            false => pick(m, v),
        }
    };
    match name {
        "max" => (reals().fold(f64::NEG_INFINITY, or_nan(f64::max)), 0.0),
        "min" => (reals().fold(f64::INFINITY, or_nan(f64::min)), 0.0),
        "mean" => (total(reals()) / n, scale / n.max(1.0)),
        "norm2" => {
            let v = total(reals().map(|v| v * v)).sqrt();
            (v, v)
        }
        "sum" => (total(reals()), scale * 0.5),
        "nansum" => (total(numbers()), scale * 0.5),
        "sumsq" => {
            let v = total(reals().map(|v| v * v));
            (v, v)
        }
        "norm1" => (scale, scale),
        "norm_inf" => (reals().fold(0.0, |m, v| m.max(v.abs())), 0.0),
        _ => {
            let v: f64 = numbers().product();
            (v, v * n.max(1.0))
        }
    }
}

/// A reduction of whole values.
fn of_wholes(name: &str, values: &[i128]) -> i128 {
    let wholes = || values.iter().copied();
    match name {
        "max" => wholes().max().unwrap_or(0),
        "min" => wholes().min().unwrap_or(0),
        "sum" | "nansum" => wholes().sum(),
        "sumsq" => wholes().fold(0i128, |s, v| s.wrapping_add(v.wrapping_mul(v))),
        "norm1" => wholes().map(i128::abs).sum(),
        "norm_inf" => wholes().map(i128::abs).max().unwrap_or(0),
        _ => wholes().fold(1i128, |p, v| {
            convert(DType::I64, Datum::I(p.wrapping_mul(v))).real_or_whole()
        }),
    }
}

/// Each reduction, over rows, columns, several axes, in parts.
pub fn all(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    type Form<'a> = (&'a [u64], Option<&'a [i64]>, &'a [i64]);
    let forms: [Form; 17] = [
        (&[1000], None, &[0]),
        (&[64, 1000], None, &[1]),
        (&[64, 1000], None, &[0]),
        (&[63, 1001], None, &[-1]),
        (&[63, 1001], None, &[0]),
        (&[5, 6, 7, 8], None, &[1, 3]),
        (&[5, 6, 7, 8], None, &[0, 2]),
        (&[5, 6, 7, 8], None, &[2]),
        (&[5, 6, 7, 8], None, &[0, 1, 2, 3]),
        (&[3, 200_000], None, &[1]),
        (&[100_003, 5], None, &[0]),
        (&[20_000, 64], None, &[0]),
        (&[40, 50], Some(&[1, 40]), &[1]),
        (&[40, 50], Some(&[-100, 2]), &[0]),
        (&[7, 1], None, &[1]),
        (&[1, 9], None, &[0]),
        (&[1000, 3], None, &[1]),
    ];
    for (number, of) in reductions::ALL.iter().enumerate() {
        for (place, (shape, steps, axes)) in forms.into_iter().enumerate() {
            let types = [
                DType::F32,
                DType::F16,
                DType::ALL[(number + 3 * place) % 15],
            ];
            for (turn, dtype) in types.into_iter().enumerate() {
                if turn == 1 && place % 2 == 1 {
                    continue;
                }
                let natural = reductions::result_type(of, dtype);
                let output = match (number + place + turn) % 3 {
                    0 => dtype,
                    1 => DType::ALL[random.below(15) as usize],
                    _ => natural,
                };
                let spec = Reduced {
                    of,
                    input: (dtype, shape, steps, if place % 3 == 0 { 1 } else { 0 }),
                    axes,
                    output,
                    request: if place % 4 == 3 {
                        WriteMode::Add
                    } else {
                        WriteMode::Write
                    },
                    keep: (number + place) % 2 == 0,
                };
                cases.push(reduced(&spec, random));
            }
        }
        if of.of_nothing {
            let spec = Reduced {
                of,
                input: (DType::F32, &[4, 0], None, 0),
                axes: &[1],
                output: DType::F32,
                request: WriteMode::Write,
                keep: false,
            };
            cases.push(reduced(&spec, random));
        }
    }
}
