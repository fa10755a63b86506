//! NumPy's rules for shapes and strides: what broadcasts, what is left after a reduction, how far an array reaches.

use crate::plan::{PlanError, Tensor, Which};

/// The shape that arrays broadcast to, each given by its name. Without arrays, it is the shape of a single element.
///
/// # Errors
///
/// The first array whose shape does not fit those before it.
pub fn broadcast_shape<'a>(
    arrays: impl IntoIterator<Item = (&'a str, &'a [u64])>,
) -> Result<Vec<u64>, PlanError> {
    let mut all: Vec<u64> = Vec::new();
    for (name, shape) in arrays {
        if shape == all {
            continue;
        }
        let Some(both) = broadcast_two(&all, shape) else {
            return Err(PlanError::Broadcast {
                name: name.to_owned(),
                shape: shape.to_vec(),
                before: all,
            });
        };
        all = both;
    }
    Ok(all)
}

/// The shape that two broadcast to: aligned at their last dimensions, sizes are equal or one is 1.
fn broadcast_two(one: &[u64], other: &[u64]) -> Option<Vec<u64>> {
    let (long, short) = match one.len() < other.len() {
        true => (other, one),
        false => (one, other),
    };
    let mut both = long.to_vec();
    for (place, &size) in both.iter_mut().skip(long.len() - short.len()).zip(short) {
        *place = match (*place, size) {
            (a, b) if a == b || b == 1 => a,
            (1, b) => b,
            _ => return None,
        };
    }
    Some(both)
}

/// For each dimension whether it is among `axes`. Negative ones count from the last; none: all are.
///
/// # Errors
///
/// An axis that is not there, or is named twice.
pub fn reduced_axes(axes: Option<&[i64]>, dimensions: usize) -> Result<Vec<bool>, PlanError> {
    let Some(axes) = axes else {
        return Ok(vec![true; dimensions]);
    };
    let mut reduced = vec![false; dimensions];
    for &axis in axes {
        let wrong = |twice| PlanError::Axis {
            axis,
            dimensions,
            twice,
        };
        let from_front = match axis < 0 {
            true => axis.checked_add_unsigned(dimensions as u64),
            false => Some(axis),
        };
        let place = from_front
            .and_then(|axis| usize::try_from(axis).ok())
            .and_then(|axis| reduced.get_mut(axis))
            .ok_or_else(|| wrong(false))?;
        if *place {
            return Err(wrong(true));
        }
        *place = true;
    }
    Ok(reduced)
}

/// The shape that is left: without the reduced dimensions, or with them of size 1.
pub fn reduced_shape(shape: &[u64], reduced: &[bool], keeps_dimensions: bool) -> Vec<u64> {
    let sizes = shape.iter().zip(reduced);
    sizes
        .filter_map(|(&size, &is_reduced)| match is_reduced {
            false => Some(size),
            true => keeps_dimensions.then_some(1),
        })
        .collect()
}

/// Strides in elements of `size` bytes, for strides in bytes.
///
/// # Errors
///
/// One that ends between elements.
pub fn element_strides(bytes: &[i64], size: u64) -> Result<Vec<i64>, i64> {
    let size = size.max(1).cast_signed();
    let strides = bytes.iter().map(|&step| match step % size {
        0 => Ok(step / size),
        _ => Err(step),
    });
    strides.collect()
}

/// Whether an array's rows follow one another, without a gap.
pub fn is_dense(shape: &[u64], strides: &[i64]) -> bool {
    let mut next = 1;
    let mut pairs = shape.iter().zip(strides).rev();
    pairs.all(|(&size, &step)| {
        let follows = size == 1 || step.cast_unsigned() == next;
        next = next.wrapping_mul(size);
        follows
    })
}

/// The strides of an array whose rows follow one another. Of a product of sizes beyond 2^63 they make no sense.
fn dense_strides(shape: &[u64]) -> Vec<i64> {
    let mut step = 1i64;
    let mut strides = vec![0; shape.len()];
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(size.max(1).cast_signed());
    }
    strides
}

