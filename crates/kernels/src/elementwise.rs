//! An expression over arrays and numbers as one kernel: by element, broadcast, written or added.
//!
//! Arrays that the output runs through without a gap are one row of elements, read and written in
//! accesses of up to 16 bytes whatever their addresses: what stands before the output's first aligned
//! place and after its last one is done by element, and an input that is off against the output is
//! read in smaller accesses. An input whose neighbours stand in another dimension than the output's (a turned matrix)
//! is read along its own, and turned in registers. All else finds each place by division, which is a multiplication here.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::dtype::DType;
use crate::expression::{Expr, Number};
use crate::generate::{index, places};
use crate::infer::{Body, Bound, body, dtype_text};
use crate::layout::{Layout, broadcast};
use crate::plan::{Argument, Launch, Plan, PlanError, Request, Tensor, Tuning, Which};
use crate::plan_cache::{self, function_of};

/// What a name in an expression stands for.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// An array.
    Tensor(&'a Tensor),
    /// A number: an argument of the kernel, so that another value needs no other kernel.
    Number(Number),
}

impl<'a> From<&'a Tensor> for Value<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Number(Number::Float(number))
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Number::Int(number))
    }
}

/// A function of one array.
///
/// # Errors
///
/// As [`fused`].
pub fn unary(
    function: &str,
    x: &Tensor,
    output: &Tensor,
    request: Request,
) -> Result<Plan, PlanError> {
    let expr = function_of(function, &["x"])?;
    fused(&expr, &[("x", x.into())], output, request)
}

/// A function of two arrays or of an array and a number.
///
/// # Errors
///
/// As [`fused`].
pub fn binary(
    function: &str,
    x: Value<'_>,
    y: Value<'_>,
    output: &Tensor,
    request: Request,
) -> Result<Plan, PlanError> {
    let expr = function_of(function, &["x", "y"])?;
    fused(&expr, &[("x", x), ("y", y)], output, request)
}

/// An expression as one kernel.
///
/// # Errors
///
/// A name that is not given or not used, types that a function does not take, shapes that do not
/// broadcast to the output's, addresses that are none, an output whose elements overlap or that lies
/// askew on an input.
pub fn fused(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    request: Request,
) -> Result<Plan, PlanError> {
    plan_cache::plan(expr, values, output, request, || {
        planned(expr, values, output, request, None)
    })
}

/// As [`fused`], cut into blocks as told.
///
/// # Errors
///
/// As [`fused`]; and threads or accesses that no device has.
pub fn tuned(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    request: Request,
    tuning: Tuning,
) -> Result<Plan, PlanError> {
    if tuning.threads == 0 || !tuning.threads.is_multiple_of(32) || tuning.threads > 1024 {
        return Err(PlanError::Threads {
            given: tuning.threads,
        });
    }
    if !(1..=16).contains(&tuning.unroll) {
        return Err(PlanError::Unroll {
            given: tuning.unroll,
        });
    }
    planned(expr, values, output, request, Some(tuning))
}

fn planned(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    request: Request,
    tuning: Option<Tuning>,
) -> Result<Plan, PlanError> {
    let (bound, inputs, numbers) = bind(expr, values)?;
    let body = body(expr, &bound)?;
    let Some(layout) = broadcast(output, &inputs)? else {
        return Ok(Plan::default());
    };
    let mut kernel = Kernel {
        body: &body,
        output,
        inputs: inputs.iter().map(|(_, tensor)| *tensor).collect(),
        numbers,
        request,
        tuning: tuning.unwrap_or_default(),
        told: tuning.is_some(),
    };
    let launch = if is_row(&layout) {
        kernel.row(&layout)?
    } else if let Some(turned) = kernel.turned(&layout) {
        turned?
    } else {
        kernel.strided(&layout)?
    };
    Ok(Plan {
        launches: vec![launch],
        workspace: 0,
        arrays: arrays(output, &inputs),
    })
}

/// A plan's addresses, to be told by name.
fn arrays(output: &Tensor, inputs: &[(&str, &Tensor)]) -> Vec<(Which, u64)> {
    let inputs = inputs.iter();
    inputs
        .map(|(name, tensor)| (Which::Input((*name).into()), tensor.address))
        .chain([(Which::Output, output.address)])
        .collect()
}

