//! Tests of functions that are named and not called.

use super::super::files;
use super::{all, header_only, source_too};

#[test]
fn a_name_that_is_not_called_does_not() {
    header_only(
        "",
        "int f(int current) { int a = current; current += 2; return current; }",
    );
    header_only(
        "",
        "struct I { int current; I(const I &o) noexcept(noexcept(current = o.current)); };",
    );
    source_too("", "struct I { int current; I() : current() {} };");
}

/// What copies the type of a function can be called elsewhere, with the default argument.
#[test]
fn a_function_that_is_named_and_not_called_can_be_called_elsewhere() {
    let raise = "int raise(int line = __builtin_LINE()); template <class T> int thrown(T a, int line = __builtin_LINE());";
    for source in [
        "int b = call<raise>();",
        "int b = call<(raise)>();",
        "int b = call<thrown<int>>();",
        "int b = call<decltype(raise)>();",
        "X<int, a ? raise : raise> b;",
        "template <auto &F = raise> int call();",
        "template <auto &... F> struct X; using Y = X<n::raise...>;",
        "decltype(raise) other;",
        "decltype(raise + 0) other = raise;",
        "__type_of_a_later_compiler(raise) other;",
        "int b = call<raise + 0>();",
        "typedef __typeof__(n::raise) other;",
        "decltype(auto) other() { return (raise); }",
        "decltype(auto) other() { int a; { a = 1; } return *raise; }",
        "auto other = []() -> decltype(auto) { return (thrown<int>); };",
        "struct S { static constexpr decltype(auto) a = (raise); };",
    ] {
        all(raise, source);
    }
    for source in [
        "int f(int a) { return (a ? raise : other)(); }",
        "int f(int a) { return (a ? other : (raise))(); }",
        "int f(int a) { return (a ? thrown<int> : other)(1); }",
        "int f(int a) { return ({ raise; })(); }",
        "int f(int a) { return __builtin_launder(&raise)(); }",
        "auto f() -> decltype(raise(1)) { return thrown<int>(1); }",
    ] {
        source_too(raise, source);
    }
    for source in [
        "int f(int raise) { decltype(1) a = 1; for (int i = 0; i < raise + 1; i++) { raise++; } return raise * 2; }",
        "int f(int raise) { for (int i = 0; i < raise; i++) if (raise > 3 && 2 < raise) return (raise); return raise; }",
        "int f(T b) { { using U = decltype(b); X<decltype(b)> c; } int raise = 1; return (raise); }",
        "int f(int (*a)(int)); int b = f(raise) + f(&raise);",
        "int f(int raise, int a, int b) { if (a < raise + 1 && b) return raise - 1; return a < raise + 1; }",
        "int f(int raise) { int a = std::__min(raise, 1) + b.__get(raise) + c->__get(raise); return __min(a) + raise; }",
        "bool operator<(S, int raise) { return raise; }",
    ] {
        header_only(raise, source);
    }
    // A name that is only guessed to ask.
    let header = "int f(int a) { return __builtin_LINE(); }";
    let text = format!("# 1 \"l.h\" 1 3 4\n{header}\n# 2 \"a.cu\" 2\ndecltype(current) b;\n");
    assert!(files(text.as_bytes()).is_some());
    all("", "decltype(std::location::current) b;");
}

#[test]
fn a_hostile_text_takes_no_longer_than_any_other() {
    let raise = "int raise(int line = __builtin_LINE());";
    all(
        raise,
        &format!("void f() {{ {} }}", "f(raise); ".repeat(1 << 16)),
    );
    header_only(
        raise,
        &format!("void f() {{ {} }}", "f(raise); ".repeat(1 << 8)),
    );
    let statement = "f(raise); ".repeat(1 << 8);
    header_only(
        raise,
        &format!("void f() {{ {statement} }} ").repeat(1 << 5),
    );
}
