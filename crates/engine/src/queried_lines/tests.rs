//! Tests of which files can query their lines.

mod values;

use super::files;

/// A class like C++'s `source_location`.
const LOCATION: &str = "namespace std { class location { public: static constexpr location current(
 const char *file = __builtin_FILE(), int line = __builtin_LINE()) noexcept { return {file, line}; }
 const char *file; int line; }; }\n";

/// A text of the class, more of the same header, and a source.
fn text(header: &str, source: &str) -> String {
    format!("# 0 \"a.cu\"\n# 1 \"l.h\" 1 3 4\n{LOCATION}\n{header}\n# 2 \"a.cu\" 2\n{source}\n")
}

#[track_caller]
fn demand(header: &str, source: &str, expected: Option<&[&str]>) {
    let text = text(header, source);
    let found = files(text.as_bytes());
    let found = found.map(|paths| {
        let mut paths: Vec<String> = paths
            .into_iter()
            .map(|path| String::from_utf8_lossy(path).replace('"', ""))
            .collect();
        paths.sort();
        paths
    });
    let expected = expected.map(|paths| paths.iter().map(ToString::to_string).collect());
    assert_eq!(found, expected, "{header}\n{source}");
}

/// Only the header's lines can be asked for.
#[track_caller]
fn header_only(header: &str, source: &str) {
    demand(header, source, Some(&["l.h"]));
}

#[track_caller]
fn source_too(header: &str, source: &str) {
    demand(header, source, Some(&["a.cu", "l.h"]));
}

/// All lines count.
#[track_caller]
fn all(header: &str, source: &str) {
    demand(header, source, None);
}

const USES: &str = "void raise(int code, std::location at = std::location::current());";
const CLASS: &str = "class error : public base { public: error(int a, const char *text,
 std::location at = std::location::current()) noexcept : base(at) {} error(const error &) = default; };";

#[test]
fn a_source_that_calls_nothing_of_it_does_not_ask() {
    let kernel = "template <class T> struct S { T a = 1; };\n__global__ void k(int *p) { *p = f({1, \"a\"}); }";
    for header in ["", USES, CLASS] {
        header_only(header, kernel);
    }
}

#[test]
fn a_call_asks() {
    source_too("", "int f() { return std::location::current().line; }");
    source_too("", "int f() { return (std::location::current)().line; }");
    source_too("", "int f() { return __builtin_LINE(); }");
    source_too(USES, "void f() { raise(1); }");
    source_too(USES, "int a = raise<int>(1);");
    source_too(USES, "void f() { if ((a = raise(1)) != 0) return; }");
    // By another function.
    let more = format!("{USES} inline int deep(int a = (raise(1), 2)) {{ return a; }}");
    source_too(&more, "int f() { return deep(); }");
    header_only(&more, "int f() { return shallow(); }");
    // Declared after it was called.
    source_too(
        "template <class T> void f(T a) { raise(a); }",
        "struct A {}; void raise(A, int line = __builtin_LINE());",
    );
    // What a macro of a header makes is in the source.
    source_too("", "#pragma once\nint a = std::location\n::current().line;");
}

#[test]
fn what_stands_in_a_body_is_a_line_of_that_file() {
    for header in [
        "inline int line() { return std::location::current().line; }",
        "struct S { int a; S(int b) : a(b), c{b} { log(std::location::current()); } int c; };",
        "inline int many() { for (int i = std::location::current().line; i;) { i--; } return 0; }",
        "inline void fail() { throw error(1, \"a\"); }",
        "inline auto fail() -> first<(1 > 0)> * { throw ::error(1, \"a\"); }",
        "using alias = decltype(std::location::current());",
        "template <int N, class = first<(N > 1)>> int f() noexcept { return std::location::current().line; }",
        "extern \"C\" { inline int g() { return __builtin_LINE(); } }",
    ] {
        header_only(&format!("{CLASS}\n{header}"), "int b;");
    }
}

