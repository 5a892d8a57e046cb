#!/usr/bin/env bash
# Runs files on a fast and a big disk beside ext2 and xfs, in virtual time, and writes the rows into
# docs/benchmarks/tier.md, between its two marks. What ext2 and xfs ask of a disk is played from
# crates/lab/recordings (record-peers.sh).
#
#   tests/bench/tier.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

. tests/bench/common.sh
measure tier
publish tier "tier figures" tier.json
exit "$status"
