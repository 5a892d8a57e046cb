#!/usr/bin/env bash
# Measures flash beside a memory, and all codecs before, and writes the rows of the device into docs/benchmarks.md,
# between its two marks. TRACES is a folder with the PostMark streams.
#
#   tests/bench/codec.sh [TRACES]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --quiet --bin onode
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
target/release/onode --json lab codec --figures ${1:+--traces "$1"} >"$work/codec.json" || status=$?
python3 tests/bench/rows.py --from flash+scm docs/benchmarks.md "flash+scm figures" "$work/codec.json"
exit "$status"
