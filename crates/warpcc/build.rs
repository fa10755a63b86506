//! Tells the program what it was built by and for.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let set_variable = |name: &str, value: &str| println!("cargo:rustc-env=BUILT_{name}={value}");
    set_variable("FOR", &env::var("TARGET").unwrap_or_default());
    set_variable("AS", &env::var("PROFILE").unwrap_or_default());
    set_variable("BY", &compiler());
}

/// `rustc 1.95.0 (59807616e 2026-04-14)`.
fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output();
    let line = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    line.unwrap_or_else(|_| "rustc".to_owned())
}
