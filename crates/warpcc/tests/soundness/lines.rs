//! Edits that move words to other lines and change nothing else: the front ends do not run again, unless a line can show.

use crate::space::{Exactness, Program, Snapshot, TestSpace, Toolkit, differences, small};
use crate::{ONE, TWO};

/// A closure, a name without linkage and a launch: what the front ends make names for.
const SOURCE: &str = r#"template<class F> __device__ int run(F f) { return f(1); }
static __device__ int part = 3;
namespace { __global__ void store(int *p) { *p = part + run([=](int a) { return a + *p; }); } }
__device__ const char *text() { return "words"; }
int host(int *p, unsigned many) {
    store<<<1, 1>>>(p);
    auto next = [](int a) { return a + 1; };
    return next(2) + MORE;
}
"#;

/// The same words on other lines.
fn moved(source: &str) -> [String; 4] {
    [
        format!("// A comment.\n\n{source}"),
        source.replace("static", "/* on\ntwo lines */ static"),
        source.replace("{\n", "{   \n\n// Inside.\n"),
        source.replace("    ", "\t"),
    ]
}

/// In each toolkit: the source as it is, then with its words on other lines; two of the four texts for a release that is
/// not chosen. Whether the front ends ran again is as demanded.
#[track_caller]
fn follow(name: &str, source: &str, line: &str, needed: &[&str], shared: &[&str]) {
    for toolkit in Toolkit::all() {
        let space = TestSpace::with_toolkit(name, small(toolkit));
        space.write("case.cu", source);
        // With line tables, release 13.0 writes the time into the result.
        space.set_old("case.cu");
        space.build(line).demand_no_fallback();
        let release = space.toolkit.name;
        let is_chosen = Toolkit::chosen()
            .iter()
            .any(|chosen| chosen.name == release);
        let texts = if is_chosen { 4 } else { 2 };
        for text in &moved(source)[..texts] {
            space.write("case.cu", text);
            space.set_old("case.cu");
            let built = space.agree(line);
            built.demand_no_direct_hit().demand_no_fallback();
            built.demand_hits_of(shared);
            let again = needed.iter().filter(|tool| built.stats.missed(tool) == 0);
            assert_eq!(again.count(), 0, "of {needed:?}: {:?}", built.stats);
        }
    }
}

#[test]
fn a_comment_runs_no_front_end() {
    let tools = ["cudafe++", "cicc", "ptxas"];
    follow("lines", SOURCE, &format!("{TWO} -DMORE=0"), &[], &tools);
}

#[test]
fn a_line_that_is_asked_for_counts() {
    // Spaces move nothing, so only what moves lines is tried.
    for asked in ["__LINE__", "__builtin_LINE()"] {
        for toolkit in Toolkit::chosen() {
            let space = TestSpace::with_toolkit("lines-asked", small(toolkit));
            let source = SOURCE.replace("*p = part + ", &format!("*p = {asked} + "));
            let line = format!("{ONE} -DMORE=0");
            space.write("case.cu", &source);
            space.build(&line);
            for text in &moved(&source)[..2] {
                space.write("case.cu", text);
                let built = space.agree(&line);
                assert_ne!(built.stats.missed("cicc"), 0, "{asked}: {:?}", built.stats);
            }
        }
    }
}

/// Like CCCL's `source_location` and the exception that uses it.
const LOCATION: &str = r#"#pragma once
class location {
    int line_ = 0;
public:
    explicit constexpr location(int line) noexcept : line_(line) {}
    [[nodiscard]] static constexpr location current(int line = __builtin_LINE()) noexcept { return location{line}; }
    constexpr int line() const noexcept { return line_; }
};
class failed {
    int line_;
public:
    failed(int code, const char *, location where = location::current()) noexcept : line_(code + where.line()) {}
};
inline void fail(int code) { throw failed(code, "failed"); }
inline int where(location at = location::current()) { return at.line(); }
"#;

/// Compiles the source, and then with its words on other lines. No front end runs again.
#[track_caller]
fn front_ends_rest(space: &TestSpace, line: &str, source: &str) {
    space.write("case.cu", source);
    space.build(line).demand_no_fallback();
    for text in &moved(source)[..2] {
        space.write("case.cu", text);
        let built = space.agree(line);
        built.demand_no_direct_hit().demand_no_fallback();
        built.demand_hits_of(&["cudafe++", "cicc", "ptxas"]);
    }
}