/// A kernel's first arguments: the output, the inputs, the numbers.
fn arguments<'a>(
    output: &Tensor,
    inputs: impl Iterator<Item = &'a Tensor>,
    numbers: &[Number],
) -> Vec<Argument> {
    let mut arguments = vec![Argument::Address(output.address)];
    arguments.extend(inputs.map(|tensor| Argument::Address(tensor.address)));
    arguments.extend(numbers.iter().copied().map(argument));
    arguments
}

/// A number as an argument: all are 8 bytes, so that one kernel takes each.
pub(crate) fn argument(number: Number) -> Argument {
    Argument::Bytes(match number {
        Number::Int(value) => value.to_ne_bytes().into(),
        Number::Float(value) => value.to_ne_bytes().into(),
    })
}

/// The type to keep an expression's values in where nothing else is asked for: that of its arrays, mixed, where it is
/// computed in theirs, else what it is computed in. `relu` of half is half; a comparison gives bool.
///
/// # Errors
///
/// A name that is not given or not used, types that a function does not take.
pub fn result_type(expr: &Expr, values: &[(&str, Value<'_>)]) -> Result<DType, PlanError> {
    plan_cache::result_type(expr, values, || {
        let (bound, inputs, _) = bind(expr, values)?;
        let made = body(expr, &bound)?.dtype;
        let mixed = inputs
            .iter()
            .map(|(_, tensor)| tensor.dtype)
            .reduce(DType::mixed);
        Ok(mixed
            .filter(|mixed| mixed.compute() == made)
            .unwrap_or(made))
    })
}

type Bindings<'a> = (
    HashMap<&'a str, Bound>,
    Vec<(&'a str, &'a Tensor)>,
    Vec<Number>,
);

/// The names and what they stand for, arrays and numbers counted apart.
fn bind<'a>(expr: &Expr, values: &[(&'a str, Value<'a>)]) -> Result<Bindings<'a>, PlanError> {
    let used = expr.names();
    let mut bound = HashMap::new();
    let mut inputs = Vec::new();
    let mut numbers = Vec::new();
    for &(name, value) in values {
        let each = match value {
            Value::Tensor(tensor) => {
                inputs.push((name, tensor));
                Bound::Array(inputs.len() - 1, tensor.dtype)
            }
            Value::Number(number) => {
                numbers.push(number);
                Bound::Number(numbers.len() - 1, number)
            }
        };
        let twice = bound.insert(name, each).is_some();
        if twice || !used.contains(&name) {
            return Err(PlanError::Needless {
                name: name.to_owned(),
                twice,
            });
        }
    }
    Ok((bound, inputs, numbers))
}

/// One dimension that the output runs through without a gap, and each input too, or it is one value.
fn is_row(layout: &Layout) -> bool {
    layout.sizes.len() == 1
        && layout.inner_step(0) == 1
        && (1..layout.steps.len()).all(|array| matches!(layout.inner_step(array), 0 | 1))
}

/// How an array's neighbours are reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Access {
    /// Side by side: accesses of this many elements.
    Contiguous(u64),
    /// All one element.
    Broadcast,
    /// A step apart.
    Strided,
    /// Side by side in the other dimension of a square: held turned.
    Turned,
}

/// The largest power of two, at most `limit`, that divides a number.
pub(crate) fn share(number: i64, limit: u64) -> u64 {
    match number.unsigned_abs() {
        0 => limit,
        some => (1u64 << some.trailing_zeros()).min(limit),
    }
}

pub(crate) struct Kernel<'a> {
    pub(crate) body: &'a Body,
    pub(crate) output: &'a Tensor,
    pub(crate) inputs: Vec<&'a Tensor>,
    pub(crate) numbers: Vec<Number>,
    pub(crate) request: Request,
    pub(crate) tuning: Tuning,
    /// The tuning is the caller's.
    pub(crate) told: bool,
}

