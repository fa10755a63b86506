//! Plans: what is refused and with which message, and the same kernel for what differs only in values.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, with the place"
)]

mod cached;
mod expressions;
mod places;
mod tables;

use warpcc_kernels::call::{add, relu};
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{Value, binary, fused, tuned, unary};
use warpcc_kernels::expression::Expr;
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Plan, PlanError, Tensor, Tuning, WriteMode};
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
        let message = outcome(tuned(
            &expr,
            &values,
            &x,
            WriteMode::Write,
            Tuning { threads, unroll },
        ));
        assert!(message.contains(part), "{message}");
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
fn a_very_long_expression_is_refused_and_dropped() {
    let x = array(DType::F32, &[9], 4096);
    let mut sum = Expr::name("a");
    for number in 0..100_000 {
        sum = sum + f64::from(number);
    }
    let message = outcome(fused(&sum, &[("a", (&x).into())], &x, WriteMode::Write));
    assert!(
        message.contains("more than 4096 different calls"),
        "{message}"
    );
}
