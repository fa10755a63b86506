//! Changes to the text that a pass reads: headers of every pass, of one pass, links,
//! replaced files, and files that the preprocessor never sees.

use crate::space::TestSpace;
use crate::{KERNEL, ONE, TWO, rebuilt, warm};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use std::time::Duration;

fn with_header(name: &str, source: &str, header: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", source);
    space.write("a.h", header);
    space
}

fn including() -> String {
    format!("#include \"a.h\"\n{KERNEL}")
}

#[test]
fn source_changes() {
    let space = with_header("source", &including(), "#define VALUE 1\n");
    warm(&space, TWO);
    space.write(
        "case.cu",
        &format!("{}// more\nint more() {{ return 1; }}\n", including()),
    );
    rebuilt(&space, TWO);
}

#[test]
fn header_of_every_pass_changes() {
    let space = with_header("header", &including(), "#define VALUE 1\n");
    warm(&space, TWO);
    space.write("a.h", "#define VALUE 2\n");
    rebuilt(&space, TWO);
    // Back to what was there before: the first result is still right.
    space.write("a.h", "#define VALUE 1\n");
    space.agree(TWO);
}

#[test]
fn header_that_only_one_architecture_includes() {
    let source = "#if __CUDA_ARCH__ >= 900\n#include \"a.h\"\n#else\n#define VALUE 0\n#endif\n";
    let space = with_header(
        "header-one-arch",
        &format!("{source}{KERNEL}"),
        "#define VALUE 1\n",
    );
    warm(&space, TWO);
    space.write("a.h", "#define VALUE 2\n");
    rebuilt(&space, TWO);
    // The other order: nvcc -E shows one pass only, and which one depends on it.
    let other = "-c case.cu -o out.o -gencode arch=compute_90,code=sm_90 \
                 -gencode arch=compute_80,code=sm_80";
    space.agree(other);
    space.write("a.h", "#define VALUE 3\n");
    space.agree(other).demand_no_direct_hit();
}

#[test]
fn header_that_only_the_host_includes() {
    let source = "#ifndef __CUDA_ARCH__\n#include \"a.h\"\n#else\n#define VALUE 0\n#endif\n";
    let space = with_header(
        "header-host",
        &format!("{source}{KERNEL}"),
        "#define VALUE 1\n",
    );
    warm(&space, ONE);
    space.write("a.h", "#define VALUE 2\n");
    space
        .agree(ONE)
        .demand_no_direct_hit()
        .demand_hits_of(&["cicc", "ptxas"]);
}

#[test]
fn text_of_the_host_pass_changes() {
    let text =
        |n: u32| format!("#ifndef __CUDA_ARCH__\nint only_host() {{ return {n}; }}\n#endif\n");
    let space = with_header("text-host", &including(), "#define VALUE 1\n");
    space.write("case.cu", &(including() + &text(1)));
    warm(&space, ONE);
    space.write("case.cu", &(including() + &text(2)));
    rebuilt(&space, ONE);
}

#[test]
fn text_of_one_architecture_changes() {
    let text = |n: u32| {
        format!(
            "#if __CUDA_ARCH__ >= 900\n#define VALUE {n}\n#else\n#define VALUE 0\n#endif\n{KERNEL}"
        )
    };
    let space = with_header("text-one-arch", &text(1), "");
    warm(&space, TWO);
    space.write("case.cu", &text(2));
    rebuilt(&space, TWO);
}

#[test]
fn symlink_to_a_header_is_retargeted() {
    let space = with_header("symlink", &including(), "");
    space.write("one.h", "#define VALUE 1\n");
    space.write("two.h", "#define VALUE 2\n");
    space.link("a.h", "one.h");
    warm(&space, ONE);
    space.link("a.h", "two.h");
    rebuilt(&space, ONE);
}

#[test]
fn symlink_to_a_folder_is_retargeted() {
    let space = with_header("symlink-dir", &format!("#include <b.h>\n{KERNEL}"), "");
    space.write("one/b.h", "#define VALUE 1\n");
    space.write("two/b.h", "#define VALUE 2\n");
    space.link("inc", "one");
    let line = &format!("{ONE} -I inc");
    warm(&space, line);
    space.link("inc", "two");
    rebuilt(&space, line);
    // And the source itself behind a link.
    space.write(
        "other.cu",
        "#define VALUE 5\n__global__ void other(int *x) { *x = VALUE; }\n",
    );
    space.link("linked.cu", "case.cu");
    let line = "-c linked.cu -o linked.o -arch=sm_90 -I inc";
    warm(&space, line);
    space.link("linked.cu", "other.cu");
    rebuilt(&space, line);
}

