#!/usr/bin/env bash
# The second half of action.yml: says what the cache did, and brings it to its size before it is saved.
set -euo pipefail
warpcc stats --github-summary
{
    echo '```text'
    # It ends with 1 where the job compiled nothing.
    warpcc why || true
    echo '```'
} | tee -a "$GITHUB_STEP_SUMMARY"
warpcc cache gc