/// Calls from another file that have no name.
#[test]
fn what_may_be_called_without_its_name_counts() {
    for header in [
        // A class with the name of a function that asks.
        "struct current { current(int a, int line = __builtin_LINE()); }; void take(current);",
        // Initialisers of members.
        "struct S { int line = __builtin_LINE(); };",
        "struct S { int line{std::location::current().line}; };",
        "struct S { int line = T{1}.add(std::location::current().line); };",
        "struct S { decltype(1) line{std::location::current().line}; };",
        "struct S { int line alignas(8) {std::location::current().line}; };",
        "struct S { int line alignas(8) : (3) {std::location::current().line}; };",
        "struct S { int line : (3) {std::location::current().line}; };",
        "struct S { int line : 3 = __builtin_LINE(); };",
        "struct S { int (*line)(int) {get(__builtin_LINE())}; };",
        "struct S { void (*line)(int) noexcept {get(__builtin_LINE())}; };",
        "struct S { auto (*line)(int) -> int {get(__builtin_LINE())}; };",
        "struct S { T line = { decltype(1){__builtin_LINE()} }; };",
        "void f() { struct S { int line = __builtin_LINE(); }; user(S{}); }",
        // Operators, closures, parameters of templates.
        "struct S { int operator()(int line = __builtin_LINE()); };",
        "struct S { void *operator new(unsigned long, int line = __builtin_LINE()); };",
        "inline auto f = [](int line = __builtin_LINE()) { return line; };",
        "inline auto f() { return [](int line = __builtin_LINE()) { return line; }; }",
        "inline auto f() { return []<class T>(T line = __builtin_LINE()) { return line; }; }",
        "using f = decltype([](int line = __builtin_LINE()) { return line; });",
        "template <int N = __builtin_LINE()> struct S {};",
        "template <class T, int N = std::location::current().line> struct S {};",
        "int (f)(int line = __builtin_LINE());",
        // The language calls it.
        "struct S { int *begin(int line = __builtin_LINE()); int *end(); };",
        "struct P { T await_transform(int, int line = __builtin_LINE()); };",
        "struct S { struct promise_type { promise_type(int line = __builtin_LINE()); }; };",
    ] {
        all(header, "int b;");
    }
}

/// Initialisers of members whose braces look like a function's body or a class.
#[test]
fn a_member_is_not_taken_for_a_function() {
    for member in [
        "int (line) {A};",
        "unsigned __int128 (line) {A};",
        "int *__restrict (line) {A};",
        "[[maybe_unused]] T (line) {A};",
        "const T (line) {A};",
        "n::T (line) {A};",
        "typename n::T (line) {A};",
        "int (line) : (20) {A};",
        "S (*line) {A};",
        "S (__attribute__((aligned(8))) *line) {A};",
        "S (T::*line) {A};",
        "int f(int), (line) {A};",
        "T f(int), line alignas(8) {A};",
        "T a {1}, b alignas(8) {A};",
        "struct P line {A};",
        "struct P<int> line {A};",
        "const struct P line {A};",
        "struct P __attribute__((aligned(8))) line {A};",
        "enum E line : 20 {A};",
        "X<f(1)->q> line {A};",
        "X<not f(1)->q> line {A};",
        "X<n < f(1)> line {A};",
        "X<n <=> f(1)->q> line {A};",
        "int mutable (line) {A};",
        "template <class... T> S(T... a) : T(a)... {} int (line) {A};",
        "X<void(int)> line alignas(8) {A};",
        "X<&T::operator> > line alignas(8) {A};",
        "int (*line)(int) throw() {A};",
        "union { int (line) {A}; };",
    ] {
        let member = member.replace('A', "__builtin_LINE()");
        all(&format!("struct S {{ {member} }};"), "int b;");
        let local = format!("inline auto f() {{ struct S {{ {member} }}; return S{{}}; }}");
        all(&local, "int b;");
    }
}

