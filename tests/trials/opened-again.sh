#!/usr/bin/env bash
# The image of a full memory that no command could open ("no room is left for the log") opens again,
# with its files, and can be emptied.
. "$(dirname "$0")/common.sh"
need zstd=zstd
image=$(cd "$(dirname "$0")" && pwd)/images/scm-full.img.zst
[ -e "$image" ] || skip "there is no image"
ONODE_DEVICE=scm
IMAGE=$PLACE/disk
zstd -q -d "$image" -o "$IMAGE"
asked check "$(spec)"
[ "$CODE" -eq 0 ] || { cat "$WORK/said"; fail "check says $CODE"; }
up
count=$(find "$MNT" -type f | wc -l)
[ "$count" -gt 1000 ] || fail "only $count files are there"
find "$MNT" -type f -print0 | xargs -0 cat >/dev/null || fail "files cannot be read"
rm -rf "${MNT:?}"/* || fail "it cannot be emptied"
dd if=/dev/zero of="$MNT/big" bs=1M count=8 status=none || fail "there is no room after that"
down_well
sound
did "$count files are there and could be removed"
