#!/usr/bin/env bash
# The second half of action.yml: uploads what is new, says what the cache did, and brings the folder to its size.
set -euo pipefail
if [ -n "${WARPCC_REMOTE:-}" ]; then
    # A cache that takes nothing makes the next run slower, and this one no failure.
    warpcc remote upload || echo "::warning title=warpcc::Not all results were uploaded to the shared cache."
fi
warpcc stats --github-summary
{
    echo '```text'
    # It ends with 1 where the job compiled nothing.
    warpcc why || true
    echo '```'
} | tee -a "$GITHUB_STEP_SUMMARY"
warpcc cache gc
