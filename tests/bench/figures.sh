#!/usr/bin/env bash
# Measures every figure of the flash device and writes the rows into docs/benchmarks.md, between its two
# marks. Takes some minutes. TRACES is a folder with the PostMark streams; without it the built-in
# generator makes similar ones.
#
#   tests/bench/figures.sh [TRACES]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --quiet --bin onode
onode=target/release/onode
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
"$onode" --json lab replay --figures ${1:+--traces "$1"} >"$work/replay.json" || status=$?
"$onode" --json lab policy --figures >"$work/policy.json" || status=$?

python3 tests/bench/rows.py docs/benchmarks.md figures "$work/replay.json" "$work/policy.json"
exit "$status"