#[test]
fn file_rewritten_with_the_same_size_and_time() {
    let space = with_header("same-stat", &including(), "#define VALUE 1\n");
    space.set_old("a.h");
    warm(&space, ONE);
    space.write("a.h", "#define VALUE 2\n");
    space.set_old("a.h");
    rebuilt(&space, ONE);
}

#[test]
fn file_replaced_by_one_of_the_same_size_and_time() {
    let space = with_header("same-stat-renamed", &including(), "#define VALUE 1\n");
    space.set_old("a.h");
    // Written before the build, so that its ctime is no newer than the record.
    space.write("b.h", "#define VALUE 2\n");
    space.set_old("b.h");
    warm(&space, ONE);
    std::fs::rename(space.work().join("b.h"), space.work().join("a.h")).expect("rename");
    rebuilt(&space, ONE);
}

#[test]
fn header_changed_right_after_the_build() {
    // Within the same tick of a coarse file system clock.
    let space = with_header("quick-edit", &including(), "#define VALUE 1\n");
    for value in 2..6 {
        space.run(&crate::space::Program::Launcher, &space.words(ONE));
        space.write("a.h", &format!("#define VALUE {value}\n"));
        space.agree(ONE);
    }
}

#[test]
fn header_edited_during_the_compile() {
    for (round, delay) in [15, 60, 120, 240].into_iter().enumerate() {
        let name = format!("edit-during-{delay}");
        let space = with_header(&name, &including(), "#define VALUE 100\n");
        let args = space.words(ONE);
        let mut child = space
            .command(&crate::space::Program::Launcher, &args)
            .spawn()
            .expect("starting warpcc");
        std::thread::sleep(Duration::from_millis(delay));
        space.write("a.h", &format!("#define VALUE {}\n", 101 + round));
        child.wait().expect("waiting for warpcc");
        // Whatever that gave, the settled header's result must be nvcc's.
        space.agree(ONE);
        space.write("a.h", "#define VALUE 100\n");
        space.agree(ONE);
    }
}

#[test]
fn header_edited_between_two_passes() {
    let space = with_header("edit-between", &including(), "#define VALUE 1\n");
    // A host compiler that edits the header after its first preprocessing, when told to.
    space.script(
        "bin/g++",
        "#!/bin/sh\n/usr/bin/g++ \"$@\"\ncode=$?\n\
         case \" $* \" in *\" -E \"*\"case.cu\"*) ;; *) exit $code ;; esac\n\
         if mv \"${0%/*}/edit\" \"${0%/*}/edited\" 2>/dev/null; then\n\
         echo '#define VALUE 2' >\"${0%/*}/../a.h\"\nfi\nexit $code\n",
    );
    space.write("bin/edit", "");
    let line = &format!("{TWO} -ccbin bin/g++");
    space.run(&crate::space::Program::Launcher, &space.words(line));
    assert!(space.exists("bin/edited"), "the header was never edited");
    space.agree(line).demand_no_direct_hit();
    space.write("a.h", "#define VALUE 1\n");
    space.agree(line);
}

#[test]
fn file_that_only_the_assembler_reads() {
    let source = "__global__ void k(int *x) { *x = 1; }\n\
                  asm(\".section .rodata\\n.globl data\\ndata: .incbin \\\"data.bin\\\"\\n.text\");\n";
    let space = with_header("incbin", source, "");
    space.write("data.bin", "first");
    // Whether it may hit at all is warpcc's business; it must never be stale.
    space.agree(ONE);
    space.agree(ONE);
    space.write("data.bin", "other");
    space.agree(ONE).demand_no_direct_hit();
}