/// Checks what concerns one array alone: counts, address, alignment. Gives its strides and elements.
pub(crate) fn check(tensor: &Tensor, which: &Which) -> Result<(Vec<i64>, u64), PlanError> {
    let too_large = |reason| PlanError::TooLarge {
        which: which.clone(),
        reason,
    };
    if tensor.shape.len() > 64 {
        return Err(too_large("more than 64 dimensions"));
    }
    if let Some(strides) = &tensor.strides
        && strides.len() != tensor.shape.len()
    {
        return Err(PlanError::Strides {
            which: which.clone(),
            dimensions: tensor.shape.len(),
            strides: strides.len(),
        });
    }
    let dense: Option<u64> = tensor
        .shape
        .iter()
        .try_fold(1u64, |all, &size| all.checked_mul(size.max(1)));
    let limit = (i64::MAX as u64) / tensor.dtype.size();
    let dense = dense
        .filter(|dense| *dense <= limit)
        .ok_or_else(|| too_large("more than 2^63 bytes"))?;
    let elements = if tensor.shape.contains(&0) { 0 } else { dense };
    let strides = match &tensor.strides {
        Some(strides) => strides.clone(),
        None => dense_strides(&tensor.shape),
    };
    if elements == 0 {
        return Ok((strides, 0));
    }
    if tensor.address == 0 {
        return Err(PlanError::Null {
            which: which.clone(),
        });
    }
    if !tensor.address.is_multiple_of(tensor.dtype.size()) {
        return Err(PlanError::Misaligned {
            which: which.clone(),
            address: tensor.address,
            dtype: tensor.dtype,
        });
    }
    let (low, high) = span(&tensor.shape, &strides).ok_or_else(|| too_large("its strides"))?;
    let size = i128::from(tensor.dtype.size());
    let first = i128::from(tensor.address) + i128::from(low) * size;
    let last = i128::from(tensor.address) + (i128::from(high) + 1) * size;
    if first < 0 || last > i128::from(u64::MAX) {
        return Err(too_large("its elements leave the address space"));
    }
    Ok((strides, elements))
}

/// The lowest and highest element offset of an array that has elements.
pub(crate) fn span(shape: &[u64], strides: &[i64]) -> Option<(i64, i64)> {
    let (mut low, mut high) = (0i64, 0i64);
    for (&size, &stride) in shape.iter().zip(strides) {
        let reach = i64::try_from(size.checked_sub(1)?)
            .ok()?
            .checked_mul(stride)?;
        if reach < 0 {
            low = low.checked_add(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broadcast(shapes: &[&[u64]]) -> Result<Vec<u64>, PlanError> {
        broadcast_shape(shapes.iter().map(|shape| ("x", *shape)))
    }

    #[test]
    fn shapes_broadcast_as_numpys_do() {
        // Of numpy.broadcast_shapes.
        let cases: [(&[&[u64]], &[u64]); 7] = [
            (&[], &[]),
            (&[&[]], &[]),
            (&[&[3], &[]], &[3]),
            (&[&[2, 3], &[3]], &[2, 3]),
            (&[&[3], &[2, 1]], &[2, 3]),
            (&[&[1], &[0]], &[0]),
            (&[&[5, 1, 7], &[4, 1], &[1, 1, 1, 1]], &[1, 5, 4, 7]),
        ];
        for (shapes, expected) in cases {
            assert_eq!(
                broadcast(shapes).ok().as_deref(),
                Some(expected),
                "{shapes:?}"
            );
        }
        let cases: [&[&[u64]]; 3] = [&[&[2], &[3]], &[&[0], &[2]], &[&[2, 1], &[2, 3, 4], &[5]]];
        for wrong in cases {
            assert!(broadcast(wrong).is_err(), "{wrong:?}");
        }
        let error = broadcast_shape([("a", &[4, 2][..]), ("b", &[3, 1]), ("c", &[])]);
        assert_eq!(
            error.map_err(|error| error.to_string()),
            Err("b has shape [3, 1], which does not broadcast with [4, 2], the shape of the inputs before it".to_owned())
        );
    }

    #[test]
    fn axes_count_from_both_ends() {
        let axes = |axes: &[i64]| reduced_axes(Some(axes), 3);
        assert_eq!(axes(&[0, -1]).ok(), Some(vec![true, false, true]));
        assert_eq!(axes(&[]).ok(), Some(vec![false; 3]));
        assert_eq!(reduced_axes(None, 2).ok(), Some(vec![true; 2]));
        for (wrong, is_twice) in [
            (&[3][..], false),
            (&[-4], false),
            (&[i64::MIN], false),
            (&[i64::MAX], false),
            (&[1, -2], true),
        ] {
            let Err(PlanError::Axis { twice, .. }) = axes(wrong) else {
                panic!("{wrong:?}");
            };
            assert_eq!(twice, is_twice, "{wrong:?}");
        }
        let left = |keeps| reduced_shape(&[4, 5, 6], &[true, false, true], keeps);
        assert_eq!((left(false), left(true)), (vec![5], vec![1, 5, 1]));
    }

    #[test]
    fn strides_are_of_whole_elements_and_dense_without_a_gap() {
        assert_eq!(element_strides(&[24, -8, 0], 8), Ok(vec![3, -1, 0]));
        assert_eq!(element_strides(&[24, 4], 8), Err(4));
        assert!(is_dense(&[2, 3], &[3, 1]));
        // The stride of a dimension of one element does not count.
        assert!(is_dense(&[2, 1, 3], &[3, 77, 1]) && is_dense(&[], &[]));
        assert!(!is_dense(&[2, 3], &[1, 2]) && !is_dense(&[2, 3], &[4, 1]));
        assert!(!is_dense(&[2, 3], &[-3, 1]) && !is_dense(&[2, 3], &[0, 1]));
    }
}