impl Kernel<'_> {
    /// Accesses at once of a row: two where a thread's elements are many and each takes long to compute, or is read in
    /// several small accesses. Else one was faster on an H200, by 3 %.
    fn unroll(&self, access: &[Access], group: u64) -> u32 {
        let small = |each: &Access| matches!(each, Access::Contiguous(width) if *width < group);
        if !self.told && group >= 8 && (self.body.heavy || access.iter().any(small)) {
            return 2;
        }
        self.tuning.unroll
    }

    /// How many elements a thread takes at once: 16 bytes of the largest type.
    pub(crate) fn group(&self, together: impl Iterator<Item = DType>) -> u64 {
        let largest = together
            .chain([self.output.dtype])
            .map(DType::size)
            .max()
            .unwrap_or(1);
        (16 / largest).max(1)
    }

    pub(crate) fn place(tensor: &Tensor) -> u64 {
        tensor.address / tensor.dtype.size()
    }

    fn row(&self, layout: &Layout) -> Result<Launch, PlanError> {
        let count = layout.count();
        let is_one = |array: usize| layout.inner_step(array) == 0;
        let together = self
            .inputs
            .iter()
            .enumerate()
            .filter(|(input, _)| !is_one(input + 1))
            .map(|(_, tensor)| tensor.dtype);
        let group = self.group(together);
        // Elements between the last aligned place before the output and the output itself.
        let lead = Self::place(self.output) % group;
        let access: Vec<Access> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(input, tensor)| {
                if is_one(input + 1) {
                    return Access::Broadcast;
                }
                let off = Self::place(tensor) % group + group - lead;
                Access::Contiguous(share((off % group).cast_signed(), group))
            })
            .collect();
        let unroll = self.unroll(&access, group);
        let tile = u64::from(self.tuning.threads) * u64::from(unroll) * group;
        let wide = !layout.is_small(2 * tile);
        let blocks = self.blocks(count.saturating_add(lead).div_ceil(tile))?;

        let mut text = self.opening(
            "warpcc_row",
            &format!(
                "const {index} count, const {index} lead",
                index = index(wide)
            ),
        );
        let i = index(wide);
        let _ = write!(
            text,
            "  constexpr int V = {group}, U = {unroll}, T = {threads};
  const {i} tile = ({i})blockIdx.x * (T * U * V) - lead;
  const {i} first = tile + ({i})threadIdx.x * V;
  const bool whole = tile >= 0 && tile + T * U * V <= count;
",
            threads = self.tuning.threads,
        );
        self.holds(&mut text, &access);
        let mut inside = String::new();
        let mut edge = String::new();
        for (array, each) in access.iter().enumerate() {
            if let Access::Contiguous(width) = each {
                let _ = writeln!(
                    inside,
                    "      warpcc::read<{width}, V>(in{array} + first + u * (T * V), h{array}[u]);"
                );
                let _ = writeln!(
                    edge,
                    "      warpcc::read_within<V, type{array}, {i}>(in{array}, first + u * (T * V), count, h{array}[u]);"
                );
            }
        }
        if self.request == Request::Add {
            inside +=
                "      warpcc::read<V, V>((const output*)out + first + u * (T * V), was[u]);\n";
            let _ = writeln!(
                edge,
                "      warpcc::read_within<V, output, {i}>(out, first + u * (T * V), count, was[u]);"
            );
        }
        let _ = write!(
            text,
            "  if (whole) {{
#pragma unroll
    for (int u = 0; u < U; ++u) {{
{inside}    }}
  }} else {{
#pragma unroll
    for (int u = 0; u < U; ++u) {{
{edge}    }}
  }}
