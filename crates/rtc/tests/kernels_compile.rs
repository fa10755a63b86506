//! Every function and every form of kernel compiles with the NVRTC of each toolkit of the tests: no GPU.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, with the place"
)]

#[path = "../gpu/bundle.rs"]
mod bundle;

use std::path::PathBuf;
use std::sync::Arc;

use bundle::Bundle;
use warpcc_rtc::Compiler;
use warpcc_rtc::kernels::dtype::DType;
use warpcc_rtc::kernels::elementwise::{Value, fused};
use warpcc_rtc::kernels::expression::Expr;
use warpcc_rtc::kernels::functions::ALL;
use warpcc_rtc::kernels::plan::{Request, Tensor};

/// The NVRTC of each toolkit that the suite installed.
fn compilers() -> Vec<Compiler> {
    let nvccs = option_env!("WARPCC_TEST_NVCC").map(str::to_owned);
    let nvccs = std::env::var("WARPCC_TEST_NVCC")
        .ok()
        .or(nvccs)
        .unwrap_or_default();
    std::env::split_paths(&nvccs)
        .map(|nvcc| {
            let library: PathBuf = nvcc.parent().unwrap().parent().unwrap().join("lib");
            Compiler::open(&library).unwrap()
        })
        .collect()
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn every_function_compiles() {
    let mut bundle = Bundle::default();
    let kinds = [
        DType::F16,
        DType::F32,
        DType::F64,
        DType::I8,
        DType::I32,
        DType::U64,
        DType::Bool,
    ];
    for (number, function) in ALL.iter().enumerate() {
        let expr = Expr::call(
            function.name,
            NAMES[..function.arity]
                .iter()
                .map(|n| Expr::name(n))
                .collect(),
        )
        .unwrap();
        for (place, kind) in kinds.into_iter().enumerate() {
            // Each in two types: all functions, all types, not all of both.
            if (number + place) % 4 != 0 {
                continue;
            }
            let types: Vec<DType> = (0..function.arity)
                .map(|i| {
                    if i == 1 {
                        DType::ALL[(number + place) % 15]
                    } else {
                        kind
                    }
                })
                .collect();
            if function.value_of(&types).is_none() {
                continue;
            }
            let tensors: Vec<Tensor> = types
                .iter()
                .map(|t| Tensor::new(*t, &[1000], 4096 + 8 * (number as u64 % 3)))
                .collect();
            let values: Vec<(&str, Value)> = NAMES
                .into_iter()
                .zip(tensors.iter().map(Value::from))
                .collect();
            let output = Tensor::new(DType::ALL[(number * 7 + place) % 15], &[1000], 65536);
            let request = if place % 2 == 0 {
                Request::Write
            } else {
                Request::Add
            };
            bundle.add(&fused(&expr, &values, &output, request).unwrap().launches[0]);
        }
    }
    let bundle = Arc::new(bundle);
    for compiler in compilers() {
        let start = std::time::Instant::now();
        let mut compiled = 0;
        for (numbers, made) in bundle.compile(&compiler, "sm_90".parse().unwrap(), 40, 2) {
            if let Err(error) = made {
                panic!(
                    "{}: {}\n{error}",
                    compiler.version(),
                    bundle.text(numbers[0])
                );
            }
            compiled += numbers.len();
        }
        assert_eq!(compiled, bundle.len());
        println!("{} {compiled} {:?}", compiler.version(), start.elapsed());
    }
}
