//! The same source in another folder or under another name: it hits where nvcc would make the same, and nowhere else.

use std::thread;

use crate::space::{Program, TestSpace};
use crate::{KERNEL, rebuilt};

/// Device code alone, of one folder's source under one name.
fn device(kind: &str, folder: &str, name: &str) -> String {
    format!(
        "-{kind} -arch=sm_80 -DVALUE=3 {{work}}/{folder}/{name}.cu -o {{work}}/{folder}/{name}.{kind}"
    )
}

fn generated(name: &str, source: &str) -> TestSpace {
    let space = TestSpace::new(name);
    for file in ["4f1c/kernel.cu", "b07e22/other.cu", "c9/kernel.cu"] {
        space.write(file, source);
    }
    space
}

#[test]
fn a_kernel_in_another_folder_under_another_name_hits() {
    let space = generated("elsewhere-device", KERNEL);
    for kind in ["cubin", "ptx", "fatbin"] {
        space
            .build(&device(kind, "4f1c", "kernel"))
            .demand_no_direct_hit();
        for (folder, name) in [("b07e22", "other"), ("c9", "kernel")] {
            let line = device(kind, folder, name);
            space.agree(&line).demand_direct_hit();
        }
    }
    // Another text is another kernel, whatever its name.
    space.write("c9/kernel.cu", &format!("{KERNEL}__device__ int more;\n"));
    rebuilt(&space, &device("cubin", "c9", "kernel"));
}

#[test]
fn an_object_of_another_folder_hits() {
    let mut space = generated("elsewhere-object", KERNEL);
    let line = "-c -arch=sm_80 -DVALUE=3 kernel.cu -o kernel.o -MD -MF kernel.d";
    space.stand_in = "4f1c".into();
    space.build(line).demand_no_direct_hit();
    space.stand_in = "c9".into();
    space.agree(line).demand_direct_hit();
    space.stand_in = "".into();
    let absolute = "-c -arch=sm_80 -DVALUE=3 {work}/4f1c/kernel.cu -o {work}/4f1c/kernel.o -MD";
    space.build(absolute);
    space
        .agree(&absolute.replace("4f1c", "c9"))
        .demand_direct_hit();
}

/// A source whose result holds its path is compiled again in each folder, for each kind of result.
fn compiled_again_in_each_folder(name: &str, text: &str) {
    let source = format!("#include <cstdio>\n#include <cassert>\n{text}");
    let space = generated(&format!("elsewhere-{name}"), &source);
    let lines = ["cubin", "ptx", "fatbin"].map(|kind| device(kind, "4f1c", "kernel"));
    let object = "-c -arch=sm_80 {work}/4f1c/kernel.cu -o {work}/4f1c/kernel.o".to_owned();
    for line in lines.iter().chain([&object]) {
        space.build(line);
        let other = line.replace("4f1c", "b07e22").replace("kernel", "other");
        space.agree(&other).demand_no_direct_hit();
        let other = line.replace("4f1c", "c9");
        space.agree(&other).demand_no_direct_hit();
    }
}

/// A test for each source, so that several run at once.
macro_rules! telling {
    ($($name:ident: $text:expr;)*) => {
        mod sources_that_use_their_path_are_compiled_again {
            $(
                #[test]
                fn $name() {
                    super::compiled_again_in_each_folder(stringify!($name), $text);
                }
            )*
        }
    };
}

telling! {
    file: "__global__ void k() { printf(__FILE__); }\n";
    assertion: "__global__ void k(int x) { assert(x); }\n";
    builtin: "__global__ void k() { printf(__builtin_FILE()); }\n";
    default_argument: "__device__ const char *at(const char *f = __builtin_FILE()) { return f; }\n\
        __global__ void k() { printf(at()); }\n";
    hashed: "__host__ __device__ constexpr unsigned sum(const char *t) { return *t ? *t * 31u + 7u * sum(t + 1) : 5u; }\n\
        __global__ void k(unsigned *x) { constexpr unsigned s = sum(__FILE__); *x = s; }\n";
    hashed_builtin: "__host__ __device__ constexpr unsigned sum(const char *t) { return *t ? *t * 31u + 7u * sum(t + 1) : 5u; }\n\
        __global__ void k(unsigned *x) { constexpr unsigned s = sum(__builtin_FILE()); *x = s; }\n";
    unnamed: "namespace { __global__ void k(int *x) { *x = 3; } }\nvoid go() { k<<<1, 1>>>(0); }\n";
    pasted: "#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n#define AT __FILE__\n\
        __global__ void k() { printf(\"at \" AT); }\n";
}

