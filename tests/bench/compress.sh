#!/usr/bin/env bash
# Compares what a source tree takes on a volume under compress=small, fast and none with `zstd -3`
# in blocks of 128 KiB, each file for itself. Whole blocks of 4 KiB are not counted for zstd. Needs
# root for the mount, and zstd.
#
#   tests/bench/compress.sh [TREE] [MOST]
#
# TREE is this project's crates by default; with MOST (1.05, say) it fails if `small` takes more
# than that many times zstd's bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."

tree=$(realpath "${1:-crates}")
most=${2:-}
onode=${ONODE:-target/release/onode}
[ -n "${ONODE:-}" ] || cargo build --release --quiet --bin onode
work=$(mktemp -d)
trap 'umount "$work/mnt" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/mnt"

used() {
    df -B1 --output=used "$work/mnt" | tail -1
}

# What is stored of a tree in a mode: bytes that df counts, files and names included.
stored() {
    "$onode" mkfs "flash:$work/disk,size=1G" >/dev/null
    "$onode" mount -o "compress=$1" "$work/disk" "$work/mnt"
    local before after
    before=$(used)
    cp -r "$tree" "$work/mnt/tree"
    # Opened anew it has nothing in memory.
    "$onode" umount "$work/mnt"
    "$onode" mount "$work/disk" "$work/mnt"
    after=$(used)
    diff -r "$tree" "$work/mnt/tree" >/dev/null || { echo "$1: the copy differs" >&2; exit 1; }
    "$onode" umount "$work/mnt"
    rm "$work/disk"
    echo $((after - before))
}

plain=$(find "$tree" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
packed=$(find "$tree" -type f -print0 | python3 -c '
import subprocess, sys
total = 0
for name in sys.stdin.buffer.read().split(b"\0")[:-1]:
    with open(name, "rb") as file:
        while block := file.read(128 << 10):
            packed = len(subprocess.run(["zstd", "-3", "-q", "-c"], input=block, stdout=subprocess.PIPE, check=True).stdout)
            total += min(packed, len(block))
print(total)')
echo "tree                       $plain bytes"
echo "zstd -3, blocks of 128 KiB $packed bytes"
for mode in none fast small; do
    bytes=$(stored "$mode")
    ratio=$(awk -v a="$bytes" -v b="$packed" 'BEGIN { printf "%.3f", a / b }')
    printf 'compress=%-5s             %s bytes, %s x zstd\n' "$mode" "$bytes" "$ratio"
done
if [ -n "$most" ] && awk -v a="$ratio" -v b="$most" 'BEGIN { exit !(a > b) }'; then
    echo "small takes $ratio times the bytes of zstd, more than $most" >&2
    exit 1
fi
