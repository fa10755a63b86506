//! The shapes that are checked: sizes and offsets around every edge, broadcasting and strides, whole expressions.

use warpcc_kernels::dtype::DType;
use warpcc_kernels::expression::Number;
use warpcc_kernels::plan::WriteMode;

use super::Case;
use super::shaped::{Input, ShapedCase, shaped};
use crate::reference::Random;

/// Sizes around every edge, and every offset of inputs against the output.
pub fn offsets_and_sizes(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let types = [
        (DType::F16, DType::F32, DType::F16),
        (DType::F32, DType::F32, DType::F32),
        (DType::F16, DType::F16, DType::F16),
        (DType::I8, DType::F32, DType::F64),
        (DType::F8E5M2, DType::BF16, DType::F32),
        (DType::F64, DType::F64, DType::F64),
    ];
    for (a, b, out) in types {
        for n in [0u64, 1, 2, 3, 7, 8, 9, 31, 255, 1023, 4096, 4097, 40_001] {
            for (i, j, k) in [
                (0, 0, 0),
                (1, 1, 1),
                (0, 0, 1),
                (4, 0, 0),
                (2, 2, 6),
                (3, 5, 7),
            ] {
                let shape = [n];
                let spec = ShapedCase {
                    group: "offsets",
                    text: "x0 * 2 + x1",
                    formula: |v| v[0] * 2.0 + v[1],
                    inputs: vec![(a, &shape, None, i), (b, &shape, None, j)],
                    numbers: &[],
                    output: (out, &shape, None, k),
                    request: if n % 2 == 0 {
                        WriteMode::Write
                    } else {
                        WriteMode::Add
                    },
                };
                cases.push(shaped(&spec, random));
            }
        }
    }
}

/// A shape, and steps if its own.
type ShapeAndStrides = (&'static [u64], Option<&'static [i64]>);

/// Two inputs' and the output's.
const FORMS: [(ShapeAndStrides, ShapeAndStrides, ShapeAndStrides); 21] = [
    ((&[33, 64], None), (&[64], None), (&[33, 64], None)),
    ((&[33, 65], None), (&[65], None), (&[33, 65], None)),
    ((&[33, 64], None), (&[33, 1], None), (&[33, 64], None)),
    ((&[33, 1], None), (&[1, 64], None), (&[33, 64], None)),
    ((&[], None), (&[7, 9], None), (&[7, 9], None)),
    ((&[], None), (&[], None), (&[1, 1], None)),
    (
        (&[5, 1, 7, 1], None),
        (&[3, 1, 8], None),
        (&[5, 3, 7, 8], None),
    ),
    (
        (&[40, 50], Some(&[1, 40])),
        (&[40, 50], None),
        (&[40, 50], None),
    ),
    (
        (&[40, 50], Some(&[1, 40])),
        (&[40, 50], Some(&[1, 40])),
        (&[40, 50], Some(&[1, 40])),
    ),
    (
        (&[40, 50], Some(&[100, 2])),
        (&[40, 50], Some(&[-50, -1])),
        (&[40, 50], None),
    ),
    (
        (&[40, 50], None),
        (&[50], Some(&[3])),
        (&[40, 50], Some(&[64, 1])),
    ),
    (
        (&[40, 50], None),
        (&[50], None),
        (&[40, 50], Some(&[150, 3])),
    ),
    (
        (&[2, 3, 4, 5, 6, 7], Some(&[1, 2, 6, 24, 120, 720])),
        (&[5, 1, 7], None),
        (&[2, 3, 4, 5, 6, 7], None),
    ),
    ((&[1000], Some(&[2])), (&[1000], None), (&[1000], None)),
    // A slice of rows, of an odd length.
    (
        (&[40, 51], Some(&[64, 1])),
        (&[51], None),
        (&[40, 51], None),
    ),
    ((&[0, 5], None), (&[5], None), (&[0, 5], None)),
    (
        (&[12, 1, 16], None),
        (&[12, 34, 16], None),
        (&[12, 34, 16], Some(&[-544, 16, 1])),
    ),
    // Transposed: neighbours in another dimension than the output's.
    (
        (&[64, 96], Some(&[1, 64])),
        (&[96], None),
        (&[64, 96], None),
    ),
    (
        (&[3, 32, 48], Some(&[1536, 1, 32])),
        (&[32, 1], None),
        (&[3, 32, 48], Some(&[1536, 48, 1])),
    ),
    (
        (&[8, 16, 32], Some(&[1, 8, 128])),
        (&[8, 16, 32], Some(&[512, 1, 16])),
        (&[8, 16, 32], None),
    ),
    (
        (&[16, 48], Some(&[-1, 32])),
        (&[16, 48], Some(&[1, 32])),
        (&[16, 48], Some(&[64, 1])),
    ),
];

