#!/usr/bin/env bash
# A whole project, cold, on one machine: ninja with nvcc, with nvcc -t 4, with sccache, with warpcc.
#
#   project.sh SOURCES WARPCC OUT [ROUNDS]
#
# SOURCES is the folder ggml of llama.cpp (include/ and src/ggml-cuda/), LightGBM's or causal_conv1d's (MORE then names
# torch's and Python's headers with -I), WARPCC a warpcc, OUT gets project.csv. nvcc and ninja are taken from PATH, sccache too where there is one. JOBS (all CPUs), ARCHS, FILES (how
# many of ggml's template instances join the other files), MORE flags and ONLY (a pattern of contenders) may be set.
set -u
sources=$(realpath "$1") warpcc=$(realpath "$2") out=$(realpath "$3") rounds=${4:-1}
jobs=${JOBS:-$(nproc)} instances=${FILES:-12}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc=$(command -v nvcc)

gencodes() { for arch in $1; do printf ' -gencode arch=compute_%s,code=sm_%s' "$arch" "$arch"; done; }

if [ -d "$sources/src/ggml-cuda" ]; then
    flags="-std=c++17 -O3 -use_fast_math -extended-lambda -compress-mode=size$(gencodes "${ARCHS:-80 86 90}")"
    flags+=" -I$sources/include -I$sources/src -I$sources/src/ggml-cuda -DGGML_CUDA_PEER_MAX_BATCH_SIZE=128 -DNDEBUG"
    flags+=" -Xcompiler=-fPIC"
    # Of fattn.cu a build without those instances has no use.
    files=$(ls "$sources"/src/ggml-cuda/*.cu | grep -v /fattn.cu
        ls "$sources"/src/ggml-cuda/template-instances/*.cu | sort | head -n "$instances")
elif [ -f "$sources/csrc/causal_conv1d_fwd.cu" ]; then
    # What its setup.py and torch's BuildExtension give.
    no="HALF_OPERATORS__ HALF_CONVERSIONS__ BFLOAT16_OPERATORS__ BFLOAT16_CONVERSIONS__ BFLOAT162_OPERATORS__"
    flags="-std=c++20 -I$sources/csrc -DTORCH_API_INCLUDE_EXTENSION_H -DTORCH_EXTENSION_NAME=causal_conv1d_cuda"
    flags+=" -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__"
    flags+=" -D__CUDA_NO_HALF2_OPERATORS__ --expt-relaxed-constexpr --compiler-options \"'-fPIC'\" -O3"
    for one in $no BFLOAT162_CONVERSIONS__; do flags+=" -U__CUDA_NO_$one"; done
    flags+=" --expt-extended-lambda --use_fast_math --ptxas-options=-v -lineinfo"
    flags+=$(gencodes "${ARCHS:-75 80 87 90 100 120 103 110 121}")
    files=$(ls "$sources"/csrc/*.cu)
else
    # As its wheel's build gives them (xtask/workloads.toml).
    libs=$sources/external_libs
    flags="-forward-unknown-to-host-compiler -DEIGEN_DONT_PARALLELIZE -DEIGEN_MPL2_ONLY -DMM_MALLOC -DMM_PREFETCH"
    flags+=" -DUSE_CUDA -DUSE_SOCKET -I$libs/eigen -I$libs/fast_double_parser/include -I$libs/fmt/include"
    flags+=" -I$sources/include -I$libs/nanoarrow/src -Xcompiler=-fopenmp -Xcompiler=-fPIC -Xcompiler=-Wall"
    flags+=" -O3 -lineinfo -O3 -DNDEBUG -std=c++17$(gencodes "${ARCHS:-75 80 86 89 90 100 120}")"
    flags+=" -gencode arch=compute_120,code=compute_120 -x cu -rdc=true"
    files=$(find "$sources/src" -name '*.cu' | sort)
fi
flags+=" ${MORE:-}"

# ninja_file FOLDER "LAUNCHER" "MORE FLAGS"
ninja_file() {
    mkdir -p "$1"
    {
        printf 'rule cu\n command = %s %s %s -MD -MT $out -MF $out.d -c $in -o $out\n' "$2" "$flags" "$3"
        printf ' depfile = $out.d\n deps = gcc\n'
        for file in $files; do
            printf 'build %s.o: cu %s\n' "$(basename "$file")" "$file"
        done
    } >"$1/build.ninja"
}

used() { awk '/^MemTotal/{t=$2}/^MemAvailable/{a=$2}END{print t-a}' /proc/meminfo; }

# Peak of the memory in use, above what was in use before, KiB.
sample() {
    local before peak=0 now
    before=$(used)
    while [ -e "$work/sampling" ]; do
        now=$(($(used) - before))
        [ "$now" -gt "$peak" ] && peak=$now && echo "$peak" >"$work/peak"
        sleep 0.2
    done
}

# run NAME JOBS "LAUNCHER" "MORE FLAGS"
run() {
    [[ $1 == ${ONLY:-*} ]] || return 0
    local folder=$work/$1
    rm -rf "$folder"
    ninja_file "$folder" "$3" "$4"
    echo 0 >"$work/peak"
    touch "$work/sampling"
    sample &
    local start end code
    start=$(date +%s.%N)
    TIMEFORMAT='%U %S'
    { time ninja -C "$folder" -j "$2" -k 0 >"$folder/log" 2>&1; } 2>"$work/times"
    code=$?
    end=$(date +%s.%N)
    rm "$work/sampling"
    wait
    objects=$(ls "$folder"/*.o 2>/dev/null | wc -l)
    awk -v n="$1" -v s="$start" -v e="$end" -v p="$(cat "$work/peak")" -v c=$code -v o="$objects" \
        -v u="$(tr ' ' + <"$work/times")" \
        'BEGIN{split(u,a,"+"); printf "%s,%.1f,%.0f,%.2f,%d,%d\n", n, e-s, a[1]+a[2], p/1048576, o, c}' | tee -a "$out/project.csv"
    [ $code -eq 0 ] || grep -m 3 -A 3 -E 'error|FAILED' "$folder/log" | cut -c1-300
}

echo "contender,wall_s,cpu_s,peak_GiB,objects,exit" | tee "$out/project.csv"
for _ in $(seq "$rounds"); do
    run "nvcc -j$jobs" "$jobs" "$nvcc" ""
    run "nvcc -t4 -j$jobs" "$jobs" "$nvcc" "-t 4"
    if command -v sccache >/dev/null; then
        export SCCACHE_DIR=$work/sccache SCCACHE_IDLE_TIMEOUT=0
        rm -rf "$SCCACHE_DIR"
        sccache --start-server >/dev/null 2>&1
        run "sccache -j$jobs" "$jobs" "sccache $nvcc" ""
        sccache --stop-server >/dev/null 2>&1
    fi
    for many in 1000 "$jobs"; do
        export WARPCC_DIR=$work/warpcc-cache
        rm -rf "$WARPCC_DIR"
        run "warpcc -j$many" "$many" "$warpcc $nvcc" ""
    done
    # Known: the same with nothing cached but what steps cost.
    find "$WARPCC_DIR" -mindepth 1 -maxdepth 1 ! -name 'notes-*' -exec rm -rf {} +
    run "warpcc again -j1000" 1000 "$warpcc $nvcc" ""
    run "warpcc hits -j1000" 1000 "$warpcc $nvcc" ""
    "$warpcc" stats
done
