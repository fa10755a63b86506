//! Brings the shapes and strides of several arrays into one form: broadcasts them to the output's shape, and sorts,
//! merges and counts dimensions.

use crate::plan::{PlanError, Tensor, Which};
use crate::shape::{check, span};

/// Several arrays in one shape. Array 0 is the output. The outermost dimension comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Sizes; at least one dimension.
    pub sizes: Vec<u64>,
    /// For each array its strides in elements.
    pub steps: Vec<Vec<i64>>,
}

impl Layout {
    /// All elements of the shape.
    pub fn count(&self) -> u64 {
        self.sizes.iter().product()
    }

    /// The innermost size.
    pub fn inner(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// An array's innermost stride.
    pub fn inner_step(&self, array: usize) -> i64 {
        self.steps
            .get(array)
            .and_then(|steps| steps.last())
            .copied()
            .unwrap_or(0)
    }

    /// A dimension's size.
    pub fn size(&self, dimension: usize) -> u64 {
        self.sizes.get(dimension).copied().unwrap_or(1)
    }

    /// An array's stride in a dimension.
    pub fn step(&self, array: usize, dimension: usize) -> i64 {
        let steps = self.steps.get(array);
        steps
            .and_then(|steps| steps.get(dimension))
            .copied()
            .unwrap_or(0)
    }

    /// Whether every place of every array, and every number of an element with `slack` more, is
    /// below 2^31.
    pub fn is_small(&self, slack: u64) -> bool {
        const LIMIT: u64 = 1 << 31;
        self.count().saturating_add(slack) < LIMIT
            && self.steps.iter().all(|steps| {
                span(&self.sizes, steps).is_some_and(|(low, high)| {
                    low.unsigned_abs().saturating_add(slack) < LIMIT
                        && high.unsigned_abs().saturating_add(slack) < LIMIT
                })
            })
    }
}

/// Each input's shape broadcast to the output's by NumPy's rules. `None`: there are no elements.
pub(crate) fn broadcast(
    output: &Tensor,
    inputs: &[(&str, &Tensor)],
) -> Result<Option<Layout>, PlanError> {
    let (output_steps, elements) = check(output, &Which::Output)?;
    let mut steps = vec![output_steps.clone()];
    for (name, input) in inputs {
        let which = Which::Input((*name).into());
        let (own, _) = check(input, &which)?;
        let mut fitted = vec![0; output.shape.len()];
        let refuse = |reason: String| PlanError::Shape {
            which: which.clone(),
            shape: input.shape.clone(),
            output: output.shape.clone(),
            reason,
        };
        let missing = output
            .shape
            .len()
            .checked_sub(input.shape.len())
            .ok_or_else(|| refuse("it has more dimensions".to_owned()))?;
        for (dimension, (&size, &step)) in input.shape.iter().zip(&own).enumerate() {
            let target = output.shape.get(missing + dimension).copied().unwrap_or(0);
            if size != target && size != 1 {
                return Err(refuse(format!(
                    "its dimension {dimension} is {size}, where 1 or {target} was expected"
                )));
            }
            if size != 1
                && let Some(place) = fitted.get_mut(missing + dimension)
            {
                *place = step;
            }
        }
        steps.push(fitted);
    }
    if elements == 0 {
        return Ok(None);
    }
    let layout = canonical(&output.shape, steps);
    if overlaps(&layout) {
        return Err(PlanError::OutputOverlaps {
            shape: output.shape.clone(),
            strides: output_steps,
        });
    }
    aliases(output, inputs)?;
    Ok(Some(layout))
}

/// Dimensions of one element left out, the others sorted by the output's strides, and neighbours
/// that every array runs through as one merged.
pub(crate) fn canonical(shape: &[u64], steps: Vec<Vec<i64>>) -> Layout {
    let mut order: Vec<usize> = (0..shape.len())
        .filter(|&d| shape.get(d).is_some_and(|size| *size != 1))
        .collect();
    // The sort is stable: dimensions with equal strides of the output keep their order.
    order.sort_by_key(|&d| {
        let output = steps.first().and_then(|steps| steps.get(d)).copied();
        std::cmp::Reverse(output.unwrap_or(0).unsigned_abs())
    });
    let mut sizes: Vec<u64> = Vec::new();
    let mut merged: Vec<Vec<i64>> = vec![Vec::new(); steps.len()];
    for d in order {
        let size = shape.get(d).copied().unwrap_or(1);
        let step_of = |array: usize| {
            steps
                .get(array)
                .and_then(|steps| steps.get(d))
                .copied()
                .unwrap_or(0)
        };
        let joins = !sizes.is_empty()
            && merged.iter().enumerate().all(|(array, done)| {
                let inner = step_of(array).checked_mul(size.cast_signed());
                done.last().copied() == inner
            });
        if joins {
            if let Some(last) = sizes.last_mut() {
                *last *= size;
            }
            for (array, done) in merged.iter_mut().enumerate() {
                if let Some(last) = done.last_mut() {
                    *last = step_of(array);
                }
            }
        } else {
            sizes.push(size);
            for (array, done) in merged.iter_mut().enumerate() {
                done.push(step_of(array));
            }
        }
    }
    if sizes.is_empty() {
        sizes.push(1);
        for (array, done) in merged.iter_mut().enumerate() {
            done.push(i64::from(array == 0));
        }
    }
    Layout {
        sizes,
        steps: merged,
    }
}

/// Whether two elements of the output may lie on one place: a dimension steps less than the inner
/// ones reach.
pub(crate) fn overlaps(layout: &Layout) -> bool {
    let Some(steps) = layout.steps.first() else {
        return false;
    };
    let mut reach = 0u64;
    for (&size, &step) in layout.sizes.iter().zip(steps).rev() {
        if size > 1 && step.unsigned_abs() <= reach {
            return true;
        }
        reach = reach.saturating_add((size - 1).saturating_mul(step.unsigned_abs()));
    }
    false
}

/// The output may overlap an input only if each element has the same place in both: it is then read before it is
/// written.
pub(crate) fn aliases(output: &Tensor, inputs: &[(&str, &Tensor)]) -> Result<(), PlanError> {
    let bytes = |tensor: &Tensor, which: &Which| -> Result<Option<(i128, i128)>, PlanError> {
        let (steps, elements) = check(tensor, which)?;
        let Some((low, high)) = span(&tensor.shape, &steps).filter(|_| elements > 0) else {
            return Ok(None);
        };
        let size = i128::from(tensor.dtype.size());
        let start = i128::from(tensor.address);
        Ok(Some((
            start + i128::from(low) * size,
            start + (i128::from(high) + 1) * size,
        )))
    };
    let Some((first, end)) = bytes(output, &Which::Output)? else {
        return Ok(());
    };
    let (output_steps, _) = check(output, &Which::Output)?;
    for (name, input) in inputs {
        let which = Which::Input((*name).into());
        let Some((low, high)) = bytes(input, &which)? else {
            continue;
        };
        if low >= end || high <= first {
            continue;
        }
        let (steps, _) = check(input, &which)?;
        let same = input.address == output.address
            && input.dtype == output.dtype
            && input.shape == output.shape
            && input
                .shape
                .iter()
                .zip(steps.iter().zip(&output_steps))
                .all(|(size, (a, b))| *size == 1 || a == b);
        if !same {
            return Err(PlanError::Aliases { which });
        }
    }
    Ok(())
}

/// A divisor's factor and shift: `n / by == (mulhi(n, factor) + n) >> shift` for every `n` below
/// half the width's range.
pub(crate) fn divider(by: u64, wide: bool) -> (u64, u64) {
    let by = by.max(1);
    let shift = u64::BITS - (by - 1).leading_zeros();
    let bits = if wide { 64 } else { 32 };
    let factor = ((1u128 << bits) * ((1u128 << shift) - u128::from(by))) / u128::from(by) + 1;
    // Below 2^bits, since 2^shift is below twice the divisor.
    (factor as u64, u64::from(shift))
}
