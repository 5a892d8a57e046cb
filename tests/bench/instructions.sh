#!/usr/bin/env bash
# Instructions of a call below the mount: creat + close, 4 KB overwrite + fsync, stat, 4 KB read.
# Counted by callgrind, so equal on every machine with the same compiler. Another checkout can be
# counted, too: tests/bench/instructions.sh [FOLDER]. Of tier the big disk alone: the fast one looks
# at the kernel's clock, which callgrind does not have.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v valgrind >/dev/null || { echo "instructions: install valgrind"; exit 1; }
folder=$(realpath "${1:-.}")
[ -f "$folder/crates/lab/examples/instructions.rs" ] || cp crates/lab/examples/instructions.rs "$folder/crates/lab/examples/"
(cd "$folder" && cargo build --release --quiet -p onode-lab --example instructions)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
few=200 many=1200

# counted SPEC WORK COUNT prints the instructions of one run.
counted() {
    valgrind --tool=callgrind --callgrind-out-file="$work/out" "$folder/target/release/examples/instructions" "$@" 2>&1 |
        sed -n 's/.*Collected : //p'
}

printf '| device | creat + close | 4 KB overwrite + fsync | stat | 4 KB read |\n|---|---|---|---|---|\n'
for spec in flash:sim,size=64M flash+scm:sim,size=64M scm:sim,size=64M tier:sim,size=64M,fast=none; do
    printf '| %s ' "${spec%%:*}"
    for call in creat overwrite stat read; do
        one=$(counted "$spec" "$call" "$few")
        two=$(counted "$spec" "$call" "$many")
        printf '| %s ' "$(((two - one) / (many - few)))"
    done
    echo '|'
done
