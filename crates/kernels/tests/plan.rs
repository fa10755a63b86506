//! Plans: what is refused and with which message, expressions as text, and the same kernel for what differs only in values.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, with the place"
)]

use proptest::prelude::*;
use warpcc_kernels::call::{add, relu, select};
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{Value, binary, fused, tuned, unary};
use warpcc_kernels::expression::{Expr, Number};
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Argument, Plan, PlanError, Tensor, Tuning, WriteMode};
use warpcc_kernels::reduce::reduce;

fn array(dtype: DType, shape: &[u64], address: u64) -> Tensor {
    Tensor::new(dtype, shape, address)
}

fn outcome(result: Result<Plan, PlanError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn errors_name_the_argument() {
    let x = array(DType::F32, &[4, 5], 4096);
    let y = array(DType::F32, &[4, 5], 8192);
    let un = |name: &str, x: &Tensor, y: &Tensor| outcome(unary(name, x, y, WriteMode::Write));
    let bin =
        |name: &str, a: &Tensor, b: Value| outcome(binary(name, a.into(), b, &y, WriteMode::Write));
    let cases = [
        (
            un("rellu", &x, &y),
            "no function \"rellu\"; did you mean \"relu\"?",
        ),
        (
            un("add", &x, &y),
            "add takes 2 argument(s), but 1 were given",
        ),
        (
            un("relu", &array(DType::F32, &[4, 5], 0), &y),
            "input x is at address 0",
        ),
        (
            un("relu", &x, &array(DType::F32, &[4, 5], 0)),
            "the output is at address 0",
        ),
        (
            un("relu", &array(DType::F32, &[4, 5], 4097), &y),
            "input x is at address 0x1001, which is not a multiple of the size of float32, 4",
        ),
        (
            un("relu", &array(DType::F32, &[4, 6], 4096), &y),
            "input x has shape [4, 6], which does not broadcast to the output's [4, 5]: its dimension 1 is 6, where 1 or 5",
        ),
        (
            un("relu", &array(DType::F32, &[1, 4, 5], 4096), &y),
            "more dimensions",
        ),
        (
            un("relu", &x.clone().with_strides(&[1]), &y),
            "2 dimension(s) and 1 stride(s)",
        ),
        (
            un("relu", &x, &y.clone().with_strides(&[0, 1])),
            "elements of the output share memory",
        ),
        (
            un("relu", &x, &array(DType::F32, &[4, 5], 4100)),
            "shares memory with input x",
        ),
        (
            un("relu", &x, &array(DType::I32, &[4, 5], 4096)),
            "shares memory with input x",
        ),
        (
            un("relu", &array(DType::F32, &[1 << 40, 1 << 40], 4096), &y),
            "more than 2^63 bytes",
        ),
        (
            un("relu", &x.clone().with_strides(&[i64::MAX, 1]), &y),
            "too large",
        ),
        (
            un("bitwise_not", &x, &y),
            "bitwise_not takes integers and bool, not float32",
        ),
        (bin("gcd", &x, 3i64.into()), "gcd takes integers and bool"),
        (
            bin("add", &array(DType::I8, &[5], 4096), 300i64.into()),
            "300 is used with values of type int8, which does not hold it",
        ),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}\nhas not: {part}");
    }
}