#[test]
fn debug_information_tells_the_place() {
    let space = generated("elsewhere-debug", KERNEL);
    for (option, kind) in [("-lineinfo", "cubin"), ("-lineinfo", "ptx")] {
        for file in ["4f1c/kernel.cu", "b07e22/other.cu", "c9/kernel.cu"] {
            space.set_old(file);
        }
        let line = |folder, name| format!("{} {option}", device(kind, folder, name));
        space.build(&line("4f1c", "kernel"));
        for (folder, name) in [("b07e22", "other"), ("c9", "kernel")] {
            space.agree(&line(folder, name)).demand_no_direct_hit();
        }
    }
}

#[test]
fn headers_beside_the_source_count() {
    let source = format!("#include \"part.h\"\n{KERNEL}");
    let space = generated("elsewhere-headers", &source);
    let part = "static __device__ int part;\n";
    space.write("4f1c/part.h", part);
    space.write("b07e22/part.h", "static __device__ int part = 7;\n");
    space.write("c9/part.h", part);
    let line = |folder: &str, name: &str| {
        device("cubin", folder, name).replace("-DVALUE=3", "-DVALUE=part")
    };
    space.build(&line("4f1c", "kernel"));
    space.agree(&line("b07e22", "other")).demand_no_direct_hit();
    space.agree(&line("c9", "kernel")).demand_direct_hit();
    // One that nobody had there, found first.
    space.write(
        "c9/cuda_runtime.h",
        "#define VALUE2 3\n#include_next <cuda_runtime.h>\n",
    );
    space.agree(&format!("{} -I {{work}}/c9", line("c9", "kernel")));
    let headless =
        |folder: &str, name: &str| format!("{} -DMORE -I {{work}}/{folder}", line(folder, name));
    space.build(&headless("4f1c", "kernel"));
    space
        .agree(&headless("c9", "kernel"))
        .demand_no_direct_hit();
}

#[test]
fn messages_name_the_source_that_was_compiled() {
    let source = "__global__ void k(int *x) { int unused; *x = 3; }\n";
    let space = generated("elsewhere-messages", source);
    let first = space.build(&device("cubin", "4f1c", "kernel"));
    assert!(first.outcome.stderr_text().contains("4f1c/kernel.cu(1)"));
    // `agree` compares the messages with nvcc's.
    space.agree(&device("cubin", "c9", "kernel"));
    space.agree(&device("cubin", "b07e22", "other"));
}

#[test]
fn ranks_that_ask_at_once_compile_once() {
    let space = TestSpace::new("elsewhere-ranks");
    let ranks: Vec<String> = (0..6).map(|rank| format!("rank{rank}-7a{rank}")).collect();
    for rank in &ranks {
        space.write(&format!("{rank}/kernel.cu"), KERNEL);
    }
    thread::scope(|scope| {
        for rank in &ranks {
            let space = &space;
            scope.spawn(move || {
                let line = device("cubin", rank, "kernel");
                let outcome = space.run(&Program::Launcher, &space.words(&line));
                assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
            });
        }
    });
    let first = space.read(&format!("{}/kernel.cubin", ranks[0]));
    for rank in &ranks {
        assert_eq!(space.read(&format!("{rank}/kernel.cubin")), first);
    }
    let stats = space.stats();
    assert_eq!(stats.count("built"), 1, "{stats:?}");
    assert_eq!(stats.count("direct_hits"), 5, "{stats:?}");
}

/// A header of another folder, named as a whole path in each way that there is.
const WHOLE_PATHS: [(&str, &str, &str); 6] = [
    ("literal", "#include \"{work}/a/value.h\"\n", ""),
    ("header", "#include <leads.h>\n", "-I{work}/shared"),
    (
        "macro",
        "#include HEADER\n",
        "-DHEADER=\\\"{work}/a/value.h\\\"",
    ),
    (
        "pieces",
        "#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n#include TEXT(ROOT/a/value.h)\n",
        "-DROOT={work}",
    ),
    (
        "pieces-of-words",
        "#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n#include TEXT(ROOT/PART/value.h)\n",
        "-DROOT={work} -DPART=a",
    ),
    (
        "asked",
        "#if __has_include(\"{work}/a/more.h\")\n#define VALUE 2\n#else\n#define VALUE 1\n#endif\n",
        "",
    ),
];

