//! Arrays that are not one row together: each group of neighbours finds its place in every array by division.

use std::fmt::Write as _;

use super::kernel::{Access, ElementKernel};
use crate::generate::{grid, index, places, share};
use crate::layout::Layout;
use crate::plan::{Argument, Launch, PlanError, Tensor, WriteMode};

/// How strided arrays are cut.
struct Groups {
    /// Neighbours of a group.
    size: u64,
    count: u64,
    /// Groups that a thread takes at once.
    unroll: u32,
    /// Indices have 64 bits.
    is_wide: bool,
    /// The access to a group's neighbours in each input.
    access: Vec<Access>,
    /// The same access in the output.
    target: Access,
    arrays: usize,
    dimensions: usize,
}

impl ElementKernel<'_> {
    pub(super) fn strided(&self, layout: &Layout) -> Result<Launch, PlanError> {
        let groups = self.cut_strided(layout);
        let tile = u64::from(self.tuning.threads) * u64::from(groups.unroll);
        let blocks = grid(groups.count.div_ceil(tile))?;
        let wide = groups.is_wide;
        let mut arguments = self.addresses();
        arguments.push(Argument::index(groups.count.cast_signed(), wide));
        arguments.push(Argument::Bytes(places(layout, groups.size, wide)));
        for array in 0..groups.arrays {
            arguments.push(Argument::index(layout.inner_step(array), wide));
        }
        Ok(self.launch(
            "warpcc_strided",
            self.strided_text(&groups),
            blocks,
            arguments,
        ))
    }

    fn cut_strided(&self, layout: &Layout) -> Groups {
        let limit = self.largest_group(layout);
        let size = share(layout.inner().cast_signed(), limit);
        // Rows of odd lengths are read in smaller accesses, so many at a time that the number of bytes is the same.
        let unroll = if self.has_own_tuning {
            self.tuning.unroll
        } else {
            u32::try_from((limit / size).min(8)).unwrap_or(1)
        };
        let reach = |array: usize, tensor: &Tensor| match layout.inner_step(array) {
            1 => Access::Contiguous(Self::width(layout, array, tensor, size)),
            0 => Access::Broadcast,
            _ => Access::Strided,
        };
        let inputs = self.inputs.iter().enumerate();
        let tile = u64::from(self.tuning.threads) * u64::from(unroll);
        Groups {
            size,
            count: layout.count() / size,
            unroll,
            is_wide: !layout.is_small(2 * tile * size),
            access: inputs
                .map(|(input, tensor)| reach(input + 1, tensor))
                .collect(),
            target: reach(0, self.output),
            arrays: layout.steps.len(),
            dimensions: layout.sizes.len(),
        }
    }

    /// The most neighbours that a thread may access at once. It is one if they are not next to each other.
    fn largest_group(&self, layout: &Layout) -> u64 {
        if layout.inner_step(0) != 1 {
            return 1;
        }
        let inputs = self.inputs.iter().enumerate();
        let together = inputs.filter(|(input, _)| layout.inner_step(input + 1) == 1);
        self.group(together.map(|(_, tensor)| tensor.dtype))
    }

    /// Elements that one access of an array may take: its first place, and all strides but the innermost, are multiples of it.
    fn width(layout: &Layout, array: usize, tensor: &Tensor, group: u64) -> u64 {
        let steps = layout.steps.get(array).map_or(&[][..], Vec::as_slice);
        let outer = steps.split_last().map_or(&[][..], |(_, outer)| outer);
        let first = share(Self::place(tensor).cast_signed(), group);
        outer.iter().fold(first, |width, step| share(*step, width))
    }

    fn strided_text(&self, groups: &Groups) -> String {
        let (arrays, dimensions) = (groups.arrays, groups.dimensions);
        let i = index(groups.is_wide);
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
        let (held, reads) = self.strided_reads(groups, i);
        let store = match groups.target {
            Access::Contiguous(width) => {
                format!("warpcc::write<{width}, V>(out + at[u][0], result)")
            }
            _ => format!("warpcc::scatter<V, output, {i}>(out + at[u][0], step0, result)"),
        };
        let _ = write!(
            text,
            "  constexpr int V = {size}, U = {unroll}, T = {threads};
  const {i} first = ({i})blockIdx.x * (T * U) + ({i})threadIdx.x;
  {i} at[U][{arrays}];
{held}#pragma unroll
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
            size = groups.size,
            unroll = groups.unroll,
            threads = self.tuning.threads,
            compute = self.compute(&groups.access, |array| format!("h{array}[u][0]")),
        );
        text
    }

    /// The registers that elements are read to, and the reads. A value that all neighbours share is still another one for
    /// each group.
    fn strided_reads(&self, groups: &Groups, i: &str) -> (String, String) {
        let (mut held, mut reads) = (String::new(), String::new());
        for (array, each) in groups.access.iter().enumerate() {
            let number = array + 1;
            let from = format!("in{array} + at[u][{number}]");
            let (many, read) = match each {
                // Those have a kernel of their own.
                Access::Transposed => continue,
                Access::Contiguous(width) => (
                    "V",
                    format!("warpcc::read<{width}, V>({from}, h{array}[u])"),
                ),
                Access::Broadcast => ("1", format!("h{array}[u][0] = *({from})")),
                Access::Strided => (
                    "V",
                    format!(
                        "warpcc::gather<V, type{array}, {i}>({from}, step{number}, h{array}[u])"
                    ),
                ),
            };
            let _ = writeln!(held, "  alignas(16) type{array} h{array}[U][{many}];");
            let _ = writeln!(reads, "      {read};");
        }
        if self.mode == WriteMode::Add {
            held += "  alignas(16) output was[U][V];\n";
            reads += &match groups.target {
                Access::Contiguous(width) => format!(
                    "      warpcc::read<{width}, V>((const output*)out + at[u][0], was[u]);\n"
                ),
                _ => format!(
                    "      warpcc::gather<V, output, {i}>(out + at[u][0], step0, was[u]);\n"
                ),
            };
        }
        (held, reads)
    }
}
