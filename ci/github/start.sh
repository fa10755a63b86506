#!/usr/bin/env bash
# The first half of action.yml: installs warpcc for this job, and sets what later steps read.
set -euo pipefail
venv="$RUNNER_TEMP/warpcc-venv"
# An earlier call in this job has made it.
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "$PACKAGE"
echo "$venv/bin" >> "$GITHUB_PATH"
{
    echo "WARPCC_DIR=$RUNNER_TEMP/warpcc"
    echo "WARPCC_MAX_SIZE=$MAX_SIZE"
    echo "CMAKE_CUDA_COMPILER_LAUNCHER=warpcc"
    echo "PYTORCH_NVCC=warpcc nvcc"
    # A cache that the job names itself is nearer.
    if [ "$CACHE" = bundles ]; then
        echo "WARPCC_REMOTE=${WARPCC_REMOTE:+$WARPCC_REMOTE }ghac://${KEY//[^A-Za-z0-9._-]/_}"
    fi
    # Nobody has reviewed the code of a pull request yet: shared caches get nothing from it.
    case "$GITHUB_EVENT_NAME" in pull_request*) echo "WARPCC_REMOTE_READONLY=1" ;; esac
} >> "$GITHUB_ENV"
# The counters may have come with the cache; those of this run are wanted.
WARPCC_DIR="$RUNNER_TEMP/warpcc" "$venv/bin/warpcc" stats --zero > "$RUNNER_TEMP/warpcc-before.txt"
