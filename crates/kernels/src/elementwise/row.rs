//! Arrays that the output runs through without a gap: one row of elements.

use std::fmt::Write as _;

use super::kernel::{Access, ElementKernel};
use crate::generate::{grid, index, share};
use crate::layout::Layout;
use crate::plan::{Argument, Launch, PlanError, WriteMode};

/// One dimension that the output runs through without a gap, and each input too, or it is one value.
pub(super) fn is_row(layout: &Layout) -> bool {
    layout.sizes.len() == 1
        && layout.inner_step(0) == 1
        && (1..layout.steps.len()).all(|array| matches!(layout.inner_step(array), 0 | 1))
}

/// How a row is cut.
struct Row {
    count: u64,
    /// Elements between the last aligned place before the output and the output itself.
    lead: u64,
    /// Elements that a thread takes at once.
    group: u64,
    unroll: u32,
    /// Indices have 64 bits.
    is_wide: bool,
    access: Vec<Access>,
}

impl ElementKernel<'_> {
    pub(super) fn row(&self, layout: &Layout) -> Result<Launch, PlanError> {
        let row = self.cut_row(layout);
        let tile = self.row_tile(row.unroll, row.group);
        let blocks = grid(row.count.saturating_add(row.lead).div_ceil(tile))?;
        let mut arguments = self.addresses();
        arguments.push(Argument::index(row.count.cast_signed(), row.is_wide));
        arguments.push(Argument::index(row.lead.cast_signed(), row.is_wide));
        Ok(self.launch("warpcc_row", self.row_text(&row), blocks, arguments))
    }

    fn cut_row(&self, layout: &Layout) -> Row {
        let is_one = |input: usize| layout.inner_step(input + 1) == 0;
        let inputs = || self.inputs.iter().enumerate();
        let together = inputs().filter(|(input, _)| !is_one(*input));
        let group = self.group(together.map(|(_, tensor)| tensor.dtype));
        let lead = Self::place(self.output) % group;
        let access: Vec<Access> = inputs()
            .map(|(input, tensor)| {
                if is_one(input) {
                    return Access::Broadcast;
                }
                let off = Self::place(tensor) % group + group - lead;
                Access::Contiguous(share((off % group).cast_signed(), group))
            })
            .collect();
        let unroll = self.row_unroll(&access, group);
        Row {
            count: layout.count(),
            lead,
            group,
            unroll,
            is_wide: !layout.is_small(2 * self.row_tile(unroll, group)),
            access,
        }
    }

    /// Elements of a block.
    fn row_tile(&self, unroll: u32, group: u64) -> u64 {
        u64::from(self.tuning.threads) * u64::from(unroll) * group
    }

    /// The number of accesses at a time in a row. It is two if a thread has many elements and each takes long to
    /// compute, or is read in several small accesses. Otherwise one was faster on an H200, by 3 %.
    fn row_unroll(&self, access: &[Access], group: u64) -> u32 {
        let small = |each: &Access| matches!(each, Access::Contiguous(width) if *width < group);
        if !self.has_own_tuning && group >= 8 && (self.body.heavy || access.iter().any(small)) {
            return 2;
        }
        self.tuning.unroll
    }

    fn row_text(&self, row: &Row) -> String {
        let i = index(row.is_wide);
        let mut text = self.opening("warpcc_row", &format!("const {i} count, const {i} lead"));
        let _ = write!(
            text,
            "  constexpr int V = {group}, U = {unroll}, T = {threads};
  const {i} tile = ({i})blockIdx.x * (T * U * V) - lead;
  const {i} first = tile + ({i})threadIdx.x * V;
  const bool whole = tile >= 0 && tile + T * U * V <= count;
",
            group = row.group,
            unroll = row.unroll,
            threads = self.tuning.threads,
        );
        self.hold_row(&mut text, &row.access);
        let (inside, edge) = self.row_reads(&row.access, i);
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
            compute = self.compute(&row.access, |array| format!("h{array}")),
        );
        text
    }

    /// The registers that elements are read to, and values that all elements share.
    fn hold_row(&self, text: &mut String, access: &[Access]) {
        for (array, each) in access.iter().enumerate() {
            let _ = match each {
                Access::Broadcast => writeln!(text, "  const type{array} h{array} = *in{array};"),
                _ => writeln!(text, "  alignas(16) type{array} h{array}[U][V];"),
            };
        }
        if self.mode == WriteMode::Add {
            *text += "  alignas(16) output was[U][V];\n";
        }
    }

    /// The texts of a block's reads: of a block inside the row, and of one at an end of it, where some elements are
    /// missing.
    fn row_reads(&self, access: &[Access], i: &str) -> (String, String) {
        let (mut inside, mut edge) = (String::new(), String::new());
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
        if self.mode == WriteMode::Add {
            inside +=
                "      warpcc::read<V, V>((const output*)out + first + u * (T * V), was[u]);\n";
            let _ = writeln!(
                edge,
                "      warpcc::read_within<V, output, {i}>(out, first + u * (T * V), count, was[u]);"
            );
        }
        (inside, edge)
    }
}
