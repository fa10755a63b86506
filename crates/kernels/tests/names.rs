//! NumPy's, the array API's and PyTorch's names: what each stands for, compiled as C++ for this machine, has the values that those
//! packages document; NVRTC compiles each for every GPU from sm_75 to sm_120; and the tables name each function's counterparts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::fused;
use warpcc_kernels::expression::Expr;
use warpcc_kernels::names::{self, Name};
use warpcc_kernels::parse::{function as call, parse};
use warpcc_kernels::plan::{Tensor, WriteMode};
use warpcc_kernels::{HEADER, functions, reductions, requests};
use warpcc_rtc::{CallLimits, Compiler, ManyOptions};

/// What the device text needs on a host.
const HOST: &str = concat!(include_str!("host.h"), include_str!("host_one_thread.h"));

const VALUES: [f64; 17] = [
    f64::NAN,
    f64::NEG_INFINITY,
    -1e3,
    -3.5,
    -2.5,
    -1.0,
    -0.5,
    -0.01,
    0.0,
    0.25,
    0.5,
    1.0,
    1.5,
    2.5,
    6.25,
    700.0,
    f64::INFINITY,
];

fn clamped(x: f64, low: f64, high: f64) -> f64 {
    if x.is_nan() { x } else { x.max(low).min(high) }
}

fn larger(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else {
        x.max(y)
    }
}

/// The documented value of a name that is more than another name, of x and further numbers.
fn documented(name: &str, x: f64, y: f64) -> Option<f64> {
    let nan_or = |value: f64| if x.is_nan() { x } else { value };
    Some(match name {
        "fabs" => x.abs(),
        // NumPy, and the array API: halves to even.
        "round" | "around" => x.round_ties_even(),
        "frac" => x - x.trunc(),
        "sinc" if x == 0.0 => 1.0,
        "sinc" => (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x),
        "signbit" if x.is_nan() => return None,
        "signbit" => f64::from(u8::from(x.is_sign_negative())),
        "heaviside" => nan_or(match x {
            x if x < 0.0 => 0.0,
            x if x > 0.0 => 1.0,
            _ => y,
        }),
        "maximum" => larger(x, y),
        "minimum" => -larger(-x, -y),
        "logaddexp2" if x == y => x + 1.0,
        "logaddexp2" => larger(x, y) + (1.0 + (-(x - y).abs()).exp2()).log2(),
        "xlogy" if y.is_nan() => y,
        "xlogy" if x == 0.0 => 0.0,
        "xlogy" => x * y.ln(),
        "logit" => (x / (1.0 - x)).ln(),
        "softplus" => larger(x, 0.0) + (-x.abs()).exp().ln_1p(),
        "tanhshrink" => x - x.tanh(),
        "relu6" => clamped(x, 0.0, 6.0),
        "hardsigmoid" => clamped(x / 6.0 + 0.5, 0.0, 1.0),
        "hardswish" => x * clamped(x / 6.0 + 0.5, 0.0, 1.0),
        "hardtanh" => clamped(x, -1.0, 1.0),
        "leaky_relu" => nan_or(if x > 0.0 { x } else { 0.01 * x }),
        "elu" | "celu" => nan_or(if x > 0.0 { x } else { x.exp_m1() }),
        "hardshrink" => nan_or(if x.abs() <= 0.5 { 0.0 } else { x }),
        "softshrink" => nan_or(match x {
            x if x > 0.5 => x - 0.5,
            x if x < -0.5 => x + 0.5,
            _ => 0.0,
        }),
        _ => return None,
    })
}

/// An expression's text in the language of C++, where each function is in `warpcc::op`.
fn in_cpp(expr: &Expr) -> String {
    let text = expr.to_string();
    let mut made = String::new();
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if c == '(' {
            made.push_str("warpcc::op::");
        }
        made.push_str(&std::mem::take(&mut word));
        made.push(c);
    }
    made + &word
}

fn called(entry: &Name) -> Expr {
    let names = entry.arguments[..entry.fewest()].iter();
    let arguments = names.map(|(name, _)| Expr::name(name)).collect();
    call(entry.name, arguments).expect(entry.name)
}

