#!/usr/bin/env bash
# A hard disk that does not answer: what the fast disk or memory has is read, and changes of the
# class either are synced all the same. One read of that disk stopped everything before. Its image
# lies on a file system whose server is stopped.
. "$(dirname "$0")/common.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root to drop the caches of the kernel"
use tier
BELOW=$WORK/below
mkdir "$BELOW"
"$ONODE" up "$BELOW" ram:size=600M >"$WORK/below.log" 2>&1 &
BELOW_SERVER=$!
before_clean_up() {
    kill -CONT "$BELOW_SERVER" 2>/dev/null
    umount -l "$MNT" 2>/dev/null
    [ -z "$SERVER" ] || kill -KILL "$SERVER" 2>/dev/null
    umount -l "$BELOW" 2>/dev/null
    kill -TERM "$BELOW_SERVER" 2>/dev/null
    rm -rf "$PLACE"
}
for _ in $(seq 200); do mountpoint -q "$BELOW" && break; sleep 0.05; done
mountpoint -q "$BELOW" || { cat "$WORK/below.log"; fail "no file system for the image"; }
SPEC=tier:$PLACE/fast,$BELOW/big
"$ONODE" mkfs "$SPEC,size=400M,fast-size=128M,acknowledge=either" >>"$WORK/onode.log" 2>&1 || fail "mkfs"
volume_of() { echo "$SPEC"; }

mounts -o threads=4 || { cat "$WORK/answer"; fail "mount: $ANSWER"; }
mkdir "$MNT/cold" "$MNT/hot"
"$ONODE" place "$MNT/cold" --bypass >/dev/null
head -c 2M /dev/urandom >"$MNT/cold/c"
head -c 2M /dev/urandom >"$MNT/hot/h"
sync "$MNT/cold/c" "$MNT/hot/h"
down
[ "$UNMOUNTED" -eq 0 ] || fail "unmount: $UNMOUNTED"
mounts -o threads=4 || { cat "$WORK/answer"; fail "second mount: $ANSWER"; }
"$ONODE" promote --wait "$MNT/hot" >/dev/null || fail "promote"
# The names and the way to both files are known; their content is not in memory.
for file in cold/c hot/h; do dd if="$MNT/$file" of=/dev/null bs=4k count=1 status=none; done
echo first >"$MNT/hot/w" && sync "$MNT/hot/w"
sync
echo 3 >/proc/sys/vm/drop_caches
ls -l "$MNT"/* >/dev/null

kill -STOP "$BELOW_SERVER"
dd if="$MNT/cold/c" of="$WORK/cold" bs=64k count=1 skip=20 status=none &
COLD=$!
sleep 1
timeout 20 dd if="$MNT/hot/h" of="$WORK/hot" bs=64k count=2 skip=6 status=none || fail "a hot read waits: $?"
timeout 20 sh -c "echo second >'$MNT/hot/w2' && sync '$MNT/hot/w2'" || fail "a sync of the class either waits: $?"
[ "$(timeout 20 cat "$MNT/hot/w2")" = second ] || fail "what was just written cannot be read"
kill -0 "$COLD" 2>/dev/null || fail "the cold read did not wait for its disk: this says nothing"
kill -CONT "$BELOW_SERVER"
wait "$COLD" || fail "the cold read: $?"
cmp "$WORK/cold" <(dd if="$MNT/cold/c" bs=64k count=1 skip=20 status=none) || fail "other bytes"
down
[ "$UNMOUNTED" -eq 0 ] && [ "$ENDED" -eq 0 ] || fail "unmount: $UNMOUNTED, $ENDED"
"$ONODE" check "$SPEC" >"$WORK/checked" 2>&1 || { cat "$WORK/checked"; fail "check"; }
umount "$BELOW"
wait "$BELOW_SERVER" || true
did "with the hard disk hung: a hot read, a synced change, and what was written; then the cold read"