#[test]
fn names_and_cuts_are_checked() {
    let x = array(DType::F32, &[4], 4096);
    let expr = parse("a + b").unwrap();
    let given = |values: &[(&str, Value)]| {
        outcome(fused(
            &expr,
            values,
            &array(DType::F32, &[4], 8192),
            WriteMode::Write,
        ))
    };
    assert!(given(&[("a", (&x).into())]).contains("uses \"b\""));
    assert!(
        given(&[("a", (&x).into()), ("b", 1.0.into()), ("c", 1.0.into())])
            .contains("\"c\" was given, but the expression does not use it")
    );
    assert!(given(&[("a", (&x).into()), ("a", 1.0.into())]).contains("has it already"));
    for (threads, unroll, part) in [
        (2048, 1, "2048 threads"),
        (0, 1, "0 threads"),
        (33, 1, "33 threads"),
        (32, 0, "0 accesses"),
    ] {
        let values: [(&str, Value); 2] = [("a", (&x).into()), ("b", 1.0.into())];
        let told = outcome(tuned(
            &expr,
            &values,
            &x,
            WriteMode::Write,
            Tuning { threads, unroll },
        ));
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn reductions_are_checked() {
    let x = array(DType::F32, &[4, 0, 5], 4096);
    let red = |name: &str, axes: &[i64], shape: &[u64]| {
        outcome(reduce(
            name,
            &x,
            Some(axes),
            &array(DType::F32, shape, 8192),
            WriteMode::Write,
        ))
    };
    assert!(red("summ", &[0], &[0, 5]).contains("known reductions are sum, mean"));
    assert!(red("sum", &[3], &[4, 0]).contains("axis 3: input x has 3 dimension(s)"));
    assert!(red("sum", &[1, -2], &[4, 5]).contains("named twice"));
    assert!(red("max", &[1], &[4, 5]).contains("max of no elements"));
    assert!(red("sum", &[1], &[4, 4]).contains("it has shape [4, 5] or [4, 1, 5]"));
    assert_eq!(
        reduce(
            "sum",
            &x,
            Some(&[1]),
            &array(DType::F32, &[4, 5], 8192),
            WriteMode::Write
        )
        .unwrap()
        .launches
        .len(),
        1
    );
}

#[test]
fn an_output_may_be_its_input() {
    let x = array(DType::F32, &[4, 5], 4096);
    assert_eq!(
        unary("relu", &x, &x, WriteMode::Write)
            .unwrap()
            .launches
            .len(),
        1
    );
    // Nothing to do is nothing to start.
    let none = array(DType::F32, &[4, 0], 0);
    assert!(
        unary("relu", &none, &none, WriteMode::Write)
            .unwrap()
            .launches
            .is_empty()
    );
}

#[test]
fn another_number_or_address_is_the_same_kernel() {
    let source = |number: f64, address: u64, n: u64| {
        let x = array(DType::F16, &[n], 1 << 20);
        let y = array(DType::F16, &[n], address);
        binary("mul", (&x).into(), number.into(), &y, WriteMode::Write)
            .unwrap()
            .launches[0]
            .kernel
            .source()
            .to_owned()
    };
    assert_eq!(source(2.5, 1 << 30, 1000), source(-7.0, 1 << 31, 1001));
    assert_ne!(source(2.5, 1 << 30, 1000), source(2.5, (1 << 30) + 2, 1000));
    // Beyond 2^31 elements places are counted in 64 bits.
    assert!(source(2.5, 1 << 40, 1 << 31).contains("int64 count"));
    assert!(!source(2.5, 1 << 40, 1 << 30).contains("int64 count"));
}

#[test]
fn equal_subexpressions_are_computed_once() {
    let x = array(DType::F32, &[9], 4096);
    let y = array(DType::F32, &[9], 8192);
    let a = Expr::name("a");
    let expr = relu(&a * 2.0 + 1) * relu(&a * 2.0 + 1) + add(relu(a.clone() * 2.0 + 1), a);
    let text = fused(&expr, &[("a", (&x).into())], &y, WriteMode::Write)
        .unwrap()
        .launches[0]
        .kernel
        .source()
        .to_owned();
    assert_eq!(text.matches("warpcc::op::relu").count(), 1, "{text}");
    assert_eq!(text.matches("warpcc::op::mul").count(), 2, "{text}");
    // Shared two to the sixty-fourth times, it is still a kernel of 64 lines.
    let mut deep = Expr::name("a");
    for _ in 0..64 {
        deep = &deep + &deep;
    }
    let text = fused(&deep, &[("a", (&x).into())], &y, WriteMode::Write)
        .unwrap()
        .launches[0]
        .kernel
        .source()
        .to_owned();
    assert_eq!(text.matches("warpcc::op::add").count(), 64);
}

#[test]
fn text_is_read_as_python_reads_it() {
    for (text, meant) in [
        ("a + b * c", "add(a, mul(b, c))"),
        ("a - b - c", "sub(sub(a, b), c)"),
        ("-a ** 2", "negative(power(a, 2))"),
        ("2 ** -1", "power(2, -1)"),
        ("a ** b ** c", "power(a, power(b, c))"),
        ("a < b + 1", "less(a, add(b, 1))"),
        (
            "a | b & c ^ d",
            "bitwise_or(a, bitwise_xor(bitwise_and(b, c), d))",
        ),
        ("~a << 2", "left_shift(bitwise_not(a), 2)"),
        ("a // 2 % 3", "mod(floor_divide(a, 2), 3)"),
        ("relu( a*x+b )", "relu(add(mul(a, x), b))"),
        ("where(a > 0, a, -0.5)", "where(greater(a, 0), a, -0.5)"),
        ("1e-3 + .5 + 2.", "add(add(0.001, 0.5), 2.0)"),
        ("--3", "3"),
    ] {
        assert_eq!(parse(text).unwrap().to_string(), meant, "{text}");
    }
    for (text, part) in [
        ("", "column 1: the end"),
        ("a +", "column 4: the end, where a number, a name or \"(\""),
        ("a b", "column 3: \"b\", where an operator or the end"),
        (
            "relu(a",
            "column 7: the end, where an operator, \",\" or \")\"",
        ),
        ("a < b < c", "column 7: \"<\", where no second comparison"),
        (
            "sigmoyd(a)",
            "column 1: there is no function \"sigmoyd\"; did you mean \"sigmoid\"?",
        ),
        ("add(a)", "add takes 2 argument(s), but 1 were given"),
        ("a $ b", "column 3: \"$\""),
        ("a\0b", "column 2: \"\\0\""),
        ("1.2.3", "\"1.2.3\", where a number"),
        ("ä", "column 1"),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
    assert!(parse(&"(".repeat(100_000)).is_err());
    assert!(parse(&"-".repeat(100_000)).is_err());
    assert!(parse(&"a+".repeat(50_000)).is_err());
    let _ = select(Expr::name("a"), 1.0, 2);
    let _ = Number::from(1i64);
}

#[test]
fn a_very_long_expression_is_refused_and_dropped() {
    let x = array(DType::F32, &[9], 4096);
    let mut sum = Expr::name("a");
    for number in 0..100_000 {
        sum = sum + f64::from(number);
    }
    let told = outcome(fused(&sum, &[("a", (&x).into())], &x, WriteMode::Write));
    assert!(told.contains("more than 4096 different calls"), "{told}");
}

/// The argument structs' dividers, read back: (factor, shift, by) of each dimension.
fn divide(factor: u64, shift: u64, n: u64) -> u64 {
    (((n * factor) >> 32) + n) >> shift
}

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
        // Rows one after another, turned, every second, or one element for all.
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

proptest! {
    #[test]
    fn any_text_is_an_expression_or_an_error(text in "[-a-c0-9+*/%<>=&|^~().,e ]{0,40}") {
        if let Ok(expr) = parse(&text) {
            // An expression that was written out parses to the same expression.
            let written = expr.to_string();
            prop_assert_eq!(parse(&written).unwrap().to_string(), written);
        }
    }

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

/// The tables of docs/kernels.md, from what the library knows.
fn tables() -> String {
    use std::fmt::Write as _;
    use warpcc_kernels::functions::{ALL, Gives};
    let mut text = String::from("| function | takes | gives | formula |\n|---|---|---|---|\n");
    for each in ALL {
        let gives = match each.gives {
            Gives::Number => "number",
            Gives::Same => "same",
            Gives::Real => "real",
            Gives::Truth => "bool",
            Gives::First => "x's type",
            Gives::Second => "y's type",
            Gives::Bits => "same, no floats",
            Gives::Whole => "number, no floats",
            Gives::Chosen => "same, of y and z",
            Gives::RealOfTwo => "real, of g and x",
        };
        let takes = match (each.name.starts_with("backward_"), each.arity) {
            (true, 4) => "g, x, y, z",
            (true, _) if each.formula.contains("out") => "g, out",
            (true, _) => "g, x",
            (false, 1) => "x",
            (false, 2) => "x, y",
            (false, _) => "x, y, z",
        };
        let _ = writeln!(
            text,
            "| `{}` | {takes} | {gives} | {} |",
            each.name,
            each.formula.replace('|', "\\|")
        );
    }
    text += "\n| reduction | gives |\n|---|---|\n";
    for each in warpcc_kernels::reductions::ALL {
        let _ = writeln!(
            text,
            "| `{}` | {} |",
            each.name,
            each.formula.replace('|', "\\|")
        );
    }
    text
}

#[test]
fn the_documentation_has_every_function() {
    let tables = tables();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kernels.md");
    let held = std::fs::read_to_string(docs).unwrap();
    if !held.contains(&tables) {
        let wanted = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels-tables.md");
        std::fs::write(&wanted, &tables).unwrap();
        panic!(
            "docs/kernels.md has other tables than the library: {} has the library's",
            wanted.display()
        );
    }
}
