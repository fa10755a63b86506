//! Where a kernel reads and writes: places computed from a plan's own argument bytes are those that shapes and strides say.

use proptest::prelude::*;
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::unary;
use warpcc_kernels::plan::{Argument, WriteMode};

use crate::array;

/// The argument structs' dividers, read back: (factor, shift, by) of each dimension.
fn divide(factor: u64, shift: u64, n: u64) -> u64 {
    (((n * factor) >> 32) + n) >> shift
}

proptest! {
    /// Places found from a plan's own argument bytes are those that the shapes and steps say.
    #[test]
    fn places_are_where_the_steps_say(
        sizes in prop::collection::vec(1u64..6, 2..5),
        order in prop::collection::vec(0u64..1000, 4),
        broadcast in prop::collection::vec(any::<bool>(), 4),
    ) {
        // An input whose dimensions lie in any order, some broadcast, into a dense output.
        let mut dims: Vec<usize> = (0..sizes.len()).collect();
        dims.sort_by_key(|d| order[*d]);
        let shape: Vec<u64> = sizes.iter().zip(&broadcast).map(|(s, b)| if *b { 1 } else { *s }).collect();
        let mut steps = vec![0i64; sizes.len()];
        let mut step = 3;
        for d in dims {
            steps[d] = step;
            step *= shape[d] as i64;
        }
        let x = array(DType::F64, &shape, 1 << 20).with_strides(&steps);
        let y = array(DType::F32, &sizes, 1 << 30);
        let plan = unary("relu", &x, &y, WriteMode::Write).unwrap();
        let launch = &plan.launches[0];
        if launch.kernel.name() != "warpcc_strided" {
            return Ok(());
        }
        let (Argument::Bytes(groups), Argument::Bytes(places)) = (&launch.arguments[2], &launch.arguments[3]) else {
            panic!("groups and places");
        };
        let groups = u32::from_ne_bytes(groups[..].try_into().unwrap());
        let words: Vec<u32> = places.chunks(4).map(|w| u32::from_ne_bytes(w.try_into().unwrap())).collect();
        let dimensions = words.len() / 5;
        let total: u64 = sizes.iter().product();
        let group = total / u64::from(groups);
        let mut found = std::collections::BTreeMap::new();
        for number in 0..u64::from(groups) {
            let mut left = number;
            let mut at = [0i64; 2];
            for d in (0..dimensions).rev() {
                let (factor, shift, by) = (words[3 * d], words[3 * d + 1], words[3 * d + 2]);
                let rest = if d > 0 { divide(factor.into(), shift.into(), left) } else { 0 };
                let here = left - rest * u64::from(by);
                left = rest;
                for (a, at) in at.iter_mut().enumerate() {
                    *at += here as i64 * i64::from(words[3 * dimensions + a * dimensions + d] as i32);
                }
            }
            let inner = |a: usize| match &launch.arguments[4 + a] {
                Argument::Bytes(bytes) => i64::from(i32::from_ne_bytes(bytes[..].try_into().unwrap())),
                _ => panic!("a step"),
            };
            for v in 0..group as i64 {
                found.insert(at[0] + v * inner(0), at[1] + v * inner(1));
            }
        }
        prop_assert_eq!(found.len() as u64, total);
        for number in 0..total {
            let (mut left, mut input) = (number, 0);
            for d in (0..sizes.len()).rev() {
                let here = left % sizes[d];
                left /= sizes[d];
                if shape[d] != 1 {
                    input += here as i64 * steps[d];
                }
            }
            prop_assert_eq!(found.get(&(number as i64)), Some(&input), "element {}", number);
        }
    }
}
