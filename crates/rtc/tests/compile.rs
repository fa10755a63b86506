//! Compiling with every NVRTC of PyPI: the output is what was asked for, and failures are reported.

mod space;

use std::path::Path;
use std::time::{Duration, Instant};

use space::{Nvrtc, open_compiler, request};
use warpcc_rtc::{
    CallLimits, Cancel, Compiler, Environment, Error, ErrorKind, PrecompiledHeaders, Text,
};

const SCALE: &str = "template<class T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }\n";

#[test]
fn every_nvrtc_makes_what_the_target_says() {
    for nvrtc in Nvrtc::all() {
        let compiler = open_compiler(&nvrtc);
        assert_eq!(compiler.version().to_string(), nvrtc.version);
        assert_eq!(compiler.library().parent().expect("a folder"), nvrtc.folder);
        for target in ["sm_80", "sm_90a", "compute_80", "lto_90"] {
            let mut one = request("scale", SCALE, target);
            one.name_expressions = vec!["scale<float>".into(), "scale<double>".into()];
            let made = compiler
                .compile(&one, &CallLimits::default())
                .expect(target);
            assert_eq!(
                made.lowered_name("scale<float>"),
                Some("_Z5scaleIfEvPT_S0_")
            );
            assert_eq!(
                made.lowered_name("scale<double>"),
                Some("_Z5scaleIdEvPT_S0_")
            );
            let text = String::from_utf8_lossy(&made.image);
            match target {
                "compute_80" => {
                    assert!(
                        text.contains(".target sm_80") && text.ends_with("}\n\n"),
                        "{text}"
                    );
                }
                "lto_90" => assert!(!made.image.starts_with(b"\x7fELF")),
                _ => assert!(made.image.starts_with(b"\x7fELF")),
            }
        }
    }
}

#[test]
fn the_best_target_for_a_gpu_compiles() {
    for nvrtc in Nvrtc::all() {
        let compiler = open_compiler(&nvrtc);
        for device in [75, 90, 121, 999] {
            let target = compiler.target_for(device).expect("a target");
            let one = warpcc_rtc::CompileRequest::new("k", "__global__ void k() {}", target);
            compiler
                .compile(&one, &CallLimits::default())
                .expect("compiles");
        }
        let error = compiler.target_for(35).expect_err("too old");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn headers_as_text_and_in_folders_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("in side")).expect("a folder");
    std::fs::write(folder.path().join("in side/a.h"), "#include \"b.h\"\n").expect("written");
    std::fs::write(folder.path().join("in side/b.h"), "#define B 2\n").expect("written");
    for nvrtc in Nvrtc::all() {
        let source = "#include <t.h>\n#include \"in side/a.h\"\n\
                      __global__ void k(int* x) { *x = T + B; }\n";
        let mut one = request("k", source, "compute_80");
        one.headers = vec![Text::new("t.h", "#define T 40\n")];
        one.include_folders = vec![folder.path().to_path_buf()];
        let made = open_compiler(&nvrtc)
            .compile(&one, &CallLimits::default())
            .expect("compiles");
        assert!(String::from_utf8_lossy(&made.image).contains("42"));
    }
}

#[test]
fn a_failure_says_where_in_the_users_text() {
    for nvrtc in Nvrtc::all() {
        let mut one = request(
            "bad kernel<int>",
            "\n\n__global__ void k() { oops; }\n",
            "sm_80",
        );
        one.preamble = vec![Text::new("parameters", "#define N 4\n#define M 5")];
        one.options = vec!["-DQ=1".into()];
        let error = open_compiler(&nvrtc)
            .compile(&one, &CallLimits::default())
            .expect_err("fails");
        let Error::Compile(failure) = &error else {
            panic!("{error}")
        };
        let place = failure.place.as_ref().expect("a place");
        assert_eq!((place.text.as_str(), place.line), ("bad kernel<int>", 3));
        assert_eq!(
            place.shown.as_deref(),
            Some("__global__ void k() { oops; }")
        );
        let said = error.to_string();
        for part in ["bad kernel<int>", "oops", "-DQ=1", "sm_80", nvrtc.version] {
            assert!(said.contains(part), "{part} in {said}");
        }
        // And in another of the texts.
        one.preamble = vec![Text::new("parameters", "#define N 1\nstruct A { oops2 };")];
        let error = open_compiler(&nvrtc)
            .compile(&one, &CallLimits::default())
            .expect_err("fails");
        let Error::Compile(failure) = &error else {
            panic!("{error}")
        };
        let place = failure.place.as_ref().expect("a place");
        assert_eq!(
            (place.text.as_str(), place.line),
            ("parameters", 2),
            "{error}"
        );
    }
}

#[test]
fn texts_with_a_nul_are_refused_by_name() {
    let compiler = open_compiler(&Nvrtc::newest());
    let refused = |change: &dyn Fn(&mut warpcc_rtc::CompileRequest), words: &str| {
        let mut one = request("k", "__global__ void k() {}", "compute_80");
        change(&mut one);
        let error = compiler.compile(&one, &CallLimits::default());
        let error = error.expect_err(words);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        let told = error.to_string();
        assert!(
            told.contains(words) && told.contains("NUL at byte 1"),
            "{told}"
        );
    };
    refused(&|one| one.name = "k\0".into(), "name");
    refused(&|one| one.source = "a\0b".into(), "source");
    refused(
        &|one| one.preamble = vec![Text::new("common.h", "a\0")],
        "common.h",
    );
    refused(&|one| one.headers = vec![Text::new("h.h", "a\0")], "h.h");
    refused(&|one| one.options = vec!["-\0".into()], "option");
    refused(&|one| one.name_expressions = vec!["k\0".into()], "name");
}