#[test]
fn a_whole_path_leads_to_the_same_file_from_everywhere() {
    for (name, text, options) in WHOLE_PATHS {
        let space = TestSpace::new(&format!("elsewhere-whole-{name}"));
        let source = format!(
            "{}__global__ void k(int *x) {{ *x = VALUE; }}\n",
            space.fill(text)
        );
        for folder in ["a", "b"] {
            space.write(&format!("{folder}/kernel.cu"), &source);
            space.write(&format!("{folder}/value.h"), "#define VALUE 1\n");
        }
        let leads = space.fill("#include \"{work}/a/value.h\"\n");
        space.write("shared/leads.h", &leads);
        let line = |folder| {
            format!("{} {options}", device("cubin", folder, "kernel")).replace("-DVALUE=3", "")
        };
        space.build(&line("a"));
        space.write("a/value.h", "#define VALUE 2\n");
        space.write("a/more.h", "");
        space.agree(&line("b")).demand_no_direct_hit();
    }
}

#[test]
fn a_folder_that_is_reached_through_another_one_counts() {
    let space = TestSpace::new("elsewhere-nested");
    let source = "#include \"build/value.h\"\n__global__ void k(int *x) { *x = VALUE; }\n";
    for (folder, value) in [("a", 1), ("b", 2), ("c", 1)] {
        space.write(&format!("{folder}/kernel.cu"), source);
        let header = format!("#define VALUE {value}\n");
        space.write(&format!("{folder}/build/value.h"), &header);
    }
    space.write("other/value.h", "#define VALUE 1\n");
    let compile = |space: &mut TestSpace, folder: &str, from: &str| {
        space.stand_in = from.into();
        let line = format!("-cubin -arch=sm_80 {{work}}/{folder}/kernel.cu -o kernel.cubin");
        space.agree(&line)
    };
    let mut space = space;
    compile(&mut space, "a", "a/build");
    compile(&mut space, "b", "other").demand_no_direct_hit();
    compile(&mut space, "c", "c/build");
    // The other way round, by an option: the source's folder is inside that of the call.
    let source = "#include <value.h>\n__global__ void k(int *x) { *x = VALUE; }\n";
    for (folder, value) in [("p/in", 1), ("q/in", 2), ("r", 1)] {
        space.write(&format!("{folder}/kernel.cu"), source);
        let header = format!("#define VALUE {value}\n");
        space.write(&format!("{folder}/value.h"), &header);
    }
    let compile = |space: &mut TestSpace, source: &str, from: &str| {
        space.stand_in = from.into();
        let line = format!("-cubin -arch=sm_80 {{work}}/{source}/kernel.cu -Iin -o kernel.cubin");
        space.agree(&line)
    };
    compile(&mut space, "p/in", "p");
    compile(&mut space, "r", "q").demand_no_direct_hit();
}

#[test]
fn the_ending_says_what_a_file_is() {
    let space = TestSpace::new("elsewhere-ending");
    for ending in ["cu", "ptx", "cubin", "cpp"] {
        space.write(
            &format!("a/kernel.{ending}"),
            "__global__ void k(int *x) { *x = 3; }\n",
        );
    }
    for ending in ["cu", "ptx", "cubin", "cpp"] {
        let line =
            format!("-fatbin -arch=sm_80 {{work}}/a/kernel.{ending} -o {{work}}/a/out.{ending}");
        space.agree(&line).demand_no_direct_hit();
    }
}

#[test]
fn a_source_that_includes_itself_does_so_by_its_name() {
    let source = "#ifndef AGAIN\n#define AGAIN\n#include \"kernel.cu\"\n#else\n\
                  __global__ void k(int *x) { *x = 3; }\n#endif\n";
    let space = generated("elsewhere-itself", source);
    space.build(&device("cubin", "4f1c", "kernel"));
    let missing = space.agree(&device("cubin", "b07e22", "other"));
    assert_ne!(missing.outcome.code, 0);
    space
        .agree(&device("cubin", "c9", "kernel"))
        .demand_direct_hit();
}
