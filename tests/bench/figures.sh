#!/usr/bin/env bash
# Measures every figure of the flash device and writes the rows into docs/benchmarks/flash.md,
# between its two marks. Takes some minutes. TRACES is a folder with the PostMark streams; without
# it the built-in generator makes similar ones.
#
#   tests/bench/figures.sh [TRACES]
set -euo pipefail
cd "$(dirname "$0")/../.."

. tests/bench/common.sh
measure replay ${1:+--traces "$1"}
measure policy
publish flash figures replay.json policy.json
exit "$status"
