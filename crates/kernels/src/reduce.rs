//! Plans a reduction over axes of an array. How threads share the work depends on the shape alone, so that results are
//! reproducible.
//!
//! If the reduced elements are neighbours, the lanes of a warp share each row. If the kept ones are, each thread has
//! columns of its own. If there are few results of many values, they are computed in parts, which a second kernel
//! merges.

use crate::generate::{grid, index, places};
use crate::layout::{Layout, aliases, canonical};
use crate::plan::{Argument, Launch, Plan, PlanError, Tensor, Which, WriteMode};
use crate::plan_cache;
use crate::reductions::{self, Reduction};
use crate::shape::{check, reduced_axes, reduced_shape, span};
use warpcc_rtc::Kernel;

/// Threads of a block.
const THREADS: u64 = 256;
/// Blocks that parts are made up to, of rows and of columns: on an H200 with its 132 multiprocessors, of 1,056 to 16,896 those
/// with which all types were fast. A constant, so that results do not depend on the GPU.
const ROW_BLOCKS: u64 = 2112;
const COLUMN_BLOCKS: u64 = 1056;
/// No state is larger.
const STATE: u64 = 32;

/// A reduction over `axes` (negative ones count from the last; none: over all).
///
/// The output has the axes that are left, or all with the reduced ones of size 1.
///
/// # Errors
///
/// An axis that does not exist, an output of another shape, a maximum of no elements, or an error in the arrays
/// themselves.
pub fn reduce(
    reduction: &str,
    input: &Tensor,
    axes: Option<&[i64]>,
    output: &Tensor,
    mode: WriteMode,
) -> Result<Plan, PlanError> {
    let reduction = crate::names::reduction(reduction);
    let of = reductions::find(reduction).ok_or_else(|| {
        let known: Vec<_> = reductions::ALL.iter().map(|each| each.name).collect();
        PlanError::UnknownReduction {
            name: reduction.chars().take(64).collect(),
            known: known.join(", "),
        }
    })?;
    plan_cache::reduction(of.name, input, axes, output, mode, || {
        planned(of, input, axes, output, mode)
    })
}

fn planned(
    of: &'static Reduction,
    input: &Tensor,
    axes: Option<&[i64]>,
    output: &Tensor,
    mode: WriteMode,
) -> Result<Plan, PlanError> {
    let which = Which::Input("x".into());
    let (output_steps, results) = check(output, &Which::Output)?;
    let (steps, _) = check(input, &which)?;
    let reduced = reduced_axes(axes, input.shape.len())?;
    let placed = output_axes(input, output, &reduced)?;
    let (mut kept_shape, mut kept_steps) = (Vec::new(), vec![Vec::new(), Vec::new()]);
    let (mut reduced_shape, mut reduced_steps) = (Vec::new(), Vec::new());
    for (axis, (&size, &step)) in input.shape.iter().zip(&steps).enumerate() {
        if reduced.get(axis) == Some(&true) {
            reduced_shape.push(size);
            reduced_steps.push(step);
        } else {
            kept_shape.push(size);
            let place = placed.get(axis).copied().flatten();
            let out = place.and_then(|place| output_steps.get(place)).copied();
            for (list, step) in kept_steps.iter_mut().zip([out.unwrap_or(0), step]) {
                list.push(step);
            }
        }
    }
    let count: u64 = reduced_shape.iter().product();
    if count == 0 && !of.of_nothing {
        return Err(PlanError::Empty { reduction: of.name });
    }
    if results == 0 {
        return Ok(Plan::default());
    }
    aliases(output, &[("x", input)])?;
    let kept = canonical(&kept_shape, kept_steps);
    if crate::layout::overlaps(&kept) {
        return Err(PlanError::OutputOverlaps {
            shape: output.shape.clone(),
            strides: output_steps,
        });
    }
    let reduced = if count == 0 {
        Layout {
            sizes: vec![0],
            steps: vec![vec![0]],
        }
    } else {
        let mut layout = canonical(&reduced_shape, vec![reduced_steps]);
        if layout.sizes == [1] {
            layout.steps = vec![vec![0]];
        }
        layout
    };
    let shaped = ShapedReduction {
        of,
        input,
        output,
        mode,
        kept,
        reduced,
        count,
    };
    shaped.plan()
}

/// For each axis of the input, the axis of the output that it becomes.
fn output_axes(
    input: &Tensor,
    output: &Tensor,
    reduced: &[bool],
) -> Result<Vec<Option<usize>>, PlanError> {
    let expected = |keeps| reduced_shape(&input.shape, reduced, keeps);
    let keeps = output.shape == expected(true);
    if !keeps && output.shape != expected(false) {
        return Err(PlanError::Shape {
            which: Which::Input("x".into()),
            shape: input.shape.clone(),
            output: output.shape.clone(),
            reason: format!(
                "reduced, it has shape {:?} or {:?}",
                expected(false),
                expected(true)
            ),
        });
    }
    let mut next = 0;
    Ok(reduced
        .iter()
        .enumerate()
        .map(|(axis, &reduced)| {
            if keeps {
                return Some(axis);
            }
            if reduced {
                return None;
            }
            next += 1;
            Some(next - 1)
        })
        .collect())
}

