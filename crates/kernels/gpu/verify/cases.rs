//! The checks by value: functions, conversions, offsets and sizes, broadcasting, fused expressions.

use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise;
use warpcc_kernels::elementwise::Value;
use warpcc_kernels::expression::{Expr, Number};
use warpcc_kernels::functions::{ALL, Function, find};
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Plan, PlanError, Tensor, WriteMode};

#[path = "reductions.rs"]
mod reductions;

use crate::device::BASE;
use crate::reference::{Datum, Expected, Random, convert, expected, is_right, read, write};

/// Bytes around an output that no kernel may touch, and what they hold.
pub const GUARD: u64 = 512;
pub const POISON: u8 = 0xa5;

/// Looks at what the output holds: `Err` says what is wrong.
pub type Judge = Box<dyn Fn(&[u8]) -> Result<(), String> + Send>;

/// A plan, the data it works on, and what must come of it.
pub struct Case {
    pub group: &'static str,
    pub label: String,
    pub plan: Plan,
    pub inputs: Vec<(u64, Vec<u8>)>,
    /// The output's address and bytes; poisoned with `GUARD` bytes around, or holding `before`.
    pub output: (u64, u64),
    pub before: Option<Vec<u8>>,
    pub workspace: u64,
    pub judge: Judge,
    /// A function of dense arrays, for programs in other languages.
    pub asks: Option<Asks>,
}

/// One function of dense arrays: its name, their types, the output's, and whether it is added to.
pub struct Asks {
    pub function: &'static str,
    pub types: Vec<DType>,
    pub output: DType,
    pub request: WriteMode,
}

/// Hands out addresses from the block of memory.
pub struct Places(u64);

impl Places {
    pub fn new() -> Self {
        Self(BASE)
    }

    /// Room for so many bytes, `elements` of `size` bytes after an aligned place.
    pub fn take(&mut self, bytes: u64, elements: u64, size: u64) -> u64 {
        let at = self.0 + GUARD + elements * size;
        self.0 = (at + bytes + GUARD).next_multiple_of(512);
        at
    }
}

/// Reads an array's elements.
pub fn elements(dtype: DType, bytes: &[u8]) -> Vec<Datum> {
    bytes
        .chunks_exact(dtype.size() as usize)
        .map(|each| read(dtype, each))
        .collect()
}

