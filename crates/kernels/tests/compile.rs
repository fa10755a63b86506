//! Every function, in types of every kind, and every form of kernel compiles with each NVRTC of the tests: no GPU.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, with the place"
)]

#[path = "../gpu/bundle.rs"]
#[expect(dead_code, reason = "another program uses the rest")]
mod bundle;

use std::fmt::Write as _;

use bundle::Bundle;
use warpcc_kernels::HEADER;
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{Value, fused};
use warpcc_kernels::functions::ALL;
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Tensor, WriteMode};
use warpcc_kernels::reduce::reduce;
use warpcc_kernels::reductions;
use warpcc_rtc::{CallLimits, Compiler};
use warpcc_testkit::Nvrtc;

/// One thread, one element: each function with one type, of another kind with each NVRTC.
fn functions(turn: usize) -> String {
    let kinds = [
        DType::F16,
        DType::F32,
        DType::F64,
        DType::I8,
        DType::I32,
        DType::U64,
        DType::Bool,
        DType::BF16,
        DType::F8E4M3,
    ];
    let mut text = HEADER.to_owned();
    for (number, function) in ALL.iter().enumerate() {
        for (place, kind) in kinds.into_iter().enumerate() {
            if (number + turn) % kinds.len() != place {
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
            let Some(gives) = function.value_of(&types) else {
                continue;
            };
            let output = DType::ALL[(number * 7 + place) % 15].device();
            let gives = if gives == DType::Bool {
                "bool"
            } else {
                gives.device()
            };
            let mut parameters = format!("{output}* out");
            let mut arguments = Vec::new();
            for (at, dtype) in types.iter().enumerate() {
                let _ = write!(parameters, ", const {}* x{at}", dtype.device());
                arguments.push(format!("x{at}[i]"));
            }
            let _ = writeln!(
                text,
                "__global__ void f{number}_{place}({parameters}) {{ const int i = threadIdx.x; const auto r = warpcc::op::{}({}); static_assert(warpcc::same<decltype(r), const {gives}>::value, \"{}: its type\"); out[i] = warpcc::stored<warpcc::request_add, {output}>(r, warpcc::widen(out[i])); }}",
                function.name,
                arguments.join(", "),
                function.name,
            );
        }
    }
    // The host and the device text agree on the mixed type of two types.
    for a in DType::ALL {
        for b in DType::ALL {
            let _ = writeln!(
                text,
                "static_assert(warpcc::same<warpcc::mixed_type<{}, {}>, {}>::value, \"{a} and {b}\");",
                a.device(),
                b.device(),
                a.mixed(b).device(),
            );
        }
    }
    text
}

/// A few kernels of each form.
fn forms(turn: usize) -> Bundle {
    let mut bundle = Bundle::default();
    let wide: &[u64] = &[1 << 20, 1 << 12];
    let shapes: [(&[u64], Option<&[i64]>); 3] = [
        (&[64, 100], None),
        (wide, None),
        (&[64, 100], Some(&[1, 64])),
    ];
    for (number, (shape, steps)) in shapes.into_iter().enumerate() {
        for (a, out, request) in [
            (DType::F16, DType::F32, WriteMode::Write),
            (DType::F64, DType::Bool, WriteMode::Add),
            (DType::F8E5M2, DType::F16, WriteMode::Add),
        ] {
            let mut x = Tensor::new(a, shape, (1 << 20) + 8 * number as u64);
            x.strides = steps.map(<[i64]>::to_vec);
            let b = Tensor::new(DType::F32, &shape[1..], 1 << 19);
            let y = Tensor::new(out, shape, 1 << 40);
            let values: [(&str, Value); 3] =
                [("x", (&x).into()), ("b", (&b).into()), ("k", 2.5.into())];
            let plan = fused(&parse("relu(x * k + b)").unwrap(), &values, &y, request).unwrap();
            plan.launches.iter().for_each(|launch| {
                bundle.add(launch);
            });
        }
    }
    for (number, of) in reductions::ALL.iter().enumerate() {
        let input = DType::ALL[(number * 4 + 13) % 15];
        let axis = (number + turn) as i64 % 2;
        {
            let x = Tensor::new(input, &[5000, 4096], 4096);
            let kept = if axis == 0 { 4096 } else { 5000 };
            let y = Tensor::new(DType::ALL[(number + 9) % 15], &[kept], 1 << 40);
            let plan = reduce(of.name, &x, Some(&[axis]), &y, WriteMode::Add).unwrap();
            plan.launches.iter().for_each(|launch| {
                bundle.add(launch);
            });
        }
    }
    bundle
}

fn compile(compiler: &Compiler, what: &str, text: &str) {
    let request = warpcc_rtc::CompileRequest::new(what, text, "sm_90".parse().unwrap());
    let made = compiler.compile(&request, &CallLimits::default());
    let made = made.unwrap_or_else(|error| panic!("NVRTC {}: {error}", compiler.version()));
    assert!(made.image.starts_with(b"\x7fELF"));
}

#[test]
fn functions_and_forms_compile_everywhere() {
    for (turn, nvrtc) in Nvrtc::all().into_iter().enumerate() {
        let functions = functions(4 * turn);
        let forms = forms(turn);
        let numbers: Vec<usize> = (0..forms.len()).collect();
        let compiler = Compiler::open(&nvrtc.folder).expect("an NVRTC");
        std::thread::scope(|scope| {
            scope.spawn(|| compile(&compiler, "functions", &functions));
            compile(&compiler, "forms", &forms.program(&numbers));
        });
    }
}

/// ptxas of CUDA 13.0 negates 16 bits as if -32768 had a positive counterpart: what is compared with the result is
/// compared with 32768. NVVM makes such negations of sums that are compared, too, so none may be in any PTX.
#[test]
fn short_integers_are_not_negated_in_sixteen_bits() {
    let mut text = HEADER.to_owned();
    for dtype in [DType::I8, DType::U8, DType::I16, DType::U16] {
        for function in ALL {
            let types = vec![dtype; function.arity];
            if function.value_of(&types) != Some(dtype) {
                continue;
            }
            let arguments: Vec<String> = (0..function.arity)
                .map(|at| format!("warpcc::widen(x[3 * i + {at}])"))
                .collect();
            let _ = writeln!(
                text,
                "extern \"C\" __global__ void {name}_{dtype}(warpcc::boolean* out, const {device}* x, const {device}* y) {{
  const int i = threadIdx.x;
  const auto r = warpcc::op::{name}({arguments});
  out[4 * i] = warpcc::convert<warpcc::boolean>(r);
  out[4 * i + 1] = warpcc::stored<warpcc::request_add, warpcc::boolean>(r, warpcc::widen(out[4 * i + 1]));
  out[4 * i + 2] = warpcc::boolean{{(warpcc::uint8)(r == warpcc::widen(y[i]))}};
  out[4 * i + 3] = warpcc::boolean{{(warpcc::uint8)(r < warpcc::widen(y[i]))}};
}}",
                name = function.name,
                device = dtype.device(),
                arguments = arguments.join(", "),
            );
        }
    }
    for nvrtc in Nvrtc::all() {
        let compiler = Compiler::open(&nvrtc.folder).expect("an NVRTC");
        let request =
            warpcc_rtc::CompileRequest::new("short", text.as_str(), "compute_90".parse().unwrap());
        let made = compiler.compile(&request, &CallLimits::default()).unwrap();
        let ptx = String::from_utf8_lossy(&made.image);
        let mut kernel = "";
        let mut wrong = Vec::new();
        for line in ptx.lines() {
            if let Some((_, name)) = line.split_once(".entry ") {
                kernel = name;
            }
            if line.contains("neg.s16") || line.contains("abs.s16") {
                wrong.push(kernel);
            }
        }
        wrong.dedup();
        assert!(wrong.is_empty(), "NVRTC {}: {wrong:?}", compiler.version());
        assert!(ptx.matches(".entry ").count() > 100);
    }
}
