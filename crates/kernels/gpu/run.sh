#!/bin/sh
# All that is known of the run-time library on a real GPU, in one go: every function and type from Rust, C++ and Python against
# references in double, compute-sanitizer, speeds beside PyTorch, CuPy and cuda.core, first starts. Nothing is fetched.
#
#   here:   sh crates/kernels/gpu/build.sh BIN
#   there:  sh crates/kernels/gpu/run.sh BIN OUT [PART ...]       parts: values speed peers cpp python names adapters start many sanitizer; all of them if none is named
#
# OUT gets a file for each part; crates/kernels/gpu/merge.py makes docs/bench/rtc-h200.json of them.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd) bin=$(realpath "$1") out=$(realpath "$2")
shift 2
parts=${*:-values speed peers cpp python names adapters start many sanitizer}
seed=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH="$bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
groups=functions,conversions,offsets,broadcasting,fused,reduce
# What other languages run: of the functions and conversions one in EVERY (a kernel takes a second of a processor).
sides="--only functions,conversions --every ${EVERY:-1}"
failed=

part() {
    name=$1
    shift
    case " $parts " in *" $name "*) ;; *) return 0 ;; esac
    begun=$(date +%s)
    "$@" >"$out/$name.txt" 2>&1 || failed="$failed $name"
    echo "$name: $(($(date +%s) - begun)) s"
    tail -n "${LINES_SHOWN:-12}" "$out/$name.txt"
}
verify() { "$bin/rtc-verify" --seed "$seed" "$@"; }
exported() { [ -d "$work/cases" ] || verify $sides --role export --out "$work/cases"; }
cpp() {
    exported && "$bin/verify-cpp" "$work/cases" "$work/cpp" "$work/kernels" && verify $sides --role judge --out "$work/cpp"
}
package() {
    packages=$work/packages
    [ -d "$packages" ] || python3 -m pip install --quiet --no-index --no-deps --target "$packages" "$bin"/warpcc_rtc-*.whl
}
in_python() { PYTHONPATH=$packages python3 "$root/crates/rtc-py/gpu/verify.py" "$@" --warpcc "$bin/warpcc"; }
peers() { package && PYTHONPATH=$packages python3 "$root/crates/kernels/gpu/peers.py" "$out/peers.json"; }
names() { package && PYTHONPATH=$packages python3 "$root/crates/rtc-py/gpu/names.py" "$out/names.json" --kernels "$work/names"; }
adapters() { package && PYTHONPATH=$packages python3 "$root/crates/rtc-py/gpu/adapters.py" "$out/adapters.json"; }
many() { package && PYTHONPATH=$packages python3 "$root/crates/rtc-py/gpu/many.py" "$out/many.json"; }
start() { package && in_python "$out/start.json" --only start; }
python() {
    exported && package || return
    right=0
    in_python "$out/python.json" --only results,streams,speed \
        --cases "$work/cases" --answers "$work/python" --kernels "$work/kernels" || right=1
    verify $sides --role judge --out "$work/python" && return $right
}
# The images of `values` are taken again. A process for each tool: they do not run together.
sanitizer() {
    [ -d "$work/values" ] || verify --only $groups --work "$work/values" --out "$work/values.json"
    for tool in memcheck racecheck; do
        compute-sanitizer --tool $tool --error-exitcode 9 "$bin/rtc-verify" --seed "$seed" --only $groups --work "$work/values" \
            --role runner || return
    done
}

part values verify --only $groups --work "$work/values" --out "$out/values.json"
part speed verify --only speed,large,launcher --work "$work/speed" --out "$out/speed.json"
part peers peers
part cpp cpp
part python python
part names names
part adapters adapters
part start start
part many many
part sanitizer sanitizer
echo "failed:${failed:- nothing}"
