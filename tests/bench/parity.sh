#!/usr/bin/env bash
# Table III of paper 1: what parity costs. PostMark with 500, 750 and 1,000 files on a simulated
# chip of 128 MiB, pages of 2 KiB, blocks of 128 KiB, with 0 to 3 pages of parity in a row; 0-N:
# with N for names, records and small contents alone, as no file wishes any.
#
#   tests/bench/parity.sh [TRANSACTIONS]        40,000 if nothing is said
#
# Prints a row for each: page programs and those of parity, page reads for parity, erases, RAM.
set -euo pipefail
cd "$(dirname "$0")/../.."

transactions=${1:-40000}
lab=${ONODE_LAB:-target/release/onode-lab}
[ -n "${ONODE_LAB:-}" ] || cargo build --release --quiet -p onode-lab

echo '| files | durability | parity | programs | of them parity | share | reads for parity | erases | RAM |'
echo '|---|---|---|---|---|---|---|---|---|'
for files in 500 750 1000; do
    for durability in op natural; do
        for parity in 0 1 2 3 0-1 0-3; do
            device=flash:sim,size=128M,page=2K,spare=64,pages-per-block=64,parity=$parity
            "$lab" replay "postmark:seed=42,files=$files,transactions=$transactions,reads=1" \
                --durability "$durability" --device "$device" --json |
                python3 -c '
import json, sys
run = json.load(sys.stdin)
programs = run["nand"]["programs"]
parity = run["by_tag"].get("parity", {"programs": 0, "reads": 0})
share = 100 * parity["programs"] / programs
kib = run["ram_peak_bytes"] // 1024
files, durability, pages = sys.argv[1:]
print(f"| {files} | {durability} | {pages} | {programs:,} | {parity['programs']:,} | {share:.1f} % "
      f"| {parity['reads']:,} | {run['nand']['erases']:,} | {kib:,} KiB |")
' "$files" "$durability" "$parity"
        done
    done
done