#[test]
fn incbin_in_a_header_and_found_by_include_path() {
    let header = "#define IN(x) \".inc\" x\n\
                  asm(\".section .rodata\\n\" IN(\"bin\") \" \\\"data.bin\\\"\\n.text\");\n";
    let space = with_header(
        "incbin-header",
        &format!("#define VALUE 1\n{}", including()),
        header,
    );
    space.write("inc/data.bin", "first");
    let line = &format!("{ONE} -I inc");
    space.agree(line);
    space.write("inc/data.bin", "other");
    space.agree(line).demand_no_direct_hit();
}

/// gcc has `#embed` from release 15 on; clang has it since 19.
#[test]
fn embedded_file_that_changes_or_appears() {
    let source = "#ifndef __CUDA_ARCH__\n\
        static const unsigned char data[] = {\n\
        #if __has_embed(\"new.bin\")\n#embed \"new.bin\"\n\
        #else\n#embed \"data.bin\"\n#endif\n};\n\
        int first() { return data[0]; }\n#endif\n\
        __global__ void k(int *x) { *x = 1; }\n";
    let space = with_header("embed", source, "");
    space.write("data.bin", "first");
    let line = &format!("{ONE} -ccbin clang++-19 -Xcompiler -Wno-c23-extensions");
    rebuilt(&space, line);
    space.write("data.bin", "other");
    rebuilt(&space, line);
    space.write("new.bin", "newer");
    space.agree(line).demand_no_direct_hit();
    space.remove("new.bin");
    space.agree(line).demand_direct_hit();
}

#[test]
fn date_macros_never_hit_directly() {
    let source = format!("#define VALUE 1\n{KERNEL}const char *built() {{ return __TIME__; }}\n");
    let mut space = with_header("date", &source, "");
    space.set_env("SOURCE_DATE_EPOCH", "1000");
    space.agree(ONE);
    space.set_env("SOURCE_DATE_EPOCH", "90000");
    space.agree(ONE).demand_no_direct_hit();
    space.unset_env("SOURCE_DATE_EPOCH");
    let build = || {
        space.run(&crate::space::Program::Launcher, &space.words(ONE));
        space.read("out.o")
    };
    let first = build();
    std::thread::sleep(Duration::from_millis(1100));
    assert_ne!(first, build(), "the time of an earlier build");
}

#[test]
fn date_macro_in_a_header_of_one_pass() {
    // Only one device pass says the date, so one pass alone does not show it.
    let source = "#if __CUDA_ARCH__ >= 900\n#include \"a.h\"\n#endif\n\
                  __global__ void k(char *x) {\n\
                  #if __CUDA_ARCH__ >= 900\n  *x = stamp(*x);\n#endif\n}\n";
    let header = "__device__ inline char stamp(int at) {\n\
                  static const char t[] = __TIMESTAMP__ __DATE__ __TIME__;\n\
                  return t[at & 31];\n}\n";
    let mut space = with_header("date-one-arch", source, header);
    space.set_env("SOURCE_DATE_EPOCH", "1000");
    space.agree(TWO);
    space.set_env("SOURCE_DATE_EPOCH", "90000");
    space.agree(TWO).demand_no_direct_hit();
    // __TIMESTAMP__ is the file's own time: a touch changes the output.
    space.set_old("a.h");
    space.agree(TWO).demand_no_direct_hit();
}

/// As a container hides a file: the device itself has the name.
#[test]
fn an_empty_device_becomes_a_header() {
    let source = format!("#include \"a.h\"\n#ifndef VALUE\n#define VALUE 1\n#endif\n{KERNEL}");
    let space = with_header("device", &source, "");
    space.remove("a.h");
    let header = space.work().join("a.h");
    let (kind, null) = (FileType::CharacterDevice, makedev(1, 3));
    if mknodat(CWD, &header, kind, Mode::RUSR, null).is_err() {
        // Only root may.
        return;
    }
    warm(&space, ONE);
    space.remove("a.h");
    space.write("a.h", "#define VALUE 2\n");
    rebuilt(&space, ONE);
}

/// Most wrappers throw away what a command says.
#[test]
fn writing_to_dev_null_is_no_side_file() {
    let space = crate::simple("to-nothing");
    space.script(
        "host/g++",
        "#!/bin/sh\ncommand -v none 2>/dev/null\nexec g++ \"$@\"\n",
    );
    warm(&space, &format!("{ONE} -ccbin {{work}}/host/g++"));
}
