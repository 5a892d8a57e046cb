#!/usr/bin/env bash
# Records what ext2 and xfs ask of a disk (root, FUSE, loop devices, e2fsprogs, xfsprogs and zstd
# are needed) and packs it into crates/lab/recordings, from where `onode-lab tier --figures` plays
# it. NAME: only workloads whose names contain it.
#
#   tests/bench/record-peers.sh [NAME]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --quiet --bin onode
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target/release/onode-lab tier --record "$work" ${1:+--workload "$1"}
mkdir -p crates/lab/recordings
for recording in "$work"/*.blk; do
    zstd -19 --quiet --force "$recording" -o "crates/lab/recordings/$(basename "$recording").zst"
done
