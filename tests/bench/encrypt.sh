#!/usr/bin/env bash
# What encryption costs on mounted flash in page operations and bytes: without it, with it, in a
# directory with a key of its own, and with authentication. A file of 64 MiB written at once,
# 2,000 writes of 4 KiB in it, each synced, and the file with a tree beside it read after a new
# mount. Then how fast the cipher is (example `encrypt` of the lab).
# Needs root for the mounts.
#
#   tests/bench/encrypt.sh [TREE]
#
# TREE is this project's crates by default.
set -euo pipefail
cd "$(dirname "$0")/../.."

tree=$(realpath "${1:-crates}")
onode=${ONODE:-target/release/onode}
[ -n "${ONODE:-}" ] || cargo build --release --quiet --bin onode
work=$(mktemp -d)
trap 'umount "$work/mnt" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/mnt"
head -c 64 /dev/urandom >"$work/key"

# A counter of the mount.
count() {
    "$onode" stat --json "$work/mnt" | python3 -c 'import json, sys; print(json.load(sys.stdin)["device"][sys.argv[1]])' "$1"
}

# step NAME COUNTER COMMAND... prints by how much the counter grew.
step() {
    local name=$1 counter=$2 before after
    shift 2
    before=$(count "$counter")
    "$@"
    after=$(count "$counter")
    printf '%-12s %-34s %8d %s\n' "$how" "$name" $((after - before)) "$counter"
}

overwrite() {
    python3 - "$at/large" <<'PYTHON'
import os, random, sys
draw = random.Random(1)
file = os.open(sys.argv[1], os.O_RDWR)
for number in range(2000):
    os.pwrite(file, bytes([number % 256]) * 4096, draw.randrange(16384) * 4096)
    os.fdatasync(file)
PYTHON
}

for how in plain encrypted directory authenticated; do
    keys=() made=() at="$work/mnt"
    [ "$how" = plain ] || keys=(--key-file "$work/key")
    [ "$how" != authenticated ] || made=(--authenticate)
    "$onode" mkfs "${keys[@]}" ${keys[0]:+--encrypt} "${made[@]}" --size 1G "$work/$how" >/dev/null
    "$onode" mount "${keys[@]}" "$work/$how" "$work/mnt"
    if [ "$how" = directory ]; then
        at="$work/mnt/d"
        mkdir "$at"
        "$onode" key new "$at" --new-key-file "$work/key" >/dev/null
        keys+=(--unlock "$work/key")
    fi
    step "64 MiB written and synced" nand.programs dd if=/dev/zero of="$at/large" bs=1M count=64 conv=fsync status=none
    step "2,000 times 4 KiB and a sync" nand.programs overwrite
    cp -r "$tree" "$at/tree"
    "$onode" umount "$work/mnt"
    "$onode" mount "${keys[@]}" "$work/$how" "$work/mnt"
    step "all read after a mount" nand.reads sh -c "cat '$at/large' >/dev/null && diff -r '$tree' '$at/tree' >/dev/null"
    printf '%-12s %-34s %8d KiB\n' "$how" "used" "$(df -k --output=used "$work/mnt" | tail -1)"
    "$onode" umount "$work/mnt"
    rm "$work/$how"
done
cargo run --release --quiet -p onode-lab --example encrypt
