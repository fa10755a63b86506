#!/usr/bin/env bash
# A whole project, cold, on one machine: ninja with nvcc, with nvcc -t 4, with sccache, with warpcc.
#
#   project.sh GGML WARPCC OUT [ROUNDS]
#
# GGML is the folder ggml of llama.cpp (include/ and src/ggml-cuda/), WARPCC a warpcc, OUT gets project.csv. nvcc, ninja
# and python3 are taken from PATH, sccache too where there is one. JOBS (all CPUs), ARCHS (80 86 90) and FILES (how
# many of the template instances join the other files) and MORE flags may be set.
set -u
ggml=$(realpath "$1") warpcc=$(realpath "$2") out=$(realpath "$3") rounds=${4:-1}
jobs=${JOBS:-$(nproc)} archs=${ARCHS:-80 86 90} instances=${FILES:-12}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc=$(command -v nvcc)

gencode=
for arch in $archs; do gencode+=" -gencode arch=compute_$arch,code=sm_$arch"; done
flags="-std=c++17 -O3 -use_fast_math -extended-lambda -compress-mode=size$gencode"
flags+=" -I$ggml/include -I$ggml/src -I$ggml/src/ggml-cuda -DGGML_CUDA_PEER_MAX_BATCH_SIZE=128 -DNDEBUG"
flags+=" -Xcompiler=-fPIC ${MORE:-}"

# ninja_file FOLDER "LAUNCHER" "MORE FLAGS"
ninja_file() {
    mkdir -p "$1"
    {
        printf 'rule cu\n command = %s %s %s -MD -MT $out -MF $out.d -c $in -o $out\n' "$2" "$flags" "$3"
        printf ' depfile = $out.d\n deps = gcc\n'
        for file in "$ggml"/src/ggml-cuda/*.cu \
            $(ls "$ggml"/src/ggml-cuda/template-instances/*.cu | sort | head -n "$instances"); do
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
