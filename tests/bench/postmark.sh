#!/usr/bin/env bash
# Runs the PostMark streams on flash and writes the tables of "PostMark on 128 MiB of NAND" into
# docs/benchmarks/postmark.md, between their marks. TRACES is the folder with the streams.
#
#   tests/bench/postmark.sh TRACES
set -euo pipefail
cd "$(dirname "$0")/../.."

. tests/bench/common.sh
traces=${1:?"give the folder with the PostMark streams: tests/bench/postmark.sh TRACES"}
for stream in write read table2; do
    for durability in op natural lazy; do
        target/release/onode-lab --json replay "$traces/postmark-$stream-s42.txt.zst" --durability "$durability" \
            >"$work/$stream-$durability.json"
    done
done
python3 tests/bench/postmark.py docs/benchmarks/postmark.md "$work"
python3 tests/bench/front.py
