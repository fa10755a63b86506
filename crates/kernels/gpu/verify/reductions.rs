//! The checks of reductions: over rows, columns, several axes, found in parts, of nothing.

use warpcc_kernels::dtype::{DType, Family};
use warpcc_kernels::plan::{Tensor, WriteMode};
use warpcc_kernels::reduce::reduce;
use warpcc_kernels::reductions::{self, Reduction};

use super::{Case, Input, Places, compare, dense, elements, offsets, reach};
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

fn reduced(spec: &Reduced, random: &mut Random) -> Result<Case, String> {
    let (dtype, shape, steps, off) = spec.input;
    let steps = steps.map_or_else(|| dense(shape), <[i64]>::to_vec);
    let (low, high) = reach(shape, &steps);
    let count = if shape.contains(&0) {
        0
    } else {
        (high - low + 1) as u64
    };
    let mut bytes = Vec::new();
    let special = spec.of.name.starts_with("nan") || matches!(spec.of.name, "max" | "min");
    for _ in 0..count {
        let floating = dtype.family() == Family::Float;
        let value = match (spec.of.name, floating) {
            // Products stay within reach; truths are mixed.
            ("prod" | "nanprod", true) => Datum::F(0.9 + 0.2 * random.unit()),
            ("prod" | "nanprod", false) => Datum::I([1, 1, 1, 3][random.below(4) as usize]),
            ("any", _) => Datum::I(i128::from(random.below(50) == 0)),
            ("all", _) => Datum::I(i128::from(random.below(50) != 0)),
            (_, true) => Datum::F(random.unit() * 20.0 - 8.0),
            (_, false) if dtype.is_signed() => Datum::I(i128::from(random.below(200)) - 100),
            (_, false) => Datum::I(i128::from(random.below(200))),
        };
        let value = if floating && special && random.below(97) == 0 {
            Datum::F(f64::NAN)
        } else {
            value
        };
        write(dtype, convert(dtype, value), &mut bytes);
    }
    let mut places = Places::new();
    let start = places.take(bytes.len() as u64, off, dtype.size());
    let origin = start.wrapping_add_signed(-low * dtype.size() as i64);
    let input = Tensor::new(dtype, shape, origin).with_strides(&steps);
    let is_reduced: Vec<bool> = (0..shape.len())
        .map(|axis| {
            spec.axes
                .iter()
                .any(|a| a.rem_euclid(shape.len() as i64) == axis as i64)
        })
        .collect();
    // In the shape of the input, reduced axes of size 1.
    let full: Vec<u64> = shape
        .iter()
        .zip(&is_reduced)
        .map(|(s, r)| if *r { 1 } else { *s })
        .collect();
    let short: Vec<u64> = shape
        .iter()
        .zip(&is_reduced)
        .filter(|(_, r)| !**r)
        .map(|(s, _)| *s)
        .collect();
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
        write(
            spec.output,
            convert(spec.output, Datum::I(i128::from(number % 7))),
            &mut before,
        );
    }
    // Each element's value, gathered by its result. Only when it is judged: most cases of a host's test are not.
    let (whole, given) = (shape.to_vec(), bytes.clone());
    let gather = move || {
        let all = elements(dtype, &given);
        let mut gathered: Vec<Vec<Datum>> = vec![Vec::new(); results as usize];
        if count > 0 {
            let own = offsets(&whole, &whole, &steps);
            let places: Vec<i64> = offsets(&whole, &full, &dense(&full));
            for (element, result) in own.into_iter().zip(places) {
                gathered[result as usize].push(all[(element - low) as usize]);
            }
        }
        gathered
    };
    let (of, output, request) = (spec.of, spec.output, spec.request);
    let held = before.clone();
    let label = format!(
        "{} {dtype} {shape:?} {:?} over {:?} -> {output} {request:?}",
        of.name, spec.input.2, spec.axes
    );
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
            let gathered = gather();
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

fn reduction(of: &'static Reduction, dtype: DType, values: &[Datum]) -> Expected {
    let result = reductions::result_type(of, dtype);
    let unit = if result == DType::F32 {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON
    };
    let n = values.len() as f64;
    let exact = |value| Expected {
        value,
        error: 0.0,
        dtype: result,
    };
    let near = |value: f64, scale: f64| Expected {
        value: Datum::F(value),
        error: unit * 4.0 * scale,
        dtype: result,
    };
    let reals = || values.iter().map(|v| v.real());
    let whole = |v: &Datum| match v {
        Datum::I(v) => *v,
        Datum::F(_) => 0,
    };
    let floating = matches!(values.first(), Some(Datum::F(_)))
        || (values.is_empty() && dtype.family() == Family::Float);
    let scale = total(reals().map(f64::abs).filter(|v| !v.is_nan()));
    match of.name {
        "any" => exact(Datum::I(i128::from(reals().any(|v| v != 0.0)))),
        "all" => exact(Datum::I(i128::from(reals().all(|v| v != 0.0)))),
        "count_nonzero" => exact(Datum::I(reals().filter(|v| *v != 0.0).count() as i128)),
        "max" | "min" if floating => {
            let largest = reals().fold(
                if of.name == "max" {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                },
                |m, v| {
                    if m.is_nan() || v.is_nan() {
                        f64::NAN
                    } else if of.name == "max" {
                        m.max(v)
                    } else {
                        m.min(v)
                    }
                },
            );
            exact(Datum::F(largest))
        }
        "max" => exact(Datum::I(values.iter().map(whole).max().unwrap_or(0))),
        "min" => exact(Datum::I(values.iter().map(whole).min().unwrap_or(0))),
        "mean" => near(total(reals()) / n, scale / n.max(1.0)),
        "norm2" => {
            let v = total(reals().map(|v| v * v)).sqrt();
            near(v, v)
        }
        _ if floating => match of.name {
            "sum" => near(total(reals()), scale * 0.5),
            "nansum" => near(total(reals().filter(|v| !v.is_nan())), scale * 0.5),
            "sumsq" => {
                let v = total(reals().map(|v| v * v));
                near(v, v)
            }
            "norm1" => near(scale, scale),
            "norm_inf" => exact(Datum::F(reals().fold(0.0, |m, v| m.max(v.abs())))),
            _ => {
                let v: f64 = reals().filter(|v| !v.is_nan()).product();
                near(v, v * n.max(1.0))
            }
        },
        _ => {
            let wholes = || values.iter().map(whole);
            exact(convert(
                result,
                Datum::I(match of.name {
                    "sum" | "nansum" => wholes().sum(),
                    "sumsq" => wholes().fold(0i128, |s, v| s.wrapping_add(v.wrapping_mul(v))),
                    "norm1" => wholes().map(i128::abs).sum(),
                    "norm_inf" => wholes().map(i128::abs).max().unwrap_or(0),
                    _ => wholes().fold(1i128, |p, v| {
                        convert(DType::I64, Datum::I(p.wrapping_mul(v))).real_or_whole()
                    }),
                }),
            ))
        }
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
