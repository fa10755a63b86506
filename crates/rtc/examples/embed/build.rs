//! Embeds the headers, and the device function as LTO-IR.

fn main() -> Result<(), warpcc_rtc_build::EmbedError> {
    warpcc_rtc_build::Embed::new()
        .header_dir("kernels/include")
        .lto("kernels/functions.cu")
        .architectures(["80", "90"])
        .option("-std=c++17")
        .option("-Ikernels/include")
        .write("kernels")
}
