#!/usr/bin/env bash
# Times storage-class memory beside its peers and writes the rows into docs/benchmarks.md, between its two marks.
# Peers that are not installed are named below the rows: libjemalloc2, libmimalloc2.0, libpmemobj1, xfsprogs, a C compiler.
#
#   tests/bench/scm.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --quiet --bin onode
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
target/release/onode --json lab scm --figures >"$work/scm.json" || status=$?
python3 tests/bench/rows.py docs/benchmarks.md "scm figures" "$work/scm.json"
exit "$status"
