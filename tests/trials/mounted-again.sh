#!/usr/bin/env bash
# A mount that is made where another one has just been taken away stays. It did not: the server of
# the first one unmounted the directory once more when it ended, by name, and what programs wrote
# from then on landed below it. The first server is stopped here, so that it surely ends after the
# second began.
. "$(dirname "$0")/common.sh"

use scm
make 32M
memory=$(spec)
use flash
make 32M
image=$(spec)
mkdir -p "$MNT"
rounds=0
# again FIRST SECOND: the second volume is mounted where the first one was, and still is when the
# first server has ended.
again() {
    local first
    "$ONODE" mount -f "$1" "$MNT" >"$WORK/first" 2>&1 &
    SERVER=$! first=$!
    wait_for_mount
    kill -STOP "$first"
    # The command umount would ask the server that is stopped for its root.
    python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).umount2(sys.argv[1].encode(), 8))' "$MNT" ||
        fail "umount of $1"
    "$ONODE" mount -f "$2" "$MNT" >"$WORK/second" 2>&1 &
    SERVER=$!
    wait_for_mount
    touch "$MNT/file$rounds"
    kill -CONT "$first"
    wait "$first" || { cat "$WORK/first"; fail "the server of $1 ended with $?"; }
    mountpoint -q "$MNT" || fail "the mount of $2 is gone since the server of $1 has ended"
    [ -e "$MNT/file$rounds" ] || fail "a file on $2 is gone since the server of $1 has ended"
    "$ONODE" umount "$MNT" >"$WORK/unmounted" 2>&1 || { cat "$WORK/unmounted"; fail "umount of $2"; }
    wait "$SERVER" || { cat "$WORK/second"; fail "the server of $2 ended with $?"; }
    SERVER=
    rounds=$((rounds + 1))
}
for _ in 1 2 3; do
    again "$memory" "$memory"
    again "$memory" "$image"
    again "$image" "$memory"
done
left=$(ls -A "$MNT")
[ -z "$left" ] || fail "files landed below the mount: $left"
for volume in "$memory" "$image"; do
    "$ONODE" check "$volume" >/dev/null || fail "check of $volume"
done
did "$rounds mounts where another one had just been"
