//! Linking with every nvJitLink of PyPI, and PTX to cubin as the driver would.

mod space;

use space::{Nvrtc, open_compiler, request};
use warpcc_rtc::{
    CallLimits, Environment, Error, LinkRequest, Linker, Piece, PieceKind, RealArch, Target,
};

const CALLER: &str = "extern \"C\" __device__ int twice(int);\n\
                      extern \"C\" __global__ void k(int* x) { *x = twice(*x); }\n";
const CALLEE: &str = "extern \"C\" __device__ int twice(int x) { return 2 * x; }\n";

fn linker(nvrtc: &Nvrtc) -> Linker {
    // 12.0 has a wheel for each library.
    let folder = match nvrtc.version {
        "12.0" => nvrtc.folder.join("../../nvjitlink/lib"),
        _ => nvrtc.folder.clone(),
    };
    Linker::find_with(None, Some(&folder), &Environment::default()).expect("nvJitLink")
}

fn piece(nvrtc: &Nvrtc, name: &str, source: &str, target: &str) -> Piece {
    let mut one = request(name, source, target);
    one.options = vec!["-rdc=true".into()];
    let made = open_compiler(nvrtc)
        .compile(&one, &CallLimits::default())
        .expect("compiles");
    let kind = match made.target {
        Target::Cubin(_) => PieceKind::Cubin,
        Target::Ptx(_) => PieceKind::Ptx,
        Target::LtoIr(_) => PieceKind::LtoIr,
    };
    Piece {
        name: name.into(),
        kind,
        bytes: made.image,
    }
}

#[test]
fn pieces_of_every_kind_link_together() {
    for nvrtc in Nvrtc::all() {
        let linker = linker(&nvrtc);
        assert_eq!(linker.version().to_string(), nvrtc.version);
        for target in ["sm_80", "compute_80", "lto_80"] {
            let pieces = vec![
                piece(&nvrtc, "caller", CALLER, target),
                piece(&nvrtc, "callee", CALLEE, target),
            ];
            let request = LinkRequest {
                name: "both".into(),
                pieces,
                target: RealArch::new(80),
                options: Vec::new(),
            };
            let linked = linker
                .link(&request)
                .unwrap_or_else(|error| panic!("{target}: {error}"));
            assert!(linked.image.starts_with(b"\x7fELF"));
        }
    }
}

#[test]
fn link_errors_are_reported() {
    for nvrtc in Nvrtc::all() {
        let linker = linker(&nvrtc);
        let request = LinkRequest {
            name: "half".into(),
            pieces: vec![piece(&nvrtc, "caller", CALLER, "sm_80")],
            target: RealArch::new(80),
            options: Vec::new(),
        };
        let error = linker.link(&request).expect_err("undefined");
        let Error::Link { log, .. } = &error else {
            panic!("{error}")
        };
        // 12.0 writes what is wrong to the program's standard error, and only a number into its log.
        assert!(log.contains("twice") || nvrtc.version == "12.0", "{error}");
        let no_ptx = LinkRequest::of_ptx("bad", *b"not PTX", RealArch::new(80));
        let error = linker.link(&no_ptx).expect_err("no PTX").to_string();
        assert!(
            error.contains("bad") && error.contains(".version"),
            "{error}"
        );
        if nvrtc.version != "12.0" {
            let text = ".version 8.0\n.target sm_80\n.address_size 64\nzap;\n";
            let bad = LinkRequest::of_ptx("bad", text.as_bytes(), RealArch::new(80));
            let error = linker.link(&bad).expect_err("bad PTX").to_string();
            assert!(error.contains("bad") && error.contains("zap"), "{error}");
        }
        let mut option = request.clone();
        option.options = vec!["-no-such-option".into()];
        let error = linker.link(&option).expect_err("refused").to_string();
        assert!(error.contains("-no-such-option"), "{error}");
    }
}

#[test]
fn ptx_becomes_a_cubin_with_its_kernels() {
    for nvrtc in Nvrtc::all() {
        let one = request(
            "k",
            "extern \"C\" __global__ void k(int* x) { *x = 1; }",
            "compute_80",
        );
        let made = open_compiler(&nvrtc)
            .compile(&one, &CallLimits::default())
            .expect("compiles");
        let request = LinkRequest::of_ptx("k", made.image, RealArch::new(90));
        let linked = linker(&nvrtc).link(&request).expect("compiles");
        assert!(linked.image.windows(8).any(|bytes| bytes == b".text.k\0"));
    }
}