#[test]
fn a_header_with_a_source_location_needs_no_lines_of_the_source() {
    let source = format!(
        "#include \"location.h\"\n{SOURCE}int later() {{ int current = 1; fail(current); return current; }}"
    );
    let calls = [
        source.replace("return next(2)", "return location::current().line()"),
        source.replace("return next(2)", "return where()"),
        source.replace("fail(current);", "throw failed(1, \"a\");"),
    ];
    for toolkit in Toolkit::chosen() {
        let space = TestSpace::with_toolkit("lines-location", small(toolkit));
        let line = format!("{ONE} -DMORE=0");
        space.write("location.h", LOCATION);
        front_ends_rest(&space, &line, &source);
        for source in &calls {
            space.write("case.cu", source);
            space.build(&line);
            space.write("case.cu", &format!("\n{source}"));
            let built = space.agree(&line);
            assert_ne!(built.stats.missed("cudafe++"), 0, "{:?}", built.stats);
        }
    }
}

/// `assert` as glibc writes it since 2.39, in functions as CUTLASS, CCCL and PyTorch have them.
const ASSERTS: &str = r#"#pragma once
#define assert(e) (static_cast<bool>(e) ? void(0) : __assert_fail(#e, __builtin_FILE(), __builtin_LINE(), __extension__ __PRETTY_FUNCTION__))
struct checked {
    int values[4];
    __host__ __device__ int operator[](int at) const { assert(at < 4); return values[at]; }
    __host__ __device__ explicit operator bool() const { assert(values[0] < 4); return values[0]; }
    void __host__ __device__ set(int value = 0) { assert(value); values[0] = value; }
    checked const copy(int value = 0) const { assert(value); return *this; }
};
template <class T> __device__ int pick(T);
template <> __device__ inline int pick<int>(int value) { assert(value); return value; }
"#;

#[test]
fn a_header_with_assertions_needs_no_lines_of_the_source() {
    let space = TestSpace::new("lines-asserts");
    let line = format!("{ONE} -DMORE=0");
    space.write("asserts.h", ASSERTS);
    let source = SOURCE.replace(
        "*p = part + ",
        "checked all{}; all.set(); *p = pick(all[1]) + part + ",
    );
    let source = format!("#include \"asserts.h\"\n{source}");
    front_ends_rest(&space, &line, &source);
    // An assertion of the source has its line in its message.
    let own = source.replace("checked all{};", "checked all{}; assert(*p);");
    space.write("case.cu", &own);
    space.build(&line);
    space.write("case.cu", &format!("\n{own}"));
    assert_ne!(space.agree(&line).stats.missed("cicc"), 0);
}

