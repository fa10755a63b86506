//! Kernels over arrays some of which are transposed: neighbouring elements are in another dimension than the output's.

use std::fmt::Write as _;

use super::kernel::{Access, ElementKernel};
use crate::generate::{grid, index, places, share};
use crate::layout::Layout;
use crate::plan::{Argument, Launch, PlanError, Tensor, WriteMode};

/// Threads of a block.
const THREADS: u32 = 256;

/// Squares of elements, as many rows of the output's neighbours as of a transposed input's: each array is read and written along
/// its own neighbours.
pub(super) struct Squares {
    /// Elements of a side.
    side: u64,
    /// Of each array, in elements: from a row of the output's neighbours to the next, and from a neighbour to the next.
    steps: Vec<(i64, i64)>,
    /// Where squares are, in the order in which threads take them.
    order: Layout,
    /// Indices have 64 bits.
    is_wide: bool,
    /// The access to each input.
    access: Vec<Access>,
    /// Elements that one access of each array may take.
    widths: Vec<u64>,
}

impl ElementKernel<'_> {
    /// How the arrays are cut into squares; `None` where no input is transposed, or squares do not fit.
    pub(super) fn squares(&mut self, layout: &Layout) -> Option<Squares> {
        let last = layout.sizes.len().checked_sub(1)?;
        let arrays = 0..layout.steps.len();
        // The dimension in which an input's neighbours are.
        let other = (1..layout.steps.len())
            .filter(|&array| !matches!(layout.step(array, last), 0 | 1))
            .find_map(|array| (0..last).find(|&dimension| layout.step(array, dimension) == 1))?;
        let both = layout.size(last) | layout.size(other);
        let side = share(both.cast_signed(), self.largest_side());
        if side < 2 || layout.inner_step(0) != 1 {
            return None;
        }
        if !self.has_own_tuning {
            self.tuning.threads = THREADS;
        }
        let order = sorted(layout, side, last, other);
        let access: Vec<Access> = (1..layout.steps.len())
            .map(
                |array| match (layout.step(array, last), layout.step(array, other)) {
                    (1, _) => Access::Contiguous(side),
                    (0, _) => Access::Strided,
                    (_, 1) => Access::Transposed,
                    _ => Access::Strided,
                },
            )
            .collect();
        let tensors = [self.output].into_iter().chain(self.inputs.iter().copied());
        let widths = tensors.enumerate().map(|(array, tensor)| {
            let along = match array.checked_sub(1).and_then(|input| access.get(input)) {
                Some(Access::Transposed) => other,
                _ => last,
            };
            Self::square_width(layout, array, tensor, (side, along))
        });
        let threads = u64::from(self.tuning.threads);
        Some(Squares {
            widths: widths.collect(),
            steps: arrays
                .map(|array| (layout.step(array, other), layout.step(array, last)))
                .collect(),
            is_wide: !order.is_small(2 * threads * side * side),
            side,
            order,
            access,
        })
    }

    /// 16 by 16 bytes, if a thread has enough registers and the computation is short: the text has it 256 times.
    fn largest_side(&self) -> u64 {
        let held = self.inputs.len() + usize::from(self.mode == WriteMode::Add);
        let largest = if self.body.heavy || held > 2 { 8 } else { 16 };
        self.group(self.inputs.iter().map(|tensor| tensor.dtype))
            .min(largest)
    }

    /// Elements that one access of an array may take: its first place, and all strides but that `along` its neighbours, are
    /// multiples of it.
    fn square_width(
        layout: &Layout,
        array: usize,
        tensor: &Tensor,
        (side, along): (u64, usize),
    ) -> u64 {
        let first = share(Self::place(tensor).cast_signed(), side);
        (0..layout.sizes.len())
            .filter(|&dimension| dimension != along)
            .fold(first, |width, dimension| {
                share(layout.step(array, dimension), width)
            })
    }

    pub(super) fn transposed(&self, squares: &Squares) -> Result<Launch, PlanError> {
        let count = squares.order.count();
        let blocks = grid(count.div_ceil(u64::from(self.tuning.threads)))?;
        let wide = squares.is_wide;
        let mut arguments = self.addresses();
        arguments.push(Argument::index(count.cast_signed(), wide));
        arguments.push(Argument::Bytes(places(&squares.order, 1, wide)));
        for &(across, along) in &squares.steps {
            arguments.push(Argument::index(across, wide));
            arguments.push(Argument::index(along, wide));
        }
        Ok(self.launch(
            "warpcc_transposed",
            self.transposed_text(squares),
            blocks,
            arguments,
        ))
    }

    fn transposed_text(&self, squares: &Squares) -> String {
        let i = index(squares.is_wide);
        let (arrays, dimensions) = (squares.steps.len(), squares.order.sizes.len());
        let mut steps = String::new();
        for array in 0..arrays {
            let _ = write!(steps, ", const {i} across{array}, const {i} along{array}");
        }
        let mut text = self.opening(
            "warpcc_transposed",
            &format!(
                "const {i} squares, const warpcc::places<{i}, {arrays}, {dimensions}> places{steps}"
            ),
        );
        let (held, reads) = self.square_reads(squares, i);
        let _ = write!(
            text,
            "  constexpr int V = {side};
  const {i} number = ({i})blockIdx.x * {threads} + ({i})threadIdx.x;
  if (number >= squares) return;
  {i} at[{arrays}];
  places.find(number, at);
{held}#pragma unroll
  for (int u = 0; u < V; ++u) {{
{reads}  }}
#pragma unroll
  for (int u = 0; u < V; ++u) {{
    alignas(16) output result[V];
{compute}    warpcc::write<{target}, V>(out + at[0] + u * across0, result);
  }}
}}
",
            side = squares.side,
            threads = self.tuning.threads,
            compute = self.compute(&squares.access, |array| format!("h{array}[u][0]")),
            target = squares.width(0),
        );
        text
    }

    /// The registers that squares are read to, and the reads of a row.
    fn square_reads(&self, squares: &Squares, i: &str) -> (String, String) {
        let (mut held, mut reads) = (String::new(), String::new());
        for (array, each) in squares.access.iter().enumerate() {
            let _ = writeln!(held, "  alignas(16) type{array} h{array}[V][V];");
            let from = array + 1;
            let width = squares.width(from);
            let _ = match each {
                // The rows of the transposed square are the input's own.
                Access::Transposed => writeln!(
                    reads,
                    "    warpcc::read<{width}, V>(in{array} + at[{from}] + u * along{from}, h{array}[u]);"
                ),
                Access::Contiguous(_) => writeln!(
                    reads,
                    "    warpcc::read<{width}, V>(in{array} + at[{from}] + u * across{from}, h{array}[u]);"
                ),
                _ => writeln!(
                    reads,
                    "    warpcc::gather<V, type{array}, {i}>(in{array} + at[{from}] + u * across{from}, along{from}, h{array}[u]);"
                ),
            };
        }
        if self.mode == WriteMode::Add {
            held += "  alignas(16) output was[V][V];\n";
            let _ = writeln!(
                reads,
                "    warpcc::read<{}, V>((const output*)out + at[0] + u * across0, was[u]);",
                squares.width(0)
            );
        }
        (held, reads)
    }
}