#[test]
fn every_name_stands_for_an_expression_of_its_arguments() {
    for entry in names::ALL {
        let words = entry.arguments.iter().map(|(name, _)| *name);
        let all: Vec<Expr> = words.clone().map(Expr::name).collect();
        let whole = parse(entry.stands_for).expect(entry.name);
        let made = call(entry.name, all.clone()).expect(entry.name);
        assert_eq!(made.to_string(), whole.to_string(), "{}", entry.name);
        let mut used = whole.names();
        used.sort_unstable();
        let mut expected: Vec<_> = words.collect();
        expected.sort_unstable();
        assert_eq!(used, expected, "{}", entry.name);
        call(entry.name, all[..entry.fewest()].to_vec()).expect(entry.name);
        assert!(
            call(entry.name, vec![1.into(); 4]).is_err(),
            "{}",
            entry.name
        );
        let function = functions::find(entry.name);
        assert!(
            function.is_none_or(|function| function.arity == entry.arguments.len()
                && entry.fewest() < function.arity),
            "{} is a function too",
            entry.name
        );
    }
}

#[test]
fn numbers_that_are_not_given_are_the_usual_ones() {
    let text = |text: &str| parse(text).expect(text).to_string();
    assert_eq!(text("elu(x)"), "elu(x, 1.0)");
    assert_eq!(text("elu(x, 2)"), "elu(x, 2)");
    assert_eq!(text("leaky_relu(a + b)"), "xelu(add(a, b), 0.01)");
    assert_eq!(text("round(x)"), "rint(x)");
    assert_eq!(text("hardtanh(x, 0)"), "clip(x, 0, 1)");
    let error = parse("maximum(x)").expect_err("refused").to_string();
    assert!(error.contains("maximum takes 2 argument(s)"), "{error}");
    let error = parse("atann(x)").expect_err("refused").to_string();
    assert!(error.contains("atan"), "{error}");
    assert_eq!(names::reduction("amax"), "max");
}