/// Classes that are hard to find: their members' initialisers, and their constructors.
#[test]
fn a_class_is_found_wherever_it_is() {
    let member = "{ int line = __builtin_LINE(); }";
    for body in [
        "struct alignas(sizeof(V{})) S M; return S{};",
        "struct S : B<V{1}.a> M; return S{};",
        "struct S : B<&V::operator>, V{1}.a> M; return S{};",
        "for (struct S M s; ;) return s;",
        "if (struct S M s; true) return s;",
        "switch (struct S M s; 1) { default: return s; }",
        "using S = struct M; return S{};",
        "return ({ struct S M; S{}; });",
        "return [] { struct S M; return S{}; }();",
        "l: struct S M s; return s;",
    ] {
        let body = body.replace('M', member);
        all(&format!("inline auto f() {{ {body} }}"), "int b;");
    }
    all(&format!("struct S : B<V{{1}}.f(2)->a> {member};"), "int b;");
    for class in [
        "struct alignas(sizeof(V{})) S",
        "struct [[deprecated(\"use X; it is better\")]] S",
        "#pragma user a,\nstruct S",
        "struct S final",
        "template <class T> struct S",
        "struct A { struct S; };\nstruct A::S",
    ] {
        let class =
            format!("{class} {{ S(int a, int line = __builtin_LINE()); }};\nvoid take(const S &);");
        all(&class, "int b = take(1);");
    }
}

/// Default arguments that are hard to find.
#[test]
fn a_default_is_found_wherever_it_is() {
    for default in [
        "int line = pick<int, int>(__builtin_LINE())",
        "int a = x, int line = __builtin_LINE()",
    ] {
        source_too(&format!("int w({default});"), "int b = w();");
    }
    for header in [
        "inline auto f() { return [](int l = int{__builtin_LINE()}) { return l; }; }",
        "inline auto f() { return [](V v = {__builtin_LINE()}) { return v; }; }",
        "inline void f() { int w(V v = {__builtin_LINE()}); }",
        "inline auto f = []<class T> requires Goo (T a, int l = __builtin_LINE()) { return l; };",
        "inline auto f(X([]<class T> requires Goo (T a, int l = __builtin_LINE()) { return l; }));",
        "inline auto f() { return []<int N = __builtin_LINE()>() { return N; }; }",
        "inline auto f() { return g([]<class T, T v = T{__builtin_LINE()}>(T) { return v; }); }",
        "template <auto V = &T::operator>>, int N = __builtin_LINE()> int f();",
        "template <auto O = 1 <=> 2, int N = __builtin_LINE()> int f();",
        "typedef int f(int l = __builtin_LINE());",
        "inline auto f() { return <:=:>(int l = __builtin_LINE()) { return l; }; }",
    ] {
        all(header, "int b;");
    }
    all(USES, "void f() { __attribute__((cleanup(raise))) int x; }");
    all(USES, "void f() { [[gnu::cleanup(raise)]] int x; }");
}

/// The line of a call can be that of any part of its statement.
#[test]
fn all_files_of_a_statement_count() {
    let split = |parts: [&str; 3]| {
        let [before, part, after] = parts;
        format!("{before}\n# 1 \"part.inc\" 1\n{part}\n# 4 \"l.h\" 2\n{after}")
    };
    for parts in [
        ["inline int f() { return raise(", ")", "; }"],
        ["inline int f() { return 1 +", "2 + ", "raise(1); }"],
        ["inline int f() { return raise", "(1); }", ""],
        ["inline int f() { return raise([] { ", "return 1; })", "; }"],
    ] {
        let header = format!("{USES}\n{}", split(parts));
        demand(&header, "int b;", Some(&["l.h", "part.inc"]));
    }
    let parts = ["inline int f() { raise(1);", "int a;", "return a; }"];
    header_only(&format!("{USES}\n{}", split(parts)), "int b;");
    // Members can call the constructor without its name.
    let parts = [
        "struct S {",
        "void f() { *this = {1}; }",
        "S(int, int l = __builtin_LINE()); };",
    ];
    all(&split(parts), "int b;");
}

