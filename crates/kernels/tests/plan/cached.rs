//! Plans from the plan cache equal new ones.

use proptest::prelude::*;
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{Value, fused};
use warpcc_kernels::expression::{Expr, Number};
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::WriteMode;
use warpcc_kernels::reduce::reduce;

use crate::array;

proptest! {
    // Few of the ways in which arrays can lie make a difference.
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// A plan that is filled in is the one that would have been made, and wrong addresses are reported.
    #[test]
    fn cached_plans_equal_new_ones(
        shape in prop::collection::vec(0u64..9, 0..4),
        x in (any::<prop::sample::Index>(), 0usize..4),
        y in (any::<prop::sample::Index>(), 0usize..4),
        output in (any::<prop::sample::Index>(), 0usize..2),
        places in prop::array::uniform3(0u64..40),
        moved in prop::array::uniform3(0u64..40),
        numbers in prop::array::uniform2(prop_oneof![
            (-3i64..300).prop_map(Number::Int),
            (-3.0..3.0).prop_map(Number::Float),
        ]),
        add: bool,
    ) {
        // Rows one after another, transposed, every second, or one element for all.
        let made = |(dtype, steps): &(prop::sample::Index, usize), base: u64, place: u64| {
            let dtype = *dtype.get(&DType::ALL);
            let rows = shape.iter().rev().scan(1i64, |step, size| {
                let own = *step;
                *step *= size.cast_signed().max(1);
                Some(own)
            });
            let mut strides: Vec<i64> = rows.collect();
            match steps {
                1 => {}
                2 => { strides.reverse(); strides.iter_mut().for_each(|step| *step *= 2) }
                3 => strides.fill(0),
                _ => strides.reverse(),
            }
            // In memory of its own, or in that of others, or where the address space ends, or nowhere.
            let address = match place {
                0 => 0,
                1..8 => 65_536 + place * dtype.size(),
                39 => u64::MAX - 63,
                _ => base * 65_536 + place * dtype.size(),
            };
            array(dtype, &shape, address).with_strides(&strides)
        };
        let request = if add { WriteMode::Add } else { WriteMode::Write };
        let plan = |expr: &Expr, places: [u64; 3], number: Number| {
            let (x, y) = (made(&x, 1, places[0]), made(&y, 2, places[1]));
            let values = [("x", (&x).into()), ("s", Value::Number(number)), ("y", (&y).into())];
            let plan = fused(expr, &values, &made(&output, 3, places[2]), request);
            plan.map_err(|error| error.to_string())
        };
        let text = "where(x > 1, x + s, y)";
        let known = parse(text).unwrap();
        _ = plan(&known, places, numbers[0]);
        let again = plan(&known, moved, numbers[1]);
        let anew = plan(&parse(text).unwrap(), moved, numbers[1]);
        prop_assert_eq!(again, anew);

        // A reduction over the first axis, which has two names: the second is planned anew where no case before had it.
        let total = |axis: i64, places: [u64; 3]| {
            let rest = shape.get(1..).unwrap_or_default();
            let output = array(DType::F32, rest, places[2] * 4);
            let plan = reduce("sum", &made(&x, 1, places[0]), Some(&[axis]), &output, request);
            plan.map_err(|error| error.to_string())
        };
        let last = -(shape.len().cast_signed() as i64);
        if last != 0 {
            _ = total(0, places);
            prop_assert_eq!(total(0, moved), total(last, moved));
        }
    }

    /// So with results that are found in parts.
    #[test]
    fn a_reduction_of_many_that_was_planned_before_is_as_if_anew(
        rows in 1u64..3,
        dtype: prop::sample::Index,
        places in prop::array::uniform2(1u64..40),
        moved in prop::array::uniform2(1u64..40),
    ) {
        let dtype = *dtype.get(&DType::ALL);
        let plan = |axes: Option<&[i64]>, places: [u64; 2]| {
            let x = array(dtype, &[rows << 22, 4], (1 << 40) + places[0] * dtype.size());
            let output = array(DType::F64, &[], (2 << 40) + places[1] * 8);
            reduce("sumsq", &x, axes, &output, WriteMode::Write).map_err(|error| error.to_string())
        };
        let first = plan(None, places).unwrap();
        prop_assert_eq!(first.launches.len(), 2);
        prop_assert_eq!(plan(None, moved), plan(Some(&[0, -1]), moved));
    }
}