pub fn broadcasting(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let types = [
        (DType::F32, DType::F32, DType::F32),
        (DType::F16, DType::F32, DType::BF16),
        (DType::F64, DType::I32, DType::F64),
        (DType::I8, DType::I8, DType::I32),
        (DType::F16, DType::F16, DType::F16),
        (DType::I8, DType::I8, DType::I8),
    ];
    // So large that a block's warps have squares both ways.
    let large: (ShapeAndStrides, ShapeAndStrides, ShapeAndStrides) = (
        (&[256, 512], Some(&[1, 256])),
        (&[512], None),
        (&[256, 512], None),
    );
    let each = FORMS.iter().map(|form| (*form, &types[..]));
    for ((x, y, out), types) in each.chain([(large, &types[4..])]) {
        for &(a, b, c) in types {
            for off in [0, 1, 8] {
                let spec = ShapedCase {
                    group: "broadcasting",
                    text: "x0 * 3 - x1",
                    formula: |v| v[0] * 3.0 - v[1],
                    inputs: vec![(a, x.0, x.1, off), (b, y.0, y.1, 0)],
                    numbers: &[],
                    output: (c, out.0, out.1, off / 2),
                    request: if off == 1 {
                        WriteMode::Add
                    } else {
                        WriteMode::Write
                    },
                };
                cases.push(shaped(&spec, random));
            }
        }
    }
}

/// Inputs of several types, some broadcast, at several offsets.
fn twenty<'a>(shape: &'a [u64]) -> Vec<Input<'a>> {
    let types = [
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::I16,
        DType::I32,
    ];
    (0..20)
        .map(|i| {
            let own = if i % 3 == 0 { &shape[1..] } else { shape };
            (types[i % 6], own, None, i as u64 % 5)
        })
        .collect()
}

pub fn fused(random: &mut Random, cases: &mut Vec<Result<Case, String>>) {
    let many: String = (0..20)
        .map(|i| format!("x{i} * {}", i + 1))
        .collect::<Vec<_>>()
        .join(" + ");
    let shape: &[u64] = &[17, 129];
    let twenty = twenty(shape);
    let f = |dtype| (dtype, shape, None, 0);
    let h = DType::F16;
    let fused = |text, formula, inputs, output| ShapedCase {
        group: "fused",
        text,
        formula,
        inputs,
        numbers: &[],
        output,
        request: WriteMode::Write,
    };
    let (f32, f64) = (DType::F32, DType::F64);
    let all: Vec<ShapedCase> = vec![
        fused(
            "relu(x0 * x1 + x2)",
            |v| (v[0] * v[1] + v[2]).max(0.0),
            vec![f(h), f(h), (h, &shape[1..], None, 0)],
            f(h),
        ),
        ShapedCase {
            numbers: &[("alpha", Number::Float(2.5))],
            request: WriteMode::Add,
            ..fused(
                "relu(x0 * alpha + x1) + relu(x0 * alpha + x1)",
                |v| 2.0 * (v[0] * 2.5 + v[1]).max(0.0),
                vec![f(f32), f(f32)],
                f(f32),
            )
        },
        ShapedCase {
            numbers: &[("k", Number::Int(-3))],
            ..fused(
                "where(x0 > 0, x0, x1 * k)",
                |v| if v[0] > 0.0 { v[0] } else { v[1] * -3.0 },
                vec![f(DType::I32), f(DType::I16)],
                f(DType::I64),
            )
        },
        fused(
            "(x0 > x1) + (x0 == x1) * 2",
            |v| f64::from(v[0] > v[1]) + 2.0 * f64::from(v[0] == v[1]),
            vec![f(DType::BF16), f(DType::F8E4M3)],
            f(DType::U8),
        ),
        fused(
            "x0 // 3 * 100 + x0 % 3",
            |v| (v[0] / 3.0).floor() * 100.0 + v[0].rem_euclid(3.0),
            vec![f(DType::I64)],
            f(f64),
        ),
        fused(
            "clip(x0, -1, 1) ** 2 - lerp(x1, x0, 0.5)",
            |v| v[0].clamp(-1.0, 1.0).powi(2) - (v[1] + v[0]) / 2.0,
            vec![f(f32), f(f64)],
            f(f64),
        ),
        fused("2.5", |_| 2.5, vec![], f(DType::BF16)),
        fused(
            &many,
            |v| v.iter().enumerate().map(|(i, x)| x * (i + 1) as f64).sum(),
            twenty,
            f(f32),
        ),
    ];
    for spec in &all {
        cases.push(shaped(spec, random));
    }
}
