//! Kernels over arrays of which some are turned: their neighbours stand in another dimension than the output's.

use std::fmt::Write as _;

use crate::elementwise::{Access, Kernel, share};
use crate::generate::{index, places};
use crate::layout::Layout;
use crate::plan::{Argument, Launch, PlanError, Request, Tensor};

/// Threads of a block.
const THREADS: u32 = 256;

impl Kernel<'_> {
    /// Squares of V by V elements, V rows of the output's neighbours and V of a turned input's: each array is read and
    /// written along its own neighbours. A warp takes squares that lie together both ways, so that whole sectors of
    /// memory move, and so does a block, so that whole lines do. `None` where no input is turned or squares do not fit.
    pub(crate) fn turned(&mut self, layout: &Layout) -> Option<Result<Launch, PlanError>> {
        let dimensions = layout.sizes.len();
        let last = dimensions.checked_sub(1)?;
        let step = |array: usize, dimension: usize| {
            let steps = layout.steps.get(array);
            steps
                .and_then(|steps| steps.get(dimension))
                .copied()
                .unwrap_or(0)
        };
        let arrays = layout.steps.len();
        // The dimension in which some input's neighbours are.
        let other = (1..arrays)
            .filter(|&array| !matches!(step(array, last), 0 | 1))
            .find_map(|array| (0..last).find(|&dimension| step(array, dimension) == 1))?;
        // Squares of 16 by 16 bytes, where a thread has the registers and what it computes is short: it stands there 256 times.
        let held = self.inputs.len() + usize::from(self.request == Request::Add);
        let largest = if self.body.heavy || held > 2 { 8 } else { 16 };
        let limit = self
            .group(self.inputs.iter().map(|tensor| tensor.dtype))
            .min(largest);
        let size = |dimension: usize| layout.sizes.get(dimension).copied().unwrap_or(1);
        let side = share((size(last) | size(other)).cast_signed(), limit);
        if side < 2 || layout.inner_step(0) != 1 {
            return None;
        }
        if !self.told {
            self.tuning.threads = THREADS;
        }
        // A warp takes 8 squares along the turned input's neighbours and 4 along the output's, a block of eight warps twice
        // and four times that, where they divide: of 2 by 4, 4 by 2, 8 by 1 and the like the fastest on an H200 for all sizes
        // of elements.
        let (down, along) = (size(other) / side, size(last) / side);
        let (downs, alongs) = (share(down.cast_signed(), 8), share(along.cast_signed(), 4));
        let (down_warps, along_warps) = (
            share((down / downs).cast_signed(), 2),
            share((along / alongs).cast_signed(), 4),
        );
        let mut squares = Layout {
            sizes: Vec::new(),
            steps: vec![Vec::new(); arrays],
        };
        let mut put = |size: u64, step_of: &dyn Fn(usize) -> i64| {
            squares.sizes.push(size);
            for (array, steps) in squares.steps.iter_mut().enumerate() {
                steps.push(step_of(array));
            }
        };
        for dimension in (0..last).filter(|&dimension| dimension != other) {
            put(size(dimension), &|array| step(array, dimension));
        }
        let far = |times: u64, dimension: usize| {
            move |array: usize| step(array, dimension).wrapping_mul((times * side).cast_signed())
        };
        put(down / downs / down_warps, &far(downs * down_warps, other));
        put(
            along / alongs / along_warps,
            &far(alongs * along_warps, last),
        );
        put(down_warps, &far(downs, other));
        put(along_warps, &far(alongs, last));
        put(downs, &far(1, other));
        put(alongs, &far(1, last));
        let access: Vec<Access> = (1..arrays)
            .map(|array| match (step(array, last), step(array, other)) {
                (1, _) => Access::Contiguous(side),
                (0, _) => Access::Strided,
                (_, 1) => Access::Turned,
                _ => Access::Strided,
            })
            .collect();
        // Elements that one access may take: all other steps, and the first place, are multiples of it.
        let width = |array: usize, tensor: &Tensor, neighbours: usize| {
            (0..dimensions)
                .filter(|&dimension| dimension != neighbours)
                .fold(
                    share(Self::place(tensor).cast_signed(), side),
                    |width, dimension| share(step(array, dimension), width),
                )
        };
        Some(self.squares(&squares, side, &access, (last, other), step, width))
    }

    fn squares(
        &self,
        squares: &Layout,
        side: u64,
        access: &[Access],
        (last, other): (usize, usize),
        step: impl Fn(usize, usize) -> i64,
        width: impl Fn(usize, &Tensor, usize) -> u64,
    ) -> Result<Launch, PlanError> {
        let threads = u64::from(self.tuning.threads);
        let count = squares.count();
        let wide = !squares.is_small(2 * threads * side * side);
        let blocks = self.blocks(count.div_ceil(threads))?;
        let (arrays, dimensions, i) = (squares.steps.len(), squares.sizes.len(), index(wide));
        let mut steps = String::new();
        for array in 0..arrays {
            let _ = write!(steps, ", const {i} across{array}, const {i} along{array}");
        }
        let mut text = self.opening(
            "warpcc_turned",
            &format!(
                "const {i} squares, const warpcc::places<{i}, {arrays}, {dimensions}> places{steps}"
            ),
        );
        let _ = write!(
            text,
            "  constexpr int V = {side};
  const {i} number = ({i})blockIdx.x * {threads} + ({i})threadIdx.x;
  if (number >= squares) return;
  {i} at[{arrays}];
  places.find(number, at);
"
        );
        let mut reads = String::new();
        for (array, (each, tensor)) in access.iter().zip(&self.inputs).enumerate() {
            let _ = writeln!(text, "  alignas(16) type{array} h{array}[V][V];");
            let from = array + 1;
            let _ = match each {
                // The rows of the turned square are the input's own.
                Access::Turned => writeln!(
                    reads,
                    "    warpcc::read<{}, V>(in{array} + at[{from}] + u * along{from}, h{array}[u]);",
                    width(from, tensor, other)
                ),
                Access::Contiguous(_) => writeln!(
                    reads,
                    "    warpcc::read<{}, V>(in{array} + at[{from}] + u * across{from}, h{array}[u]);",
                    width(from, tensor, last)
                ),
                _ => writeln!(
                    reads,
                    "    warpcc::gather<V, type{array}, {i}>(in{array} + at[{from}] + u * across{from}, along{from}, h{array}[u]);"
                ),
            };
        }
        let target = width(0, self.output, last);
        if self.request == Request::Add {
            text += "  alignas(16) output was[V][V];\n";
            let _ = writeln!(
                reads,
                "    warpcc::read<{target}, V>((const output*)out + at[0] + u * across0, was[u]);"
            );
        }
        let _ = write!(
            text,
            "#pragma unroll
  for (int u = 0; u < V; ++u) {{
{reads}  }}
#pragma unroll
  for (int u = 0; u < V; ++u) {{
    alignas(16) output result[V];
{compute}    warpcc::write<{target}, V>(out + at[0] + u * across0, result);
  }}
}}
",
            compute = self.compute(access, |array| format!("h{array}[u][0]")),
        );
        let mut arguments = self.addresses();
        arguments.push(Argument::index(count.cast_signed(), wide));
        arguments.push(Argument::Bytes(places(squares, 1, wide)));
        for array in 0..arrays {
            arguments.push(Argument::index(step(array, other), wide));
            arguments.push(Argument::index(step(array, last), wide));
        }
        Ok(self.launch("warpcc_turned", text, blocks, arguments))
    }
}
