//! Builds the preloaded libraries with the compiler that builds the crate, so that they can be embedded.
//!
//! Cargo cannot build one crate as a dependency of another and hand over its bytes on stable, and the
//! library must be free of std (it runs inside gcc and ptxas), hence a plain `rustc` call.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // The files and not their folder, whose time is new in each clone. A file that is added is named by one of them.
    for file in std::fs::read_dir("preload").expect("the library's sources") {
        let file = file.expect("a source").path();
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library = out.join("libwarpcc_watch.so");
    let folder = out.join("libwarpcc_folder.so");
    let cfg = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let supported = cfg("OS") == "linux"
        && cfg("ENV") == "gnu"
        && matches!(cfg("ARCH").as_str(), "x86_64" | "aarch64");
    if !supported {
        for library in [library, folder] {
            std::fs::write(library, b"").expect("OUT_DIR is writable");
        }
        return;
    }
    compile(
        Path::new("preload/preload.rs"),
        &library,
        &["-Wl,-z,now".into()],
    );
    compile(
        Path::new("preload/folder.rs"),
        &folder,
        &["-Wl,-z,now".into()],
    );
}

fn compile(source: &Path, output: &Path, link_arguments: &[OsString]) {
    let mut command = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"));
    command.args([
        "--crate-name",
        "warpcc_watch_preload",
        "--crate-type",
        "cdylib",
        "--edition",
        "2024",
    ]);
    command.args([
        "-C",
        "panic=abort",
        "-C",
        "opt-level=2",
        "-C",
        "strip=symbols",
        "-C",
        "codegen-units=1",
    ]);
    command.args(["-C", "link-arg=-nostartfiles", "--target"]);
    command.arg(env::var_os("TARGET").expect("cargo sets TARGET"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        command.arg("-C").arg(option);
    }
    for argument in link_arguments {
        let mut option = OsString::from("link-arg=");
        option.push(argument);
        command.arg("-C").arg(option);
    }
    let status = command
        .arg("-o")
        .arg(output)
        .arg(source)
        .status()
        .expect("RUSTC can be run");
    assert!(
        status.success(),
        "building {} failed: {status}",
        source.display()
    );
}