/// A constructor that asks, where its class has another name or none.
#[test]
fn a_class_that_has_another_name_counts() {
    for header in [
        "using other = error;",
        "typedef error other;",
        "struct derived : error { using error::error; };",
        "void raise(error e);",
        "struct S { error e; };",
        "template <class E = error> void raise();",
        "template <> struct traits<int> { using type = error; };",
        "inline auto make() { return error(1, \"a\"); }",
        "inline void call() { user(error(1, \"a\")); }",
        "inline void call() { user<error>(); }",
        "inline error make() { return {1, \"a\"}; }",
        "extern error last;",
        "extern struct error last;",
        "struct error make();",
        "inline auto make() { return new struct error(1); }",
        "friend struct error;",
        "inline auto f() { return [](int a = (throw error(1, \"a\"), 2)) { return a; }; }",
    ] {
        all(&format!("{CLASS}\n{header}"), "int b;");
    }
    for class in [
        CLASS.replace("; };", "; } last;"),
        CLASS
            .replace("class error", "typedef class error")
            .replace("; };", "; } other;"),
        CLASS
            .replace("class error", "static const class error")
            .replace("; };", "; } other;"),
    ] {
        all(&class, "int b;");
    }
    source_too(CLASS, "void f() { throw error(1, \"a\"); }");
    header_only(
        &format!("namespace a {{ {CLASS} }} using a::error;"),
        "int b;",
    );
    header_only(&format!("class error; {CLASS}"), "int b;");
    // An implicit conversion.
    all(
        "struct S { S(int a, int line = __builtin_LINE()); }; void take(S);",
        "void f() { take(1); }",
    );
}

#[test]
fn a_text_that_is_not_understood_counts() {
    for source in [
        "int f() { return 1; // comment\n}",
        "int f() <% return 1; %>",
        "int f() { return 1;",
        "int f() { return (1]; }",
        "}",
        "template <int N, bool B = N < 3> struct S { int f() { return __builtin_LINE(); } };",
        "#pragma user current(1)",
        "const char *s = R\"(a\n# 1 \"b\"\n)\";",
    ] {
        all("", source);
    }
    header_only(
        "",
        "const char *s = R\"(current( \"{)\"; const char c = '\"', d = '\\''; int n = 1'000;",
    );
}

/// An assertion as glibc writes it since 2.39.
const ASSERT: &str = "(static_cast <bool> (a) ? void (0) : __assert_fail (\"a\", __builtin_FILE (), __builtin_LINE (),
 __extension__ __PRETTY_FUNCTION__));";

/// Forms of functions in CUTLASS, CCCL and PyTorch.
#[test]
fn an_assertion_in_a_function_has_the_lines_of_its_file() {
    for function in [
        "template <class... A> void __attribute__((host)) f(A... all) const",
        "__attribute__((host)) __attribute__((device)) constexpr S operator+(T const& i) const",
        "T operator[](int at)",
        "T &operator()(int at, int other = 0) noexcept",
        "S &operator=(const S &)",
        "explicit operator bool() const",
        "operator T *() const",
        "operator V<T>()",
        "bool operator<(S const &) const",
        "T const f(int at = 0) const",
        "int static inline f()",
        "static void __inline__ __attribute__((always_inline)) __attribute__((device)) f(int a)",
    ] {
        header_only(&format!("struct S {{ {function} {{ {ASSERT} }} }};"), "");
    }
    for function in [
        "template <> __attribute__((device)) inline void f<A::B, 1>(V<int, 4> & D, void const* p)",
        "template <class T> T const &S<T>::operator[](int at) const",
    ] {
        header_only(&format!("{function} {{ {ASSERT} }}"), "");
    }
}

/// These run where the class is made, however their declaration is written.
#[test]
fn an_initialiser_of_a_member_with_attributes_counts_everywhere() {
    for member in [
        "T const (a){__builtin_LINE()};",
        "const T (a){__builtin_LINE()};",
        "__attribute__((aligned(8))) T (a){__builtin_LINE()};",
        "__attribute__((aligned(8))) const T (a){__builtin_LINE()};",
        "alignas(8) T (a){__builtin_LINE()};",
        "T __attribute__((aligned(8))) (a){__builtin_LINE()};",
        "V<T> (a){__builtin_LINE()};",
        "V<T> const (a){__builtin_LINE()};",
        "V<&T::operator+> a{__builtin_LINE()};",
        "V<&T::operator()> (a){__builtin_LINE()};",
        "decltype(&T::operator+) a{__builtin_LINE()};",
        "int a{T().operator+(__builtin_LINE())};",
        "int a = T().operator+(__builtin_LINE());",
        "int a = T::operator+(V{__builtin_LINE()});",
    ] {
        all(&format!("struct S {{ int b; {member} }};"), "");
    }
}
