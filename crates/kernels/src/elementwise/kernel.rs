//! The kernel of an expression: the parts that all its forms share.

use std::fmt::Write as _;

use crate::dtype::DType;
use crate::expression::Number;
use crate::infer::{Body, dtype_text};
use crate::plan::{Argument, Launch, Tensor, Tuning, WriteMode};
use crate::value::number_argument;

/// How an array's neighbours are reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Access {
    /// Side by side: accesses of this many elements.
    Contiguous(u64),
    /// All one element.
    Broadcast,
    /// A stride apart.
    Strided,
    /// Side by side in the other dimension of a square: held transposed.
    Transposed,
}

/// An expression, and what it is computed over.
pub(super) struct ElementKernel<'a> {
    pub(super) body: &'a Body,
    pub(super) output: &'a Tensor,
    pub(super) inputs: Vec<&'a Tensor>,
    pub(super) numbers: Vec<Number>,
    pub(super) mode: WriteMode,
    pub(super) tuning: Tuning,
    /// The tuning is the caller's.
    pub(super) has_own_tuning: bool,
}

impl ElementKernel<'_> {
    /// How many elements a thread takes at once: 16 bytes of the largest type.
    pub(super) fn group(&self, together: impl Iterator<Item = DType>) -> u64 {
        let largest = together
            .chain([self.output.dtype])
            .map(DType::size)
            .max()
            .unwrap_or(1);
        (16 / largest).max(1)
    }

    /// An array's place in memory, counted in its elements.
    pub(super) fn place(tensor: &Tensor) -> u64 {
        tensor.address / tensor.dtype.size()
    }

    /// The types, the expression as a function, and the kernel's head.
    pub(super) fn opening(&self, name: &str, rest: &str) -> String {
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

    /// The values of V neighbours: read as they are computed with, computed, and made what is stored. `single` is
    /// the value of an array that all of them share.
    pub(super) fn compute(&self, access: &[Access], single: impl Fn(usize) -> String) -> String {
        let mut text = self.widened(access);
        let arrays = access.iter().enumerate().map(|(array, each)| match each {
            Access::Broadcast => format!("warpcc::widen({})", single(array)),
            _ => format!("w{array}[v]"),
        });
        let numbers = (0..self.numbers.len()).map(|number| format!("s{number}"));
        let arguments: Vec<String> = arrays.chain(numbers).collect();
        let computed = dtype_text(self.body.dtype);
        let (before, settled) = match self.mode {
            WriteMode::Write => ("0".to_owned(), computed.to_owned()),
            WriteMode::Add => (
                format!("w{}[v]", self.inputs.len()),
                format!(
                    "warpcc::number_t<warpcc::mixed_type<warpcc::compute_t<output>, {computed}>>"
                ),
            ),
        };
        let value = format!(
            "warpcc::settled<{mode}>(value({arguments}), {before})",
            mode = self.mode.device(),
            arguments = arguments.join(", "),
        );
        let _ = write!(
            text,
            "    {settled} values[V];
#pragma unroll
    for (int v = 0; v < V; ++v) values[v] = {value};
    warpcc::narrow_all(values, result);
"
        );
        text
    }

    /// The text that widens the values that were read to the compute type: the inputs, and the output where the result
    /// is added to it.
    fn widened(&self, access: &[Access]) -> String {
        let mut text = String::new();
        let mut widen_all = |dtype: &str, array: usize, from: &str| {
            let _ = writeln!(
                text,
                "    warpcc::compute_t<{dtype}> w{array}[V];
    warpcc::widen_all({from}, w{array});"
            );
        };
        for (array, each) in access.iter().enumerate() {
            if !matches!(each, Access::Broadcast | Access::Transposed) {
                widen_all(&format!("type{array}"), array, &format!("h{array}[u]"));
            }
        }
        if self.mode == WriteMode::Add {
            widen_all("output", self.inputs.len(), "was[u]");
        }
        for (array, each) in access.iter().enumerate() {
            if *each == Access::Transposed {
                let _ = writeln!(
                    text,
                    "    warpcc::compute_t<type{array}> w{array}[V];
#pragma unroll
    for (int v = 0; v < V; ++v) w{array}[v] = warpcc::widen(h{array}[v][u]);"
                );
            }
        }
        text
    }

    /// Its first arguments: the output, the inputs, the numbers.
    pub(super) fn addresses(&self) -> Vec<Argument> {
        let mut arguments = vec![Argument::Address(self.output.address)];
        let inputs = self.inputs.iter();
        arguments.extend(inputs.map(|tensor| Argument::Address(tensor.address)));
        arguments.extend(self.numbers.iter().copied().map(number_argument));
        arguments
    }

    /// The kernel, started with this many blocks.
    pub(super) fn launch(
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
