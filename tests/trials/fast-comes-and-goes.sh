#!/usr/bin/env bash
# The fast disk of a mounted volume goes and comes: nothing that was accepted is lost, what is not
# its disk is refused, and everything is told. A fast disk that failed came back with the next mount
# only.
. "$(dirname "$0")/common.sh"
use tier
"$ONODE" mkfs "$(spec),size=64M,fast-size=16M,acknowledge=either" >>"$WORK/onode.log" 2>&1
fill() { for n in $(seq 40); do head -c 20000 /dev/urandom >"$MNT/$1$n" && sync "$MNT/$1$n"; done; }
sums() { (cd "$MNT" && find . -type f | sort | xargs sha256sum) >"$1"; }
tells() { asked "${@:2}"; [ "$CODE" -eq "$1" ] || { cat "$WORK/said"; fail "onode ${*:2}: $CODE, expected $1"; }; }

up
fill before
tells 0 detach "$MNT"
tells 2 detach "$MNT"
grep -q "it does not take part" "$WORK/said" || fail "a second detach: $(cat "$WORK/said")"
asked health "$MNT"
[ "$CODE" -ne 0 ] || fail "health says nothing of a volume without its fast disk"
fill without
# What was acknowledged by the fast disk alone is on the big one: it is all there after a crash, and
# without the fast disk.
sums "$WORK/sums"
killed
mounts --without-fast || { cat "$WORK/answer"; fail "after a detach the big disk has not everything: $ANSWER"; }
sums "$WORK/now"
cmp "$WORK/sums" "$WORK/now" || fail "the big disk alone has other files"

# It comes back with its copies.
tells 0 attach "$MNT"
tells 2 attach "$MNT"
grep -q "it takes part already" "$WORK/said" || fail "a second attach: $(cat "$WORK/said")"
fill back
sums "$WORK/sums"
tells 0 detach "$MNT"

# Another disk in its place is refused unless it may be emptied; one with something on it is refused
# in any case.
mv "$IMAGE.fast" "$WORK/old"
truncate -s 16M "$IMAGE.fast"
tells 2 attach "$MNT"
mkfs.ext4 -q "$IMAGE.fast"
tells 2 attach --empty "$MNT"
blkid -p "$IMAGE.fast" 2>/dev/null | grep -q ext4 || fail "a disk with something else on it was written to"
truncate -s 0 "$IMAGE.fast"
truncate -s 16M "$IMAGE.fast"
tells 0 attach --empty "$MNT"
sums "$WORK/now"
cmp "$WORK/sums" "$WORK/now" || fail "other files with an empty fast disk"
fill last
sums "$WORK/sums"
down_well
sound
up
sums "$WORK/now"
cmp "$WORK/sums" "$WORK/now" || fail "other files after a new mount"
down_well
# The old one is not taken for the new one.
mv "$WORK/old" "$IMAGE.fast"
if mounts; then
    sums "$WORK/now"
    cmp "$WORK/sums" "$WORK/now" || fail "an old fast disk shows other files"
    down_well
fi
did "the fast disk went three times and came twice, once as an empty one: $(wc -l <"$WORK/sums") files as they were"