impl Squares {
    fn width(&self, array: usize) -> u64 {
        self.widths.get(array).copied().unwrap_or(1)
    }
}

/// The squares in the order in which threads take them. A warp takes squares that lie together both ways, so that whole sectors of
/// memory move, and so does a block, so that whole lines do: a warp 8 squares along the transposed input's neighbours and 4
/// along the output's, a block of eight warps twice and four times that, where they divide. Of 2 by 4, 4 by 2, 8 by 1 and the
/// like these were the fastest on an H200 for all sizes of elements.
fn sorted(layout: &Layout, side: u64, last: usize, other: usize) -> Layout {
    let (down, along) = (layout.size(other) / side, layout.size(last) / side);
    let (downs, alongs) = (share(down.cast_signed(), 8), share(along.cast_signed(), 4));
    let (down_warps, along_warps) = (
        share((down / downs).cast_signed(), 2),
        share((along / alongs).cast_signed(), 4),
    );
    let mut squares = Layout {
        sizes: Vec::new(),
        steps: vec![Vec::new(); layout.steps.len()],
    };
    // The number of squares, and the elements of a dimension from each to the next.
    let mut put = |size: u64, (dimension, elements): (usize, u64)| {
        squares.sizes.push(size);
        for (array, steps) in squares.steps.iter_mut().enumerate() {
            let step = layout.step(array, dimension);
            steps.push(step.wrapping_mul(elements.cast_signed()));
        }
    };
    for dimension in (0..last).filter(|&dimension| dimension != other) {
        put(layout.size(dimension), (dimension, 1));
    }
    let block = (downs * down_warps, alongs * along_warps);
    put(down / block.0, (other, block.0 * side));
    put(along / block.1, (last, block.1 * side));
    put(down_warps, (other, downs * side));
    put(along_warps, (last, alongs * side));
    put(downs, (other, side));
    put(alongs, (last, side));
    squares
}
