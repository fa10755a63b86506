//! Expressions as text: Python's precedence, and errors with the column.

use proptest::prelude::*;
use warpcc_kernels::call::select;
use warpcc_kernels::expression::{Expr, Number};
use warpcc_kernels::parse::parse;

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

proptest! {
    #[test]
    fn any_text_is_an_expression_or_an_error(text in "[-a-c0-9+*/%<>=&|^~().,e ]{0,40}") {
        if let Ok(expr) = parse(&text) {
            // An expression that was written out parses to the same expression.
            let written = expr.to_string();
            prop_assert_eq!(parse(&written).unwrap().to_string(), written);
        }
    }
}
