//! Links the program to a fixed address where that saves time: a direct hit is over in a few milliseconds, and moving a
//! position-independent program of this size to where it was loaded takes the kernel and the loader more than one of them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    // The driver of the system's compiler knows the flag; it comes behind rustc's own `-pie`, so it counts.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
