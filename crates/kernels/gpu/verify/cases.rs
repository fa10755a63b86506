//! The checks by value: functions and conversions here, shapes and reductions in the files next to it.

use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise;
use warpcc_kernels::elementwise::Value;
use warpcc_kernels::expression::Expr;
use warpcc_kernels::functions::{ALL, DeviceFunction, find};
use warpcc_kernels::plan::{Plan, PlanError, Tensor, WriteMode};

#[path = "reductions.rs"]
mod reductions;
#[path = "shaped.rs"]
mod shaped;
#[path = "shapes.rs"]
mod shapes;

use crate::device::BASE;
use crate::reference::{Datum, Expected, Random, expected, is_right, read, write};

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

    /// Room for this many bytes, `elements` of `size` bytes after an aligned place.
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

/// Compares each element; the first three that are wrong are reported.
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

/// Elements of a function's case.
const N: u64 = 1001;

/// Bytes of each of a function's arguments.
fn arguments(function: &DeviceFunction, types: &[DType], random: &mut Random) -> Vec<Vec<u8>> {
    let mut data: Vec<Vec<u8>> = vec![Vec::new(); types.len()];
    for _ in 0..N {
        let tuple = random.elements(function.name, types);
        for ((bytes, dtype), value) in data.iter_mut().zip(types).zip(tuple) {
            write(*dtype, value, bytes);
        }
    }
    data
}

fn function_case(
    group: &'static str,
    function: &'static DeviceFunction,
    types: Vec<DType>,
    output: DType,
    request: WriteMode,
    random: &mut Random,
) -> Result<Case, PlanError> {
    let mut places = Places::new();
    let data = arguments(function, &types, random);
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
    let names = NAMES.iter().take(types.len());
    let expr = Expr::call(function.name, names.map(|name| Expr::name(name)).collect())?;
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
    let names = names.join(", ");
    Ok(Case {
        group,
        label: format!("{}({names}) {request:?} {output}", function.name),
        plan,
        asks: Some(Asks {
            function: function.name,
            types: types.clone(),
            output,
            request,
        }),
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

/// Cases of whole plans: expressions, reductions, broadcasting, places and sizes.
pub fn of_plans(random: &mut Random) -> Vec<Result<Case, String>> {
    let mut cases = Vec::new();
    shapes::fused(random, &mut cases);
    reductions::all(random, &mut cases);
    shapes::broadcasting(random, &mut cases);
    shapes::offsets_and_sizes(random, &mut cases);
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
