#!/usr/bin/env bash
# `onode umount` says so when the volume could not be saved, and what was lost is no secret of a log
# that nobody reads: here the host's disk is full. It returned 0 without a word, and both files were
# gone.
. "$(dirname "$0")/common.sh"
need mkfs.ext4=e2fsprogs
truncate -s 40M "$WORK/host.img"
mkfs.ext4 -q -m 0 "$WORK/host.img"
mkdir -p "$WORK/host"
mount -o loop "$WORK/host.img" "$WORK/host" 2>/dev/null || skip "needs loop devices"
before_clean_up() { umount -l "$WORK/host" 2>/dev/null; rm -rf "$PLACE"; }
ONODE_DEVICE=flash
IMAGE=$WORK/host/disk.img
make 256M
up
echo important >"$MNT/a"
dd if=/dev/zero of="$WORK/host/other" bs=1M status=none 2>/dev/null || true
dd if=/dev/urandom of="$MNT/b" bs=1M count=1 status=none 2>/dev/null || true
down
lost=0
for name in a b; do "$ONODE" get "$(spec)" "/$name" - >/dev/null 2>&1 || lost=$((lost + 1)); done
[ "$lost" -eq 0 ] || [ "$UNMOUNTED" -ne 0 ] || fail "umount said 0, $lost of 2 files are lost; the server ended with $ENDED"
did "the host full, $lost of 2 files lost: umount said $UNMOUNTED, the server ended with $ENDED"
