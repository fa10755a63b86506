//! The device text's functions, compiled as C++ for this machine and compared with references in double and in 128-bit integers.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, with the place"
)]

#[path = "../gpu/reference/mod.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod reference;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reference::{Datum, Random, expected, is_right, read, write};
use warpcc_kernels::HEADER;
use warpcc_kernels::dtype::{DType, Family};
use warpcc_kernels::functions::{ALL, DeviceFunction};

/// The declarations that a host's library lacks, for text that is written for a GPU.
const HOST: &str = concat!(include_str!("host.h"), include_str!("host_one_thread.h"));

/// How many tuples of values each function is called with.
const EACH: usize = 600;

struct Case {
    function: &'static DeviceFunction,
    types: Vec<DType>,
    output: DType,
    add: bool,
}

/// Each function with each type that is computed in a way of its own, and with mixed ones.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let kinds = [
        DType::F32,
        DType::F64,
        DType::I32,
        DType::I8,
        DType::U64,
        DType::Bool,
        DType::F16,
    ];
    let outputs = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::I32,
        DType::BF16,
        DType::U8,
        DType::F8E4M3,
    ];
    for (number, function) in ALL.iter().enumerate() {
        if matches!(function.name, "erfinv") {
            continue;
        }
        for (place, kind) in kinds.into_iter().enumerate() {
            let types = vec![kind; function.arity];
            if function.value_of(&types).is_none() {
                continue;
            }
            let gives = function.value_of(&types).unwrap();
            // In its own type, where errors show; and in another one in turn.
            let turn = outputs[(number + place) % outputs.len()];
            cases.push(Case {
                function,
                types: types.clone(),
                output: gives,
                add: false,
            });
            if place % 3 == number % 3 {
                cases.push(Case {
                    function,
                    types,
                    output: turn,
                    add: place % 2 == 0,
                });
            }
        }
        cases.extend(mixed(function));
    }
    cases.extend(conversions());
    cases
}

/// A function with arguments of different types.
fn mixed(function: &'static DeviceFunction) -> Vec<Case> {
    let whole = [DType::I16, DType::U16, DType::I64, DType::U8];
    let any = [DType::BF16, DType::I32, DType::F16, DType::Bool];
    let combinations = [whole, any].into_iter().filter(|_| function.arity > 1);
    let cases = combinations.filter_map(|types| {
        let types = types[..function.arity].to_vec();
        let output = match function.value_of(&types) {
            // Those of integers alone.
            None if types[0] == DType::BF16 => return None,
            output => output.unwrap(),
        };
        Some(Case {
            function,
            types,
            output,
            add: false,
        })
    });
    cases.collect()
}

fn conversions() -> Vec<Case> {
    let mut cases = Vec::new();
    for from in DType::ALL {
        for to in DType::ALL {
            for add in [false, true] {
                cases.push(Case {
                    function: &ALL[0],
                    types: vec![from],
                    output: to,
                    add,
                });
            }
        }
    }
    cases
}

/// A case as a function of the host's: it reads tuples of arguments and writes results.
fn host_function(number: usize, case: &Case) -> String {
    let mut text = format!(
        "static void case{number}(const unsigned char* at, unsigned char* to, int n) {{ for (int i = 0; i < n; ++i) {{\n"
    );
    let mut names = Vec::new();
    for (place, dtype) in case.types.iter().enumerate() {
        let _ = writeln!(text, "  auto v{place} = take<{}>(at);", dtype.device());
        names.push(format!("v{place}"));
    }
    let output = case.output.device();
    let (request, before) = if case.add {
        ("request_add", format!("widen(take<{output}>(at))"))
    } else {
        ("request_write", format!("compute_t<{output}>()"))
    };
    let gives = match case.function.value_of(&case.types).unwrap() {
        DType::Bool => "bool",
        other => other.device(),
    };
    let (name, names) = (case.function.name, names.join(", "));
    let _ = writeln!(
        text,
        "  auto r = op::{name}({names}); static_assert(same<decltype(r), {gives}>::value, \"{name} gives {gives}\");
  {output} o = stored<{request}, {output}>(r, {before}); memcpy(to, &o, sizeof o); to += sizeof o; }} }}"
    );
    text
}

