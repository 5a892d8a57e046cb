#!/usr/bin/env bash
# Volumes as large as real disks: 300 GiB to 64 TiB, sparse files in memory. They are made, written,
# killed, mounted and verified; the pages that a mount reads and the memory of its server are
# bounded (a volume above 384 GiB could not even be made).
. "$(dirname "$0")/../apps/common.sh"
need python3=python3
IMAGE=/dev/shm/$(basename "$WORK").big
before_clean_up() { rm -f "$IMAGE"; }
mkdir -p "$MNT"
# What a mount read of the medium before anybody asked it for a file.
pages_read() {
    "$ONODE" --json stat "$MNT" | python3 -c '
import json, sys
tags = {tag["tag"]: tag["reads"] for tag in json.load(sys.stdin)["tags"]}
print(tags["anchor"] + tags["recovery"] + tags["index"])'
}
said=()
sizes="500G 64T"
[ "${TRIALS:-}" = long ] && sizes="300G 500G 1T 2T 16T 64T"
for size in $sizes; do
    rm -f "$IMAGE"
    "$ONODE" mkfs "flash:$IMAGE,size=$size" >"$WORK/made" 2>&1 || {
        grep -q "File too large" "$WORK/made" && skip "files in /dev/shm may not have $size"
        cat "$WORK/made"
        fail "mkfs of $size"
    }
    onode_up
    clean=$(pages_read)
    for round in 1 2; do
        head -c 40M /dev/urandom >"$MNT/file"
        for number in $(seq 100); do echo "$number $round" >"$MNT/$number"; done
    done
    sync "$MNT/file" "$MNT/77"
    sum=$(md5sum <"$MNT/file")
    memory=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$SERVER/status")
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
    umount -l "$MNT"
    onode_up
    cut=$(pages_read)
    [ "$sum" = "$(md5sum <"$MNT/file")" ] || fail "the file on $size is another one after a kill"
    [ "$(cat "$MNT/77")" = "77 2" ] || fail "a small file on $size is another one after a kill"
    onode_down
    said+=("$size: a mount reads $clean pages, $cut after a kill; the server had $memory MiB at most")
    [ "$clean" -le 64 ] || fail "${said[-1]}: more than 64"
    [ "$cut" -le 200 ] || fail "${said[-1]}: more than 200"
    [ "$memory" -le 96 ] || fail "${said[-1]}: more than 96"
done
printf '%s\n' "${said[@]}" | sed "s/^/$NAME: /"
did "volumes of $sizes made, killed, mounted and verified"
