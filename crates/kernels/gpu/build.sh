#!/bin/sh
# Builds what run.sh takes along to a machine with a GPU, which needs no cargo then: programs, library, wheel.
#
#   sh crates/kernels/gpu/build.sh BIN        BIN: a folder, made if it is not there
#
# maturin is the one on PATH, else the one that `cargo xtask test` has installed. The machine's glibc must not be older than
# this one's.
set -eu
mkdir -p "$1"
root=$(cd "$(dirname "$0")/../../.." && pwd) bin=$(realpath "$1")
cd "$root"
made=${CARGO_TARGET_DIR:-target}/release
# All at once, and without what examples and tests alone need: the wheel would be built with other features of what they share.
cargo build --release --locked --workspace --lib --bins
cargo build --release --locked --package warpcc-kernels --example rtc-verify
cp "$made/warpcc" "$made/examples/rtc-verify" "$bin/"
cp "$made/libwarpcc_rtc_c.so" "$bin/libwarpcc_rtc_c.so.1"
g++ -std=c++17 -O2 -Icrates/rtc-c/include crates/rtc-c/gpu/verify.cpp -L"$made" -lwarpcc_rtc_c -ldl -pthread -o "$bin/verify-cpp"
if ! command -v maturin >/dev/null; then
    tools=${WARPCC_TOOLKITS:-$HOME/.cache/warpcc/toolkits}/../tools/maturin
    PATH=$PATH:$tools/bin PYTHONPATH=$tools
    export PATH PYTHONPATH
fi
rm -f "$bin"/warpcc_rtc-*.whl
maturin build --release --locked -m crates/rtc-py/Cargo.toml --out "$bin"
ls -l "$bin"
