//! Invents headers whose declarations ask for the line of their use, in the ways that C++ has for it.

use super::random::Random;

/// A declaration in a header and an expression for a source. `%` stands for the header's name.
const WAYS: [(&str, &str); 18] = [
    (
        "HD inline int f%(int l = __builtin_LINE()) { return l; }",
        "f%()",
    ),
    ("HD inline int f%() { return __builtin_LINE(); }", "f%()"),
    (
        "HD inline int g%(int l = __builtin_LINE()) { return l; }\nHD inline int f%(int l = (1, g%())) { return l; }",
        "f%()",
    ),
    ("struct S% { int l = __builtin_LINE(); };", "S%{}.l"),
    ("struct S% { int l {__builtin_LINE()}; };", "S%{}.l"),
    ("struct S% { int (l) {__builtin_LINE()}; };", "S%{}.l"),
    ("struct S% { int l : 20 = __builtin_LINE(); };", "S%{}.l"),
    (
        "struct S% { int v; HD S%(int a, int l = __builtin_LINE()) : v(l) {} };\nHD inline int f%(S% s) { return s.v; }",
        "f%(1)",
    ),
    (
        "struct S% { int v; HD S%(int a, int l = __builtin_LINE()) : v{l} {} };\nusing A% = S%;",
        "A%(1).v",
    ),
    (
        "struct S% { int v; HD S%(int a, int l = __builtin_LINE()) : v{l} {} };\nstruct D% : S% { using S%::S%; };",
        "D%(1).v",
    ),
    (
        "struct S% { HD int operator()(int l = __builtin_LINE()) const { return l; } };",
        "S%{}()",
    ),
    (
        "HD inline auto f%() { return [](int l = __builtin_LINE()) { return l; }; }",
        "f%()()",
    ),
    (
        "HD inline auto f%() { struct S { int l = __builtin_LINE(); }; return S{}; }",
        "decltype(f%()){}.l",
    ),
    (
        "template <class T, bool B = (1 < 2)> HD int f%(T a, int l = __builtin_LINE()) { return l; }",
        "f%(1)",
    ),
    (
        "template <int N = __builtin_LINE()> HD int f%() { return N; }",
        "f%<>()",
    ),
    (
        "struct L% { int l; static constexpr HD L% current(int l = __builtin_LINE()) { return L%{l}; } };",
        "L%::current().l",
    ),
    (
        "struct L% { int l; static constexpr HD L% current(int l = __builtin_LINE()) { return L%{l}; } };\n\
         HD inline int f%(L% l = L%::current()) { return l.l; }",
        "f%()",
    ),
    (
        "struct L% { int l; static constexpr HD L% current(int l = __builtin_LINE()) { return L%{l}; } };\n\
         struct S% { L% l {L%::current()}; };",
        "S%{}.l.l",
    ),
];

/// Lines of a header, which define the macro `ASK_` with the stem.
pub fn header(random: &mut Random, stem: &str) -> Vec<String> {
    let (declaration, expression) = WAYS[random.below(WAYS.len())];
    let own = |text: &str| text.replace('%', stem);
    vec![
        "#undef HD\n#ifdef __CUDACC__\n#define HD __host__ __device__\n#else\n#define HD\n#endif"
            .to_owned(),
        own(declaration),
        format!("#define ASK_{stem} {}", own(expression)),
    ]
}

/// A line of a source that uses it, if the header has it.
pub fn usage(random: &mut Random, stem: &str) -> String {
    let user = match random.below(3) {
        0 => format!("__global__ void asks(int *p) {{ *p = ASK_{stem}; }}"),
        1 => format!("int asks() {{ return ASK_{stem}; }}"),
        _ => format!("__device__ int asks() {{ return 1 +\nASK_{stem}; }}"),
    };
    format!("#ifdef ASK_{stem}\n{user}\n#endif")
}