#pragma unroll
  for (int u = 0; u < U; ++u) {{
    alignas(16) output result[V];
{compute}    if (whole) {{
      warpcc::write<V, V>(out + first + u * (T * V), result);
    }} else {{
      warpcc::write_within<V, output, {i}>(out, first + u * (T * V), count, result);
    }}
  }}
}}
",
            compute = self.compute(&access, |array| format!("h{array}")),
        );
        let mut arguments = self.addresses();
        arguments.push(Argument::index(count.cast_signed(), wide));
        arguments.push(Argument::index(lead.cast_signed(), wide));
        Ok(self.launch("warpcc_row", text, blocks, arguments))
    }

    fn strided(&self, layout: &Layout) -> Result<Launch, PlanError> {
        let (inner, side_by_side) = (layout.inner(), layout.inner_step(0) == 1);
        let limit = if side_by_side {
            let together = self
                .inputs
                .iter()
                .enumerate()
                .filter(|(input, _)| layout.inner_step(input + 1) == 1)
                .map(|(_, tensor)| tensor.dtype);
            self.group(together)
        } else {
            1
        };
        let group = share(inner.cast_signed(), limit);
        // Rows of odd lengths are read in smaller accesses: as many at once as make the same bytes.
        let unroll = if self.told {
            self.tuning.unroll
        } else {
            u32::try_from((limit / group).min(8)).unwrap_or(1)
        };
        let width = |array: usize, tensor: &Tensor| {
            let steps = layout.steps.get(array).map_or(&[][..], Vec::as_slice);
            let outer = steps.split_last().map_or(&[][..], |(_, outer)| outer);
            outer.iter().fold(
                share(Self::place(tensor).cast_signed(), group),
                |width, step| share(*step, width),
            )
        };
        let reach = |array: usize, tensor: &Tensor| match layout.inner_step(array) {
            1 => Access::Contiguous(width(array, tensor)),
            0 => Access::Broadcast,
            _ => Access::Strided,
        };
        let access: Vec<Access> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(input, tensor)| reach(input + 1, tensor))
            .collect();
        let target = reach(0, self.output);
        let tile = u64::from(self.tuning.threads) * u64::from(unroll);
        let wide = !layout.is_small(2 * tile * group);
        let groups = layout.count() / group;
        let blocks = self.blocks(groups.div_ceil(tile))?;
        let (arrays, dimensions) = (layout.steps.len(), layout.sizes.len());
        let i = index(wide);
        let mut steps = String::new();
        for array in 0..arrays {
            let _ = write!(steps, ", const {i} step{array}");
        }
        let mut text = self.opening(
            "warpcc_strided",
            &format!(
                "const {i} groups, const warpcc::places<{i}, {arrays}, {dimensions}> places{steps}"
            ),
        );
        let _ = write!(
            text,
            "  constexpr int V = {group}, U = {unroll}, T = {threads};
  const {i} first = ({i})blockIdx.x * (T * U) + ({i})threadIdx.x;
  {i} at[U][{arrays}];
",
            threads = self.tuning.threads,
        );
        // A value that all neighbours share is still another one for each group.
        let mut held = String::new();
        let mut reads = String::new();
        for (array, each) in access.iter().enumerate() {
            let from = format!("in{array} + at[u][{}]", array + 1);
            let (many, read) = match each {
                // `turned` takes those.
                Access::Turned => continue,
                Access::Contiguous(width) => (
                    "V",
                    format!("warpcc::read<{width}, V>({from}, h{array}[u])"),
                ),
                Access::Broadcast => ("1", format!("h{array}[u][0] = *({from})")),
                Access::Strided => (
                    "V",
                    format!(
                        "warpcc::gather<V, type{array}, {i}>({from}, step{}, h{array}[u])",
                        array + 1
                    ),
                ),
            };
            let _ = writeln!(held, "  alignas(16) type{array} h{array}[U][{many}];");
            let _ = writeln!(reads, "      {read};");
        }
        if self.request == Request::Add {
            held += "  alignas(16) output was[U][V];\n";
            reads += &match target {
                Access::Contiguous(width) => format!(
                    "      warpcc::read<{width}, V>((const output*)out + at[u][0], was[u]);\n"
                ),
                _ => format!(
                    "      warpcc::gather<V, output, {i}>(out + at[u][0], step0, was[u]);\n"
                ),
            };
        }
        let store = match target {
            Access::Contiguous(width) => {
                format!("warpcc::write<{width}, V>(out + at[u][0], result)")
            }
            _ => format!("warpcc::scatter<V, output, {i}>(out + at[u][0], step0, result)"),
        };
        let _ = write!(
            text,
            "{held}#pragma unroll
  for (int u = 0; u < U; ++u) {{
    if (first + u * T < groups) {{
      places.find(first + u * T, at[u]);
{reads}    }}
  }}
#pragma unroll
  for (int u = 0; u < U; ++u) {{
    if (first + u * T < groups) {{
      alignas(16) output result[V];
{compute}      {store};
    }}
  }}
}}
",
            compute = self.compute(&access, |array| format!("h{array}[u][0]")),
        );
        let mut arguments = self.addresses();
        arguments.push(Argument::index(groups.cast_signed(), wide));
        arguments.push(Argument::Bytes(places(layout, group, wide)));
        for array in 0..arrays {
            arguments.push(Argument::index(layout.inner_step(array), wide));
        }
        Ok(self.launch("warpcc_strided", text, blocks, arguments))
    }

    /// Blocks, if a grid holds so many.
    pub(crate) fn blocks(&self, blocks: u64) -> Result<u32, PlanError> {
        u32::try_from(blocks)
            .ok()
            .filter(|blocks| i32::try_from(*blocks).is_ok())
            .ok_or(PlanError::TooLarge {
                which: Which::Output,
                reason: "more than 2^31 - 1 blocks",
            })
    }

    /// The types, the expression as a function, and the kernel's head.
    pub(crate) fn opening(&self, name: &str, rest: &str) -> String {
        let mut types = String::new();
        let mut parameters = String::new();
        let mut kernel = String::from("output* out");
        let _ = writeln!(types, "using output = {};", self.output.dtype.device());
        for (array, tensor) in self.inputs.iter().enumerate() {
            let _ = writeln!(types, "using type{array} = {};", tensor.dtype.device());
            let _ = write!(kernel, ", const type{array}* in{array}");
            let _ = write!(
                parameters,
                "{}const {} x{array}",
                if parameters.is_empty() { "" } else { ", " },
                dtype_text(tensor.dtype.compute())
            );
        }
        for (place, number) in self.numbers.iter().enumerate() {
            let dtype = match number {
                Number::Int(_) => DType::I64,
                Number::Float(_) => DType::F64,
            };
            let _ = write!(kernel, ", const {} s{place}", dtype_text(dtype));
            let _ = write!(
                parameters,
                "{}const {} s{place}",
                if parameters.is_empty() { "" } else { ", " },
                dtype_text(dtype)
            );
        }
        let mut lines = String::new();
        for line in &self.body.lines {
            let _ = writeln!(lines, "  {line}");
        }
        format!(
            "{types}WARPCC_FN {result} value({parameters}) {{
{lines}  return {value};
}}
extern \"C\" __global__ void __launch_bounds__({threads}) {name}({kernel}, {rest}) {{
",
            result = dtype_text(self.body.dtype),
            value = self.body.result,
            threads = self.tuning.threads,
        )
    }

    /// The registers that elements are read to, and values that all elements share.
    fn holds(&self, text: &mut String, access: &[Access]) {
        for (array, each) in access.iter().enumerate() {
            let _ = match each {
                Access::Broadcast => writeln!(text, "  const type{array} h{array} = *in{array};"),
                _ => writeln!(text, "  alignas(16) type{array} h{array}[U][V];"),
            };
        }
        if self.request == Request::Add {
            *text += "  alignas(16) output was[U][V];\n";
        }
    }

    /// The values of V neighbours: read as they are computed with, computed, and made what is stored. `single` is
    /// the value of an array that all of them share.
    pub(crate) fn compute(&self, access: &[Access], single: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        let mut turned = Vec::new();
        let mut wide = |array: usize, from: &str| {
            let _ = writeln!(
                text,
                "    warpcc::compute_t<{of}> w{array}[V];
    warpcc::widen_all({from}, w{array});",
                of = if array == self.inputs.len() {
                    "output".to_owned()
                } else {
                    format!("type{array}")
                },
            );
        };
        for (array, each) in access.iter().enumerate() {
            match each {
                Access::Broadcast => {}
                Access::Turned => turned.push(array),
                _ => wide(array, &format!("h{array}[u]")),
            }
        }
        let adds = self.request == Request::Add;
        if adds {
            wide(self.inputs.len(), "was[u]");
        }
        for array in turned {
            let _ = writeln!(
                text,
                "    warpcc::compute_t<type{array}> w{array}[V];
#pragma unroll
    for (int v = 0; v < V; ++v) w{array}[v] = warpcc::widen(h{array}[v][u]);"
            );
        }
        let arrays = access.iter().enumerate().map(|(array, each)| match each {
            Access::Broadcast => format!("warpcc::widen({})", single(array)),
            _ => format!("w{array}[v]"),
        });
        let numbers = (0..self.numbers.len()).map(|number| format!("s{number}"));
        let arguments: Vec<String> = arrays.chain(numbers).collect();
        let before = if adds {
            format!("w{}[v]", self.inputs.len())
        } else {
            "0".to_owned()
        };
        let value = format!(
            "warpcc::settled<{request}>(value({arguments}), {before})",
            request = self.request.device(),
            arguments = arguments.join(", "),
        );
        let _ = write!(
            text,
            "    {settled} values[V];
#pragma unroll
    for (int v = 0; v < V; ++v) values[v] = {value};
    warpcc::narrow_all(values, result);
",
            settled = if adds {
                format!(
                    "warpcc::number_t<warpcc::mixed_type<warpcc::compute_t<output>, {}>>",
                    dtype_text(self.body.dtype)
                )
            } else {
                dtype_text(self.body.dtype).to_owned()
            },
        );
        text
    }

    pub(crate) fn addresses(&self) -> Vec<Argument> {
        arguments(self.output, self.inputs.iter().copied(), &self.numbers)
    }

    pub(crate) fn launch(
        &self,
        name: &str,
        source: String,
        blocks: u32,
        arguments: Vec<Argument>,
    ) -> Launch {
        Launch {
            kernel: warpcc_rtc::Kernel::new("", name, source),
            grid: (blocks, 1),
            block: self.tuning.threads,
            arguments,
        }
    }
}