/// Headers that ask for the line where something of theirs is used, which the use does not show, and the use.
/// No header has the name `fetch_line`. With a usual one, such as `f`, all lines count for another reason.
const UNNAMED: [(&str, &str); 15] = [
    ("struct S { int (line) {__builtin_LINE()}; };", "S{}.line"),
    ("struct S { int __attribute__((aligned(8))) const (line) {__builtin_LINE()}; };", "S{}.line"),
    ("struct A { int operator+(int) const; }; template<int (A::*)(int) const> struct X { int v; };
      struct S { X<&A::operator+> line {__builtin_LINE()}; };", "S{}.line.v"),
    ("struct P { int a; }; struct S { struct P line {__builtin_LINE()}; };", "S{}.line.a"),
    ("template<class> struct X { int v; }; struct S { X<void(int)> line alignas(8) {__builtin_LINE()}; };", "S{}.line.v"),
    ("__device__ inline auto fetch_line() { for (struct S { int line = __builtin_LINE(); } s; ;) return s; }", "decltype(fetch_line()){}.line"),
    ("__device__ inline auto fetch_line() { return [](int l = int{__builtin_LINE()}) { return l; }; }", "fetch_line()()"),
    ("template<class, class> __device__ int pick(int a) { return a; }
      __device__ inline int fetch_line(int l = pick<int, int>(__builtin_LINE())) { return l; }", "fetch_line()"),
    ("struct [[deprecated(\"a; b\")]] S { int v; __device__ S(int, int l = __builtin_LINE()) : v(l) {} };
      __device__ inline int fetch_line(const S &s) { return s.v; }", "fetch_line(1)"),
    // NVIDIA's front end takes the default of a function for a part of its type.
    ("__device__ inline int fetch_line(int l = __builtin_LINE()) { return l; }
      __device__ decltype(fetch_line) g; __device__ inline int g(int l) { return l; }", "g()"),
    ("__device__ inline int fetch_line(int l = __builtin_LINE()) { return l; }
      __device__ inline decltype(auto) g() { return (fetch_line); }", "g()()"),
    ("__device__ inline int fetch_line(int l = __builtin_LINE()) { return l; }
      template<auto &F> struct S { static constexpr decltype(auto) g = (F); }; using T = S<fetch_line>;", "T::g()"),
    ("__device__ inline int fetch_line(int l = __builtin_LINE()) { return l; } __device__ inline int g(int l = 0) { return l; }", "(p ? fetch_line : g)()"),
    ("__device__ inline int fetch_line(int l = __builtin_LINE()) { return l; } template<class T> struct S { T g; };
      __device__ inline auto g() { S<decltype(fetch_line + 0)> s; s.g = fetch_line; return s; }", "g().g()"),
    ("typedef struct S { int v; __device__ S(int, int l = __builtin_LINE()) : v(l) {} } T;", "T(1).v"),
];

#[test]
fn a_line_that_is_asked_for_without_a_name_counts() {
    let space = TestSpace::new("lines-unnamed");
    let line = format!("{ONE} -DMORE=0 -w");
    for (header, used) in UNNAMED {
        space.write("header.h", &format!("#pragma once\n{header}\n"));
        let source = SOURCE.replace("*p = part + ", &format!("*p = part + {used} + "));
        let source = format!("#include \"header.h\"\n{source}");
        space.write("case.cu", &source);
        space.build(&line).demand_no_fallback();
        space.write("case.cu", &format!("\n{source}"));
        let built = space.agree(&line);
        assert_ne!(built.stats.missed("cicc"), 0, "{header}: {:?}", built.stats);
    }
}

#[test]
fn line_tables_hold_lines() {
    for option in ["-lineinfo", "-G"] {
        let again: &[_] = &["cudafe++"];
        follow(
            "lines-tables",
            SOURCE,
            &format!("{ONE} -DMORE=0 {option}"),
            again,
            &[],
        );
    }
}

#[test]
fn a_warning_names_the_line_of_this_text() {
    // One from the host compiler, one from both front ends.
    let host = SOURCE.replace("return next(2)", "return (*p > many)");
    let line = format!("{ONE} -DMORE=0");
    let all = format!("{line} -Xcompiler=-Wall");
    follow("lines-warned", &host, &all, &["host"], &["ptxas"]);
    let both = SOURCE.replace("*p = part", "int unused; *p = part");
    follow("lines-told", &both, &line, &["cicc"], &[]);
}

#[test]
fn a_failing_host_compile_names_the_line_of_this_text() {
    for toolkit in Toolkit::chosen() {
        let space = TestSpace::with_toolkit("lines-error", small(toolkit));
        let line = format!("{ONE} -DMORE=0 -Xcompiler=-Wall");
        space.write("case.cu", SOURCE);
        space.build(&line);
        let unused = SOURCE.replace("return next(2)", "return (*p > many)");
        for text in moved(&unused) {
            space.write("case.cu", &text);
            let built = space.agree(&format!("{line} -Xcompiler=-Werror"));
            assert_ne!(built.outcome.code, 0);
        }
    }
}

#[test]
fn a_raw_string_keeps_its_lines() {
    let space = TestSpace::new("lines-raw");
    let line = format!("{ONE} -DMORE=0");
    let source = SOURCE.replace("\"words\"", "R\"(words\n\n# 1 \"x\"\n)\"");
    space.write("case.cu", &source);
    space.build(&line);
    for (from, to) in [
        ("words\n\n", "words\n"),
        ("# 1", "# 2"),
        ("words\n", "words \n"),
    ] {
        space.write("case.cu", &source.replace(from, to));
        let built = space.agree(&line);
        assert_ne!(built.stats.missed("cicc"), 0, "{:?}", built.stats);
    }
}

#[test]
fn intermediate_files_that_are_kept_have_their_own_lines() {
    let space = TestSpace::new("lines-kept");
    let line = format!("{ONE} -DMORE=0");
    space.write("case.cu", SOURCE);
    space.build(&line);
    let kept = format!("{line} -keep");
    for text in moved(SOURCE) {
        space.write("case.cu", &text);
        let before = Snapshot::take(&space.work());
        let nvcc = space.run(&Program::Nvcc, &space.words(&kept));
        assert_eq!(nvcc.code, 0, "{}", nvcc.stderr_text());
        let wanted = Snapshot::take(&space.work()).since(&before);
        wanted.delete_from(&space.work());
        let got = space.build(&kept).outputs;
        let found = differences(&wanted, &got, Exactness::Bytes, &space.beside("compare"));
        assert!(found.is_empty(), "{}", found.join("\n"));
        got.delete_from(&space.work());
    }
}

#[test]
fn packed_code_changes_with_lines() {
    for packed in [
        "-c case.cu -o out.o -rdc=true -arch=sm_90 -dlto",
        "-c case.cu -o out.o -rdc=true -gencode arch=compute_90,code=lto_90",
        "-optix-ir case.cu -o out.optixir -arch=sm_90",
    ] {
        for toolkit in Toolkit::chosen() {
            let space = TestSpace::with_toolkit("lines-packed", small(toolkit));
            let line = format!("{packed} -DMORE=0");
            space.write("case.cu", SOURCE);
            space.build(&line);
            for text in &moved(SOURCE)[..2] {
                space.write("case.cu", text);
                space.agree(&line);
            }
        }
    }
}

#[test]
fn host_code_that_the_user_gets_has_its_own_lines() {
    let space = TestSpace::new("lines-cuda");
    let line = "-cuda case.cu -o out.ii -arch=sm_90 -DMORE=0";
    space.write("case.cu", SOURCE);
    space.build(line);
    for text in moved(SOURCE) {
        // nvcc's text names the folder of its intermediate files, so it is compared with a build from an empty cache.
        space.write("case.cu", &text);
        space.build(line);
        let warm = space.read("out.ii");
        let kept = space.beside("kept");
        std::fs::rename(space.cache(), &kept).expect("the cache is a folder");
        space.build(line);
        assert!(space.read("out.ii") == warm, "{text}");
        std::fs::remove_dir_all(space.cache()).expect("the cache is a folder");
        std::fs::rename(&kept, space.cache()).expect("it was there");
    }
}

#[test]
fn clang_under_the_name_of_gcc_writes_lines_down() {
    // The type of a closure has its line in its name.
    let source = "template<class T> const char *name(T) { return __PRETTY_FUNCTION__; }\n\
                  const char *host() { return name([](int a) { return a; }); }\n\
                  __global__ void store(int *p) { *p = 1; }\n";
    let space = TestSpace::new("lines-clang");
    space.write("bin/.keep", "");
    space.link("bin/g++", "/usr/bin/clang++-19");
    // With an option of assembly the host compile is one step.
    let line = "-c case.cu -o out.o -arch=sm_90 -ccbin bin/g++ -Xcompiler -w,-masm=att";
    space.write("case.cu", source);
    space.build(line);
    for blank in ["\n", "\n\n\n"] {
        space.write("case.cu", &format!("{blank}{source}"));
        space.agree(line);
    }
}

#[test]
fn an_assembler_that_fails_names_the_line_of_this_text() {
    for toolkit in Toolkit::chosen() {
        let space = TestSpace::with_toolkit("lines-assembler", small(toolkit));
        let bytes = space.work().join("bytes").display().to_string();
        let source = format!("{SOURCE}void in() {{ asm(\".incbin \\\"{bytes}\\\"\"); }}\n");
        let line = format!("{ONE} -DMORE=0");
        space.write("bytes", "12345678");
        space.write("case.cu", &source);
        space.build(&line);
        space.remove("bytes");
        for text in &moved(&source)[..2] {
            space.write("case.cu", text);
            assert_ne!(space.agree(&line).outcome.code, 0);
        }
    }
}
