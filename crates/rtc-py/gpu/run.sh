#!/bin/sh
# On a machine with a GPU, PyTorch and CuPy: installs the wheel that stands beside this into a folder of its own and runs
# verify.py. Nothing is fetched from the network.
#
#   here:   (cd crates/rtc-py && maturin build --release --out gpu/wheel)      cargo build --release --bin warpcc
#   there:  sh gpu/run.sh OUT.json [--warpcc PATH] …
set -eu
here=$(cd "$(dirname "$0")" && pwd)
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
python3 -m pip install --quiet --no-index --no-deps --target "$packages" "$here"/wheel/warpcc_rtc-*.whl
PYTHONPATH="$packages${PYTHONPATH:+:$PYTHONPATH}" python3 "$here/verify.py" "$@"
