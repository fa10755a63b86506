//! Gives the shared library the name by which programs ask for it: it has the number of the interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // As WARPCC_RTC_ABI in src/version.rs, which a test compares.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwarpcc_rtc_c.so.1");
}
