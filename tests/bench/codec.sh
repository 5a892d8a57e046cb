#!/usr/bin/env bash
# Measures flash beside a memory, and all codecs before, and writes the rows of the device into
# docs/benchmarks/flash-scm.md, between its two marks. TRACES is a folder with the PostMark streams.
#
#   tests/bench/codec.sh [TRACES]
set -euo pipefail
cd "$(dirname "$0")/../.."

. tests/bench/common.sh
measure codec ${1:+--traces "$1"}
publish --from flash+scm flash-scm "flash+scm figures" codec.json
exit "$status"