#[test]
fn names_have_the_values_that_their_packages_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let tested: Vec<&Name> = names::ALL
        .iter()
        .filter(|entry| documented(entry.name, 1.0, 1.0).is_some())
        .collect();
    let mut text =
        format!("{HOST}\n{HEADER}\nint main() {{\n  const double values[] = {{NAN, -INFINITY");
    for value in &VALUES[2..16] {
        let _ = write!(text, ", {value:?}");
    }
    text += ", INFINITY};\n  for (double x : values) for (double y : values) {\n";
    for entry in &tested {
        let value = in_cpp(&called(entry));
        let _ = writeln!(
            text,
            "    std::printf(\"{} %.17g\\n\", (double)({value}));",
            entry.name
        );
    }
    text += "  }\n}\n";
    let source = folder.path().join("names.cpp");
    std::fs::write(&source, text).expect("written");
    let program = folder.path().join("names");
    let mut compile = Command::new("g++");
    compile.args(["-std=c++20", "-w", "-ffp-contract=off", "-o"]);
    let done = compile.arg(&program).arg(&source).output().expect("g++");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let output = Command::new(&program).output().expect("it runs").stdout;
    let output = String::from_utf8(output).expect("text");
    let mut lines = output.lines();
    for (x, y) in VALUES.into_iter().flat_map(|x| VALUES.map(|y| (x, y))) {
        for entry in &tested {
            let line = lines.next().expect("a line");
            let (name, value) = line.split_once(' ').expect("a value");
            assert_eq!(name, entry.name);
            let value: f64 = value.parse().expect("a number");
            let Some(expected) = documented(name, x, y) else {
                continue;
            };
            let same = value == expected
                || value.is_nan() && expected.is_nan()
                || (value - expected).abs() <= 1e-14 * expected.abs().max(1e-2);
            assert!(same, "{name}({x}, {y}) is {value}, not {expected}");
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn nvrtc_compiles_what_names_stand_for_on_every_gpu() {
    let nvrtc = warpcc_testkit::Nvrtc::newest();
    let compiler = Compiler::open(&nvrtc.folder).expect("NVRTC");
    let cache = warpcc_rtc::KernelCache::with(compiler, warpcc_rtc::CacheSettings::default(), None);
    let place = |index: u64| Tensor::new(DType::F16, &[1024], (1 << 40) + index * 4096);
    let arrays = [0, 1, 2].map(place);
    // Those that are a function under another name are compiled by tests/compile.rs. One kernel for all the others.
    let composed = names::ALL
        .iter()
        .filter(|entry| entry.stands_for.matches('(').count() > 1);
    let terms = composed.map(|entry| {
        let names = ["x", "y", "z"].map(Expr::name);
        call(entry.name, names[..entry.fewest()].to_vec()).expect(entry.name)
    });
    let expr = terms.reduce(|left, right| left + right).expect("a sum");
    let used = expr.names();
    let given = ["x", "y", "z"].into_iter().zip(&arrays);
    let values: Vec<_> = given
        .filter(|(name, _)| used.contains(name))
        .map(|(name, array)| (name, array.into()))
        .collect();
    let plan = fused(&expr, &values, &place(3), WriteMode::Write).expect("a plan");
    let gpus = [
        "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120",
    ];
    let targets = gpus.map(|gpu| gpu.parse().expect("a target"));
    let all: Vec<_> = targets
        .into_iter()
        .flat_map(|target| requests(&plan, target))
        .collect();
    let images = cache.get_many(
        &all,
        &ManyOptions::default(),
        &CallLimits::default(),
        |_| true,
    );
    for image in images {
        image.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Our names, each with NumPy's, PyTorch's and CuPy's; `-` for none.
const PEERS: &str = include_str!("peers.txt");

#[test]
fn the_documentation_names_every_functions_counterparts() {
    let listed: BTreeMap<&str, Vec<&str>> = PEERS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words.len(), 4, "{line}");
            (words[0], words[1..].to_vec())
        })
        .collect();
    let is_gradient = |name: &&str| name.contains("grad") || name.starts_with("backward_");
    let functions = functions::ALL
        .iter()
        .map(|each| each.name)
        .filter(|name| !is_gradient(name));
    let named = names::ALL.iter().map(|each| each.name);
    let reduced = reductions::ALL.iter().map(|each| each.name);
    let reduced_too = names::REDUCTIONS.iter().map(|(name, _)| *name);
    let mut all: Vec<&str> = functions
        .chain(named)
        .chain(reduced)
        .chain(reduced_too)
        .collect();
    let mut table = String::from("| name | stands for |\n|---|---|\n");
    for each in names::ALL {
        let arguments = each.arguments.iter().map(|(name, number)| match number {
            Some(number) => format!("{name}={number}"),
            None => (*name).to_owned(),
        });
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            table,
            "| `{}({arguments})` | `{}` |",
            each.name, each.stands_for
        );
    }
    let mut others = String::from("| here | NumPy | PyTorch | CuPy |\n|---|---|---|---|\n");
    let mut seen = Vec::new();
    for name in &all {
        let peers = listed
            .get(name)
            .unwrap_or_else(|| panic!("peers.txt lacks {name}"));
        if !seen.contains(name) && peers.iter().any(|peer| *peer != "-") {
            let shown = peers.iter().map(|peer| match *peer {
                "-" => String::new(),
                peer => format!("`{peer}`"),
            });
            let _ = writeln!(
                others,
                "| `{name}` | {} |",
                shown.collect::<Vec<_>>().join(" | ")
            );
        }
        seen.push(name);
    }
    all.sort_unstable();
    let unknown: Vec<_> = listed
        .keys()
        .filter(|name| all.binary_search(name).is_err())
        .collect();
    assert!(
        unknown.is_empty(),
        "peers.txt has {unknown:?}, which are not here"
    );
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md");
    let docs = std::fs::read_to_string(docs).expect("docs");
    if !docs.contains(&table) || !docs.contains(&others) {
        let wanted = Path::new(env!("CARGO_TARGET_TMPDIR")).join("names-tables.md");
        std::fs::write(&wanted, format!("{table}\n{others}")).expect("written");
        panic!(
            "docs/kernels.md has other tables of names: {} has these",
            wanted.display()
        );
    }
}
