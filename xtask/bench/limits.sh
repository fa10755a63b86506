#!/usr/bin/env bash
# One project, cold, in cgroups of limited memory: ninja with nvcc and pairs of MAX_JOBS and NVCC_THREADS, and with warpcc.
#
#   FLAGS="nvcc's flags" limits.sh WARPCC OUT EXPERIMENTS FILE.cu...
#
# EXPERIMENTS is a file with a line for each build: memory in GiB, `nvcc` or `warpcc`, jobs of ninja, value of nvcc's -t (0: none).
# They run in this order, as many at once as the machine has groups of CORES (16) CPUs. OUT gets limits.csv and limits-samples.csv:
# build, seconds, MiB in use, programs that run. `cargo xtask bench --only limits` draws them. nvcc, ninja and taskset are taken from
# PATH. It needs root. A build that takes longer than LONGEST (550 s) is ended.
set -u
warpcc=$(realpath "$1") out=$(realpath "$2") experiments=$(realpath "$3")
shift 3
cores=${CORES:-16} longest=${LONGEST:-550}
groups=$(($(nproc) / cores))
nvcc=$(command -v nvcc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Cgroups of version 2 where the system has them, else of version 1.
root=/sys/fs/cgroup version=2
if [ ! -e $root/cgroup.controllers ]; then
    root=$(awk '$3=="cgroup"&&$4~/(^|,)memory(,|$)/{print $2; exit}' /proc/mounts) version=1
    if [ -z "$root" ]; then
        root=$work/cgroups version=2
        mkdir "$root"
        mount -t cgroup2 none "$root" || exit 1
    fi
fi
if [ $version = 2 ]; then
    # A group with processes cannot give a controller to the groups below it.
    mkdir -p "$root/all-others"
    while read -r process; do echo "$process" 2>/dev/null >"$root/all-others/cgroup.procs"; done <"$root/cgroup.procs"
    echo +memory >"$root/cgroup.subtree_control" || exit 1
fi
echo "cgroups of version $version in $root"

# What no kernel can take back: programs' memory and files in memory, MiB.
[ $version = 2 ] && kinds='^(anon|shmem)$' || kinds='^total_(rss|shmem)$'
in_use() { awk -v kinds="$kinds" '$1~kinds{n+=$2}END{printf "%d", n/1048576}' "$1/memory.stat"; }
limit() {
    if [ $version = 2 ]; then
        echo "$2" >"$1/memory.max"
        [ -e "$1/memory.swap.max" ] && echo 0 >"$1/memory.swap.max"
    else
        echo "$2" >"$1/memory.limit_in_bytes"
        [ -e "$1/memory.memsw.limit_in_bytes" ] && echo "$2" >"$1/memory.memsw.limit_in_bytes"
    fi
}
killed() { awk '$1=="oom_kill"{print $2}' "$1/memory.events" "$1/memory.oom_control" 2>/dev/null; }
# Programs that compile.
running() { sed 's|.*|/proc/&/comm|' "$1/cgroup.procs" | xargs -r cat 2>/dev/null | grep -c -E '^(cicc|ptxas|cudafe\+\+|cc1plus)$'; }

# sample GROUP FILE: until FILE.ended is there.
sample() {
    local began peak=0 now
    began=$(date +%s.%N)
    while [ ! -e "$2.ended" ]; do
        now=$(in_use "$1")
        [ "$now" -gt "$peak" ] && peak=$now
        awk -v b="$began" -v n="$(date +%s.%N)" -v m="$now" -v r="$(running "$1")" 'BEGIN{printf "%.1f,%d,%d\n", n-b, m, r}' >>"$2"
        sleep 0.5
    done
    echo "$peak" >"$2.peak"
}

# build CPUS MEMORY TOOL JOBS THREADS
build() {
    local name=$2-$3-j$4-t$5
    local folder=$work/$name group=$root/$name launcher=$nvcc more=
    [ "$3" = warpcc ] && launcher="$warpcc $nvcc"
    [ "$5" = 0 ] || more="-t $5"
    mkdir -p "$folder/tmp" "$group"
    {
        printf 'rule cu\n command = %s %s %s -c $in -o $out\n' "$launcher" "$FLAGS" "$more"
        for file in "${files[@]}"; do printf 'build %s.o: cu %s\n' "$(basename "$file")" "$file"; done
    } >"$folder/build.ninja"
    limit "$group" $(($2 * 1024 * 1024 * 1024))
    sample "$group" "$out/$name.csv" &
    local sampler=$! start end code
    start=$(date +%s.%N)
    (
        echo $BASHPID >"$group/cgroup.procs"
        export TMPDIR=$folder/tmp WARPCC_DIR=$folder/cache WARPCC_RUNTIME_DIR=$folder/run WARPCC_LOG=$folder/warpcc.log
        mkdir -p -m 700 "$folder/run"
        TIMEFORMAT=$'\n%U %S'
        time taskset -c "$1" timeout -k 5 "$longest" ninja -C "$folder" -j "$4" -k 0 >"$folder/log" 2>&1
    ) 2>"$folder/times"
    code=$?
    end=$(date +%s.%N)
    touch "$out/$name.csv.ended"
    wait $sampler
    objects=$(ls "$folder"/*.o 2>/dev/null | wc -l)
    kills=$(killed "$group")
    cpu=$(awk 'NF==2{print $1+$2}' "$folder/times" | tail -n 1)
    awk -v l="$2" -v t="$3" -v j="$4" -v h="$5" -v s="$start" -v e="$end" -v c="$cpu" -v p="$(cat "$out/$name.csv.peak")" \
        -v o="$objects" -v k="$kills" -v x=$code \
        'BEGIN{printf "%d,%s,%d,%d,%.1f,%.0f,%.2f,%d,%d,%d\n", l, t, j, h, e-s, c, p/1024, o, k, x}' | tee -a "$out/limits.csv"
    (cd "$folder" && sha256sum ./*.o 2>/dev/null) >"$out/$name.sums"
    [ "$3" = warpcc ] && cp "$folder/warpcc.log" "$out/$name.log" 2>/dev/null
    awk -v name="$name" 'NR%4==1{print name","$0}' "$out/$name.csv" >>"$out/limits-samples.csv"
    rm -f "$out/$name.csv" "$out/$name.csv.ended" "$out/$name.csv.peak"
    rm -rf "$folder"
    rmdir "$group"
}

files=("$@")
[ -e "$out/limits.csv" ] || echo "memory_GiB,tool,jobs,threads,wall_s,cpu_s,peak_GiB,objects,killed,exit" | tee "$out/limits.csv"
[ -e "$out/limits-samples.csv" ] || echo "build,seconds,MiB,programs" >"$out/limits-samples.csv"
# Each group of CPUs takes the next line.
exec 9<"$experiments"
for group in $(seq 0 $((groups - 1))); do
    cpus=$((group * cores))-$((group * cores + cores - 1))
    while
        exec 8>"$work/lock"
        flock 8
        read -r memory tool jobs threads <&9
        got=$?
        exec 8>&-
        [ $got = 0 ]
    do
        build "$cpus" "$memory" "$tool" "$jobs" "$threads"
    done &
done
wait