/// Compares each element; the first three that are wrong are told.
pub fn compare(
    output: DType,
    bytes: &[u8],
    mut want: impl FnMut(usize) -> (Expected, Option<Datum>, String),
) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (index, result) in elements(output, bytes).into_iter().enumerate() {
        let (expected, before, given) = want(index);
        if !is_right(result, &expected, output, before) {
            count += 1;
            if wrong.len() < 3 {
                wrong.push(format!(
                    "[{index}] {given} on {before:?}: {result:?}, expected {:?} +- {:e}",
                    expected.value, expected.error
                ));
            }
        }
    }
    if count == 0 {
        Ok(())
    } else {
        Err(format!("{count} wrong: {}", wrong.join("; ")))
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn function_case(
    group: &'static str,
    function: &'static Function,
    types: Vec<DType>,
    output: DType,
    request: WriteMode,
    random: &mut Random,
) -> Result<Case, PlanError> {
    const N: u64 = 1001;
    let mut places = Places::new();
    let mut data: Vec<Vec<u8>> = vec![Vec::new(); types.len()];
    for _ in 0..N {
        let tuple = random.elements(function.name, &types);
        for ((bytes, dtype), value) in data.iter_mut().zip(&types).zip(tuple) {
            write(*dtype, value, bytes);
        }
    }
    let tensors: Vec<Tensor> = types
        .iter()
        .map(|dtype| {
            let at = places.take(N * dtype.size(), random.below(17), dtype.size());
            Tensor::new(*dtype, &[N], at)
        })
        .collect();
    let at = places.take(N * output.size(), random.below(17), output.size());
    let target = Tensor::new(output, &[N], at);
    let before = (request == WriteMode::Add).then(|| {
        let mut bytes = Vec::new();
        for _ in 0..N {
            write(output, random.element(output), &mut bytes);
        }
        bytes
    });
    let expr = Expr::call(
        function.name,
        NAMES
            .iter()
            .take(types.len())
            .map(|name| Expr::name(name))
            .collect(),
    )?;
    let values: Vec<(&str, Value)> = NAMES
        .into_iter()
        .zip(tensors.iter().map(Value::from))
        .collect();
    let plan = elementwise::fused(&expr, &values, &target, request)?;
    let given: Vec<Vec<Datum>> = data
        .iter()
        .zip(&types)
        .map(|(bytes, dtype)| elements(*dtype, bytes))
        .collect();
    let held = before.as_ref().map(|bytes| elements(output, bytes));
    let names: Vec<&str> = types.iter().map(|each| each.name()).collect();
    let label = format!(
        "{}({}) {request:?} {output}",
        function.name,
        names.join(", ")
    );
    let asks = Asks {
        function: function.name,
        types: types.clone(),
        output,
        request,
    };
    Ok(Case {
        group,
        label,
        plan,
        asks: Some(asks),
        inputs: tensors
            .iter()
            .zip(data)
            .map(|(tensor, bytes)| (tensor.address, bytes))
            .collect(),
        output: (at, N * output.size()),
        before,
        workspace: 0,
        judge: Box::new(move |bytes| {
            compare(output, bytes, |index| {
                let arguments: Vec<Datum> = given.iter().map(|each| each[index]).collect();
                let want = expected(function, &types, &arguments);
                (
                    want,
                    held.as_ref().map(|held| held[index]),
                    format!("{arguments:?}"),
                )
            })
        }),
    })
}

/// Each function with every type, and with mixed ones.
fn functions(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    for (number, function) in ALL.iter().enumerate() {
        let mut combinations: Vec<Vec<DType>> = DType::ALL
            .iter()
            .map(|dtype| vec![*dtype; function.arity])
            .collect();
        if function.arity > 1 {
            for _ in 0..5 {
                combinations.push(
                    (0..function.arity)
                        .map(|_| DType::ALL[random.below(15) as usize])
                        .collect(),
                );
            }
        }
        for (place, types) in combinations.into_iter().enumerate() {
            let Some(natural) = function.value_of(&types) else {
                continue;
            };
            // Its own type shows errors best; others in turn.
            let output = match (number + place) % 3 {
                0 => DType::ALL[random.below(15) as usize],
                1 => types[0],
                _ => natural,
            };
            let request = if (number + place) % 5 == 0 {
                WriteMode::Add
            } else {
                WriteMode::Write
            };
            cases.push(
                function_case("functions", function, types, output, request, random)
                    .map_err(|error| format!("{}: {error}", function.name)),
            );
        }
    }
}

fn conversions(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let identity = &ALL[0];
    for from in DType::ALL {
        for to in DType::ALL {
            for request in [WriteMode::Write, WriteMode::Add] {
                cases.push(
                    function_case("conversions", identity, vec![from], to, request, random)
                        .map_err(|error| error.to_string()),
                );
            }
        }
    }
}

/// A value of an expression at one place, from the inputs' values there.
type Scalar = fn(&[f64]) -> f64;

/// An array's type, shape, steps if its own, and elements that it is off an aligned place.
type Input<'a> = (DType, &'a [u64], Option<&'a [i64]>, u64);

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

fn dense(shape: &[u64]) -> Vec<i64> {
    let mut steps = vec![1i64; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        steps[d] = steps[d + 1] * shape[d + 1] as i64;
    }
    steps
}

/// Lowest and highest offset.
fn reach(shape: &[u64], steps: &[i64]) -> (i64, i64) {
    let (mut low, mut high) = (0, 0);
    for (&size, &step) in shape.iter().zip(steps) {
        let far = (size.max(1) as i64 - 1) * step;
        low += far.min(0);
        high += far.max(0);
    }
    (low, high)
}

/// The offset of each element of `target` in an array of `shape` that broadcasts to it.
fn offsets(target: &[u64], shape: &[u64], steps: &[i64]) -> Vec<i64> {
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

fn shaped(spec: &Shaped, random: &mut Random) -> Result<Case, String> {
    let mut places = Places::new();
    let mut tensors = Vec::new();
    let mut inputs = Vec::new();
    let mut values_at: Vec<Vec<Datum>> = Vec::new();
    let (out_type, out_shape, out_steps, out_off) = spec.output;
    for (dtype, shape, steps, off) in &spec.inputs {
        let steps = steps.map_or_else(|| dense(shape), <[i64]>::to_vec);
        let (low, high) = reach(shape, &steps);
        let count = if shape.contains(&0) {
            0
        } else {
            (high - low + 1) as u64
        };
        let mut bytes = Vec::new();
        for _ in 0..count {
            // Small halves: sums and products of a few are exact in every floating type.
            let value = (random.below(33) as f64 - 16.0) / 2.0;
            write(*dtype, Datum::F(value), &mut bytes);
            if dtype.family() != warpcc_kernels::dtype::Family::Float {
                let keep = bytes.len() - dtype.size() as usize;
                bytes.truncate(keep);
                write(*dtype, Datum::I(value as i128), &mut bytes);
            }
        }
        let start = places.take(bytes.len() as u64, *off, dtype.size());
        let origin = start.wrapping_add_signed(-low * dtype.size() as i64);
        tensors.push(Tensor::new(*dtype, shape, origin).with_strides(&steps));
        let all = elements(*dtype, &bytes);
        values_at.push(if count == 0 {
            Vec::new()
        } else {
            offsets(out_shape, shape, &steps)
                .into_iter()
                .map(|o| all[(o - low) as usize])
                .collect()
        });
        inputs.push((start, bytes));
    }
    let steps = out_steps.map_or_else(|| dense(out_shape), <[i64]>::to_vec);
    let (low, high) = reach(out_shape, &steps);
    let empty = out_shape.contains(&0);
    let span = if empty { 0 } else { (high - low + 1) as u64 };
    let size = out_type.size();
    let start = places.take(span * size, out_off, size);
    let origin = start.wrapping_add_signed(-low * size as i64);
    let target = Tensor::new(out_type, out_shape, origin).with_strides(&steps);
    // Gaps of the output keep what they hold, whatever the request.
    let mut before = Vec::new();
    for _ in 0..span {
        write(out_type, Datum::F(random.below(9) as f64), &mut before);
    }
    if out_type.family() != warpcc_kernels::dtype::Family::Float {
        before = (0..span * size)
            .map(|i| if i % size == 0 { 3 } else { 0 })
            .collect();
    }
    let names: Vec<String> = (0..tensors.len()).map(|i| format!("x{i}")).collect();
    let mut values: Vec<(&str, Value)> = names
        .iter()
        .map(String::as_str)
        .zip(tensors.iter().map(Value::from))
        .collect();
    values.extend(
        spec.numbers
            .iter()
            .map(|(name, number)| (*name, Value::Number(*number))),
    );
    let expr = parse(spec.text).map_err(|error| error.to_string())?;
    let plan = elementwise::fused(&expr, &values, &target, spec.request)
        .map_err(|error| error.to_string())?;
    let places_out = if empty {
        Vec::new()
    } else {
        offsets(out_shape, out_shape, &steps)
    };
    let held = before.clone();
    let (request, formula) = (spec.request, spec.formula);
    let label = format!(
        "{} {:?} -> {out_type} {out_shape:?} {out_steps:?} +{out_off} {request:?}",
        spec.text, spec.inputs
    );
    Ok(Case {
        group: spec.group,
        asks: None,
        label,
        plan,
        inputs,
        output: (start, span * size),
        before: Some(before),
        workspace: 0,
        judge: Box::new(move |bytes| {
            let results = elements(out_type, bytes);
            let held = elements(out_type, &held);
            let mut written = vec![false; held.len()];
            for (number, offset) in places_out.iter().enumerate() {
                let place = (offset - low) as usize;
                written[place] = true;
                let given: Vec<f64> = values_at.iter().map(|each| each[number].real()).collect();
                let mut value = formula(&given);
                if request == WriteMode::Add {
                    value += held[place].real();
                }
                let want = convert(out_type, Datum::F(value));
                let near = match (want, results[place]) {
                    (Datum::F(a), Datum::F(b)) => {
                        a == b
                            || (a - b).abs() <= a.abs() * 4e-3 && out_type.size() < 4
                            || (a - b).abs() <= 1e-6 * a.abs()
                    }
                    (a, b) => a == b,
                };
                if !near {
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
        }),
    })
}

/// Sizes around every edge, and every offset of inputs against the output.
fn offsets_and_sizes(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
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

fn broadcasting(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    type Form<'a> = (&'a [u64], Option<&'a [i64]>);
    let forms: [(Form, Form, Form); 21] = [
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
        // Turned: neighbours in another dimension than the output's.
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
    let each = forms.iter().map(|form| (*form, &types[..]));
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

fn fused(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let many: String = (0..20)
        .map(|i| format!("x{i} * {}", i + 1))
        .collect::<Vec<_>>()
        .join(" + ");
    let shape: &[u64] = &[17, 129];
    let twenty: Vec<Input> = (0..20)
        .map(|i| {
            (
                DType::ALL[[9, 10, 13, 14, 3, 5][i % 6]],
                if i % 3 == 0 { &shape[1..] } else { shape },
                None,
                i as u64 % 5,
            )
        })
        .collect();
    let f = |dtype| (dtype, shape, None, 0);
    let h = DType::F16;
    let all: Vec<Shaped> = vec![
        Shaped {
            group: "fused",
            text: "relu(x0 * x1 + x2)",
            formula: |v| (v[0] * v[1] + v[2]).max(0.0),
            inputs: vec![f(h), f(h), (h, &shape[1..], None, 0)],
            numbers: &[],
            output: f(h),
            request: WriteMode::Write,
        },
        Shaped {
            group: "fused",
            text: "relu(x0 * alpha + x1) + relu(x0 * alpha + x1)",
            formula: |v| 2.0 * (v[0] * 2.5 + v[1]).max(0.0),
            inputs: vec![f(DType::F32), f(DType::F32)],
            numbers: &[("alpha", Number::Float(2.5))],
            output: f(DType::F32),
            request: WriteMode::Add,
        },
        Shaped {
            group: "fused",
            text: "where(x0 > 0, x0, x1 * k)",
            formula: |v| if v[0] > 0.0 { v[0] } else { v[1] * -3.0 },
            inputs: vec![f(DType::I32), f(DType::I16)],
            numbers: &[("k", Number::Int(-3))],
            output: f(DType::I64),
            request: WriteMode::Write,
        },
        Shaped {
            group: "fused",
            text: "(x0 > x1) + (x0 == x1) * 2",
            formula: |v| f64::from(v[0] > v[1]) + 2.0 * f64::from(v[0] == v[1]),
            inputs: vec![f(DType::BF16), f(DType::F8E4M3)],
            numbers: &[],
            output: f(DType::U8),
            request: WriteMode::Write,
        },
        Shaped {
            group: "fused",
            text: "x0 // 3 * 100 + x0 % 3",
            formula: |v| (v[0] / 3.0).floor() * 100.0 + v[0].rem_euclid(3.0),
            inputs: vec![f(DType::I64)],
            numbers: &[],
            output: f(DType::F64),
            request: WriteMode::Write,
        },
        Shaped {
            group: "fused",
            text: "clip(x0, -1, 1) ** 2 - lerp(x1, x0, 0.5)",
            formula: |v| v[0].clamp(-1.0, 1.0).powi(2) - (v[1] + v[0]) / 2.0,
            inputs: vec![f(DType::F32), f(DType::F64)],
            numbers: &[],
            output: f(DType::F64),
            request: WriteMode::Write,
        },
        Shaped {
            group: "fused",
            text: "2.5",
            formula: |_| 2.5,
            inputs: vec![],
            numbers: &[],
            output: f(DType::BF16),
            request: WriteMode::Write,
        },
        Shaped {
            group: "fused",
            text: &many,
            formula: |v| v.iter().enumerate().map(|(i, x)| x * (i + 1) as f64).sum(),
            inputs: twenty,
            numbers: &[],
            output: f(DType::F32),
            request: WriteMode::Write,
        },
    ];
    for spec in &all {
        cases.push(shaped(spec, random));
    }
}

/// Cases of whole plans: expressions, reductions, broadcasting, places and sizes.
pub fn of_plans(random: &mut Random) -> Vec<Result<Case, String>> {
    let mut cases = Vec::new();
    fused(random, &mut cases);
    reductions::all(random, &mut cases);
    broadcasting(random, &mut cases);
    offsets_and_sizes(random, &mut cases);
    cases
}

/// All of them, the same for one seed.
pub fn all(seed: u64) -> Vec<Result<Case, String>> {
    let mut random = Random(seed);
    let mut cases = of_plans(&mut random);
    conversions(&mut random, &mut cases);
    functions(&mut random, &mut cases);
    // Names are looked up as a user's text would.
    debug_assert!(find("relu").is_some());
    cases
}