/// The device text and all cases as a program for the host.
fn host_program(cases: &[Case], folder: &Path) -> PathBuf {
    let mut text = format!("{HOST}{HEADER}\nusing namespace warpcc;\n");
    text += "template <class T> static T take(const unsigned char*& at) { T t; memcpy(&t, at, sizeof t); at += sizeof t; return t; }\n";
    for (number, case) in cases.iter().enumerate() {
        text += &host_function(number, case);
    }
    text += "int main() {\n  static unsigned char in[1 << 20], out[1 << 20]; unsigned head[3];\n  while (fread(head, 4, 3, stdin) == 3) { if (fread(in, 1, head[1], stdin) != head[1]) return 1; switch (head[0]) {\n";
    for number in 0..cases.len() {
        let _ = writeln!(text, "case {number}: case{number}(in, out, {EACH}); break;");
    }
    text += "} fwrite(out, 1, head[2], stdout); }\n}\n";
    let (source, program) = (folder.join("host.cpp"), folder.join("host"));
    std::fs::write(&source, text).unwrap();
    // No contraction: a product is rounded as it is written.
    let built = Command::new("g++")
        .args([
            "-std=c++17",
            "-O0",
            "-ffp-contract=off",
            "-fno-strict-aliasing",
            "-w",
            "-o",
        ])
        .arg(&program)
        .arg(&source)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    program
}

/// A case's tuples of values, and what the output held before where it is added to; and their bytes.
fn arguments(case: &Case, random: &mut Random) -> (Vec<Vec<Datum>>, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut given = Vec::new();
    for _ in 0..EACH {
        let mut one = Vec::new();
        let mut values = random.elements(case.function.name, &case.types);
        let mut types = case.types.clone();
        if case.add {
            values.push(random.element(case.output));
            types.push(case.output);
        }
        for (dtype, value) in types.iter().zip(values) {
            let start = bytes.len();
            write(*dtype, value, &mut bytes);
            // The value as written is the one that is meant, NaN aside.
            one.push(read(*dtype, &bytes[start..]));
        }
        given.push(one);
    }
    (given, bytes)
}

/// The program's output for this input.
fn answers(program: &Path, questions: Vec<u8>) -> Vec<u8> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let asking = std::thread::spawn(move || stdin.write_all(&questions));
    let output = child.wait_with_output().unwrap();
    asking.join().unwrap().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn device_functions_give_what_their_references_give() {
    let cases = cases();
    let folder = tempfile::tempdir().unwrap();
    let program = host_program(&cases, folder.path());
    // The same values in each run; rtc-verify takes others each time.
    let seed = 20_261_121;
    let mut random = Random(seed);
    let mut questions = Vec::new();
    let mut inputs = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let (given, bytes) = arguments(case, &mut random);
        let size = case.output.size() as u32 * EACH as u32;
        for head in [number as u32, bytes.len() as u32, size] {
            questions.extend_from_slice(&head.to_ne_bytes());
        }
        questions.extend_from_slice(&bytes);
        inputs.push(given);
    }
    let answers = answers(&program, questions);
    let mut at = 0;
    let mut wrong = Vec::new();
    for (case, given) in cases.iter().zip(&inputs) {
        let mut bad = 0;
        for values in given {
            let size = case.output.size() as usize;
            let result = read(case.output, &answers[at..at + size]);
            at += size;
            let (arguments, before) = values.split_at(case.types.len());
            let expected = expected(case.function, &case.types, arguments);
            if !is_right(result, &expected, case.output, before.first().copied()) {
                if bad < 3 {
                    wrong.push(format!(
                        "{} of {:?} {arguments:?} as {} on {before:?}: {result:?}, expected {expected:?}",
                        case.function.name, case.types, case.output
                    ));
                }
                bad += 1;
            }
        }
    }
    assert_eq!(at, answers.len());
    assert!(
        wrong.is_empty(),
        "seed {seed}: {} wrong\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
}

#[test]
fn small_floats_are_written_as_they_are_read() {
    for dtype in DType::ALL {
        if dtype.family() != Family::Float || dtype.size() > 2 {
            continue;
        }
        for bits in 0..1u32 << (8 * dtype.size()) {
            let bytes = &bits.to_ne_bytes()[..dtype.size() as usize];
            let value = read(dtype, bytes);
            let mut again = Vec::new();
            write(dtype, value, &mut again);
            let nan = matches!(value, Datum::F(value) if value.is_nan());
            // E5M2 saturates: an infinity cannot be made by converting.
            let infinite = matches!(value, Datum::F(value) if value.is_infinite());
            assert!(
                nan || infinite || again == bytes,
                "{dtype} {bits:#x} {value:?}"
            );
        }
    }
}
