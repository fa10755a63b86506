//! Says where the program is loaded, and tells it what it was built by and for.
//!
//! A direct hit is over in a few milliseconds, and moving a position-independent program of this size to where it was
//! loaded takes the kernel and the loader more than one of them. It is linked to a fixed address, unless `WARPCC_PIE` is set.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=WARPCC_PIE");
    let part = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let may_be_fixed = part("OS") == "linux" && part("ENV") == "gnu";
    let fixed = may_be_fixed && env::var_os("WARPCC_PIE").is_none();
    if fixed {
        // The driver of the system's compiler knows the flag; it comes behind rustc's own `-pie`, so it counts.
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    let loaded_at = match fixed {
        true => "a fixed address",
        false => "any address",
    };
    let set_variable = |name: &str, value: &str| println!("cargo:rustc-env=BUILT_{name}={value}");
    set_variable("TO_LOAD_AT", loaded_at);
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