struct ShapedReduction<'a> {
    of: &'static Reduction,
    input: &'a Tensor,
    output: &'a Tensor,
    mode: WriteMode,
    /// Steps of the output, then of the input.
    kept: Layout,
    /// Steps of the input.
    reduced: Layout,
    count: u64,
}

impl ShapedReduction<'_> {
    fn plan(&self) -> Result<Plan, PlanError> {
        let kept_step = self.kept.inner_step(1).unsigned_abs();
        let kept_is_row = self.kept.inner() > 1 && kept_step != 0;
        let reduced_step = self.reduced.inner_step(0).unsigned_abs();
        if kept_is_row && (self.reduced.inner() <= 1 || kept_step < reduced_step) {
            self.columns()
        } else {
            self.rows()
        }
    }

    /// The largest group of neighbours along `along`'s innermost dimension that every place of
    /// the input allows to be read at once.
    fn group(&self, along: &Layout, array: usize, across: &Layout, other: usize) -> u64 {
        let size = self.input.dtype.size();
        if along.inner_step(array) != 1 {
            return 1;
        }
        let mut group = 16 / size;
        let mut hold = |number: u64| {
            if number != 0 {
                group = group.min(1 << number.trailing_zeros().min(63));
            }
        };
        hold(along.inner());
        hold(self.input.address / size);
        let outer = along.steps.get(array).into_iter().flatten().rev().skip(1);
        let others = across.steps.get(other).into_iter().flatten();
        for step in outer.chain(others) {
            hold(step.unsigned_abs());
        }
        group.max(1)
    }

    fn is_wide(&self, slack: u64) -> bool {
        let far = |sizes: &[u64], steps: Option<&Vec<i64>>| {
            steps
                .and_then(|steps| span(sizes, steps))
                .map_or(u64::MAX, |(low, high)| {
                    low.unsigned_abs().max(high.unsigned_abs())
                })
        };
        let input =
            far(&self.kept.sizes, self.kept.steps.get(1)).saturating_add(if self.count == 0 {
                0
            } else {
                far(&self.reduced.sizes, self.reduced.steps.first())
            });
        let output = far(&self.kept.sizes, self.kept.steps.first());
        let counts = self.kept.count().max(self.count);
        input.max(output).max(counts).saturating_add(slack) >= 1 << 31
    }

    /// The number of parts of each result, and the number of groups in each part.
    fn parts(enough: u64, blocks: u64, groups: u64, least: u64) -> (u64, u64) {
        let parts = (enough / blocks.max(1)).min(groups / least.max(1)).max(1);
        let share = groups.div_ceil(parts).max(1);
        (groups.div_ceil(share).max(1), share)
    }

    fn rows(&self) -> Result<Plan, PlanError> {
        let group = self.group(&self.reduced, 0, &self.kept, 1);
        let groups = self.count / group;
        // As many lanes as there are groups of four, from an eighth of a warp up to a block.
        let lanes = groups.div_ceil(4).next_power_of_two().clamp(4, THREADS);
        let kept = self.kept.count();
        let blocks = kept.div_ceil(THREADS / lanes);
        let (parts, share) = Self::parts(ROW_BLOCKS, blocks, groups, 16 * THREADS);
        let wide = self.is_wide(8 * THREADS * group);
        let i = index(wide);
        let (dk, dr) = (self.kept.sizes.len(), self.reduced.sizes.len());
        let body = format!(
            "warpcc::red::rows<of, input, output, {mode}, {i}, {dk}, {dr}, {group}, {group}, {lanes}, {THREADS}>(
      out, in, (of::state*)partial, kept_at, reduced_at, kept, reduced, share, count);",
            mode = self.mode.device(),
        );
        let arguments = vec![
            Argument::Bytes(places(&self.kept, 1, wide)),
            Argument::Bytes(places(&self.reduced, group, wide)),
            Argument::index(kept.cast_signed(), wide),
            Argument::index(groups.cast_signed(), wide),
            Argument::index(share.cast_signed(), wide),
        ];
        // Four blocks of a multiprocessor leave a thread 64 registers, and the compiler plans to use them: it then has all
        // reads under way at once, where it otherwise saves registers. Sixteen values in a group do not fit them.
        let bound = if group < 16 { "4" } else { "1" };
        let form = KernelText {
            more: "",
            bound,
            body: &body,
        };
        self.launches(&form, (blocks, parts), wide, arguments)
    }

    fn columns(&self) -> Result<Plan, PlanError> {
        let group = self.group(&self.kept, 1, &self.reduced, 0);
        let groups = self.kept.count() / group;
        let columns = groups.next_power_of_two().min(32);
        let blocks = groups.div_ceil(columns);
        let (parts, share) = Self::parts(COLUMN_BLOCKS, blocks, self.count, 8 * THREADS / columns);
        let wide = self.is_wide(8 * THREADS * group);
        let i = index(wide);
        let (dk, dr) = (self.kept.sizes.len(), self.reduced.sizes.len());
        let body = format!(
            "warpcc::red::columns<of, input, output, {mode}, {i}, {dk}, {dr}, {group}, {group}, {columns}, {THREADS}>(
      out, in, (of::state*)partial, kept_at, reduced_at, kept, reduced, share, out_step, count);",
            mode = self.mode.device(),
        );
        let arguments = vec![
            Argument::Bytes(places(&self.kept, group, wide)),
            Argument::Bytes(places(&self.reduced, 1, wide)),
            Argument::index(groups.cast_signed(), wide),
            Argument::index(self.count.cast_signed(), wide),
            Argument::index(share.cast_signed(), wide),
            Argument::index(self.kept.inner_step(0), wide),
        ];
        let step = format!(", const {i} out_step");
        // As in `rows`, where a thread's states do not take up the registers.
        let bound = format!("sizeof(of::state) * {group} <= 128 ? 4 : 1");
        let form = KernelText {
            more: &step,
            bound: &bound,
            body: &body,
        };
        self.launches(&form, (blocks, parts), wide, arguments)
    }

    /// The plan of one kernel, and of a second one where results are found in parts.
    fn launches(
        &self,
        form: &KernelText<'_>,
        (blocks, parts): (u64, u64),
        wide: bool,
        arguments: Vec<Argument>,
    ) -> Result<Plan, PlanError> {
        let partial = match parts > 1 {
            true => Argument::Workspace(0),
            false => Argument::Bytes(0u64.to_ne_bytes().into()),
        };
        let mut given = vec![
            Argument::Address(self.output.address),
            Argument::Address(self.input.address),
            partial,
        ];
        given.extend(arguments);
        given.push(self.count_argument());
        let mut launches = vec![Launch {
            kernel: Kernel::new("", "warpcc_reduce", self.source(form, wide)),
            grid: (grid(blocks)?, grid(parts)?),
            block: THREADS as u32,
            arguments: given,
        }];
        if parts > 1 {
            launches.push(self.merge(parts, wide)?);
        }
        let read = (self.count > 0).then(|| (Which::Input("x".into()), self.input.address));
        let written = (Which::Output, self.output.address);
        Ok(Plan {
            launches,
            workspace: match parts > 1 {
                true => parts * self.kept.count() * STATE,
                false => 0,
            },
            arrays: read.into_iter().chain([written]).collect(),
        })
    }

    /// The kernel that merges the parts of each result.
    fn merge(&self, parts: u64, wide: bool) -> Result<Launch, PlanError> {
        let kept = self.kept.count();
        let lanes = parts.div_ceil(4).next_power_of_two().min(THREADS);
        let (i, dk, head) = (index(wide), self.kept.sizes.len(), self.types());
        let source = format!(
            "{head}extern \"C\" __global__ void __launch_bounds__({THREADS}) warpcc_parts(
    output* out, const void* partial, const warpcc::places<{i}, 2, {dk}> kept_at, const {i} kept, const {i} shares, const double count) {{
  warpcc::red::parts<of, output, {mode}, {i}, {dk}, {lanes}, {THREADS}>(
      out, (const of::state*)partial, kept_at, kept, shares, count);
}}
",
            mode = self.mode.device(),
        );
        Ok(Launch {
            kernel: Kernel::new("", "warpcc_parts", source),
            grid: (grid(kept.div_ceil(THREADS / lanes))?, 1),
            block: THREADS as u32,
            arguments: vec![
                Argument::Address(self.output.address),
                Argument::Workspace(0),
                Argument::Bytes(places(&self.kept, 1, wide)),
                Argument::index(kept.cast_signed(), wide),
                Argument::index(parts.cast_signed(), wide),
                self.count_argument(),
            ],
        })
    }

    fn source(&self, form: &KernelText<'_>, wide: bool) -> String {
        let KernelText { more, bound, body } = form;
        let (i, head) = (index(wide), self.types());
        let (dk, dr) = (self.kept.sizes.len(), self.reduced.sizes.len());
        format!(
            "{head}extern \"C\" __global__ void __launch_bounds__({THREADS}, {bound}) warpcc_reduce(
    output* out, const input* in, void* partial, const warpcc::places<{i}, 2, {dk}> kept_at,
    const warpcc::places<{i}, 1, {dr}> reduced_at, const {i} kept, const {i} reduced, const {i} share{more}, const double count) {{
  {body}
}}
"
        )
    }

    fn types(&self) -> String {
        format!(
            "using input = {};\nusing output = {};\nusing of = warpcc::red::{}<input>;\n",
            self.input.dtype.device(),
            self.output.dtype.device(),
            self.of.name
        )
    }

    fn count_argument(&self) -> Argument {
        Argument::Bytes((self.count as f64).to_ne_bytes().into())
    }
}

/// The parts of the kernels' text that differ for rows and for columns.
struct KernelText<'a> {
    /// Parameters of its own.
    more: &'a str,
    /// Blocks of a multiprocessor.
    bound: &'a str,
    body: &'a str,
}