#[test]
fn nothing_beside_the_program_is_found_by_chance() {
    // The crate's folder is the working directory of its tests, and has this file.
    for source in [
        "#include \"Cargo.toml\"\n",
        "#include \"tests/compile.rs\"\n",
    ] {
        for nvrtc in Nvrtc::all() {
            let error = open_compiler(&nvrtc)
                .compile(&request("k", source, "sm_80"), &CallLimits::default())
                .expect_err("not found");
            assert!(error.to_string().contains("open source file"), "{error}");
        }
    }
}

/// Minutes of work for the compiler.
fn long_program() -> String {
    let mut body = String::new();
    for index in 0..4000 {
        body.push_str(&format!(
            "x[{index}] = sinf(x[{index}]) * tanf(x[{index} + 1]);\n"
        ));
    }
    format!("extern \"C\" __global__ void k(float* x) {{\n{body}}}\n")
}

#[test]
fn a_compilation_is_cancelled_or_runs_out_of_time() {
    let compiler = open_compiler(&Nvrtc::newest());
    assert!(compiler.can_be_stopped());
    let one = request("long", &long_program(), "sm_90");
    let cancel = Cancel::new();
    let limits = CallLimits {
        cancel: Some(cancel.clone()),
        ..CallLimits::default()
    };
    let error = std::thread::scope(|scope| {
        let compiling = scope.spawn(|| compiler.compile(&one, &limits));
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel();
        compiling.join().expect("no panic").expect_err("cancelled")
    });
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    let deadline = Some(Instant::now() + Duration::from_millis(100));
    let limits = CallLimits {
        deadline,
        ..CallLimits::default()
    };
    let error = compiler.compile(&one, &limits).expect_err("out of time");
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    // Cancelled before it began, also where a compilation cannot be stopped.
    let oldest = open_compiler(&Nvrtc::all().pop().expect("one"));
    assert!(!oldest.can_be_stopped());
    let limits = CallLimits {
        cancel: Some(cancel),
        ..CallLimits::default()
    };
    let small = request("k", "__global__ void k() {}", "sm_80");
    assert_eq!(
        oldest
            .compile(&small, &limits)
            .expect_err("cancelled")
            .kind(),
        ErrorKind::Cancelled
    );
}

#[test]
fn precompiled_headers_are_never_old_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    for nvrtc in Nvrtc::all() {
        let compiler = open_compiler(&nvrtc);
        let source = "#define S 1\n#include \"t.h\"\n#include <f.h>\n\
                      __global__ void k(int* x) { *x = P + S + T + F; }\n";
        // Each in turn is another one, and then all are as they were.
        for (p, s, t, f) in [
            (1, 1, 1, 1),
            (2, 1, 1, 1),
            (1, 2, 1, 1),
            (1, 1, 2, 1),
            (1, 1, 1, 2),
            (1, 1, 1, 1),
        ] {
            let source = source.replace("S 1", &format!("S {s}000"));
            let mut one = request("k", &source, "compute_80");
            one.preamble = vec![Text::new("p", format!("#define P {p}\n"))];
            one.headers = vec![Text::new("t.h", format!("#define T {t}0\n"))];
            std::fs::write(folder.path().join("f.h"), format!("#define F {f}00\n"))
                .expect("written");
            one.include_folders = vec![folder.path().to_path_buf()];
            one.precompiled_headers = PrecompiledHeaders::Automatic;
            let made = compiler
                .compile(&one, &CallLimits::default())
                .expect("compiles");
            let sum = (p + 10 * t + 100 * f + 1000 * s).to_string();
            let text = String::from_utf8_lossy(&made.image).into_owned();
            assert!(
                text.contains(&sum),
                "NVRTC {}: {sum} is not in {text}",
                nvrtc.version
            );
        }
    }
}

#[test]
fn a_missing_library_says_what_was_tried() {
    let error = Compiler::open(Path::new("/nowhere/libnvrtc.so.13")).expect_err("missing");
    assert_eq!(error.kind(), ErrorKind::Library);
    assert!(
        error.to_string().contains("/nowhere/libnvrtc.so.13"),
        "{error}"
    );
    let empty = tempfile::tempdir().expect("a folder");
    let environment = Environment::from_variables([("WARPCC_NVRTC", empty.path())]);
    let error = Compiler::find_with(None, &environment)
        .expect_err("missing")
        .to_string();
    assert!(
        error.contains("WARPCC_NVRTC") && error.contains("pip install"),
        "{error}"
    );
    // A file that has the name but is no library.
    let fake = empty.path().join("libnvrtc.so.13");
    std::fs::write(&fake, "not a library").expect("written");
    let error = Compiler::open(empty.path())
        .expect_err("no library")
        .to_string();
    assert!(
        error.contains("invalid ELF header") || error.contains("file too short"),
        "{error}"
    );
}

#[test]
fn a_toolkit_is_found_by_the_environment() {
    let nvrtc = Nvrtc::newest();
    let root = nvrtc.folder.parent().expect("a toolkit");
    let environment = Environment::from_variables([("CUDA_HOME", root)]);
    let compiler = Compiler::find_with(None, &environment).expect("found");
    assert!(compiler.version().major >= 12);
    // As pip lays it out in an environment of Python's.
    let folder = tempfile::tempdir().expect("a folder");
    let wheels = folder.path().join("lib/python3.12/site-packages/nvidia");
    std::fs::create_dir_all(&wheels).expect("folders");
    std::os::unix::fs::symlink(root, wheels.join("cu13")).expect("a link");
    let environment = Environment::from_variables([("VIRTUAL_ENV", folder.path())]);
    assert!(Compiler::find_with(None, &environment).is_ok());
}
