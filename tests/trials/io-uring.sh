#!/usr/bin/env bash
# Mounts whose requests come by io_uring, which root's mounts switch on in the kernel, and by the
# device of FUSE, as every kernel has it: the trials of what programs expect, of coherence and of
# many programs run once more that way. The switch is put back at the end.
. "$(dirname "$0")/common.sh"
need python3=python3-minimal taskset=util-linux unshare=util-linux
SWITCH=/sys/module/fuse/parameters/enable_uring
[ -e "$SWITCH" ] || { echo "$NAME: skipped: this kernel does not offer FUSE over io_uring"; exit 77; }
before=$(cat "$SWITCH")
before_clean_up() { rm -rf "$PLACE"; echo "$before" >"$SWITCH"; }

# comes is 1 if requests of the mount come by io_uring.
comes() { "$ONODE" stat --json "$MNT" | python3 -c 'import json, sys; print(json.load(sys.stdin)["settings"]["io_uring"])'; }
# expect WANTED OPTION mounts so.
expect() {
    up -o "$2"
    [ "$(comes)" = "$1" ] || fail "with $2 and the switch at $(cat "$SWITCH") io_uring is $(comes)"
}

use flash
make 256M
expect 0 io-uring=off
down_well
# The kernel has one switch, and a test that runs beside this one turns it on: who turns it is seen
# where a file of our own lies over it, in a mount namespace.
for expected in off=N auto=Y; do
    echo N >"$WORK/switch"
    unshare --mount bash -euc '
        mount --bind "$1" "$2"
        "$3" mount -o "io-uring=$6" "$4" "$5"
        "$3" umount "$5"
    ' - "$WORK/switch" "$SWITCH" "$ONODE" "$(spec)" "$MNT" "${expected%=*}" >"$WORK/said" 2>&1 ||
        { cat "$WORK/said"; fail "a mount in a mount namespace of its own"; }
    [ "$(cat "$WORK/switch")" = "${expected#*=}" ] || fail "io-uring=${expected%=*} left the switch at $(cat "$WORK/switch")"
done
for option in on auto; do
    echo N >"$SWITCH"
    expect 1 "io-uring=$option"
    [ "$(cat "$SWITCH")" = Y ] || fail "io-uring=$option left the switch at $(cat "$SWITCH")"
    [ "$option" = auto ] || down_well
done

# A program on each processor that never rests: what is asked is answered all the same. One that
# serves with the lowest policy would wait a second for each of its turns.
spinners=()
for processor in $(seq 0 $(($(nproc) - 1))); do
    taskset -c "$processor" python3 -c 'while True: pass' & spinners+=($!)
done
timeout 60 python3 - "$MNT" <<'P' || { kill "${spinners[@]}"; fail "2000 files beside programs that never rest"; }
import os, sys
for n in range(2000):
    with open(f"{sys.argv[1]}/{n}", "wb") as file: file.write(b"x" * 100)
    if n % 500 == 0: os.sync()
P
kill "${spinners[@]}"
wait "${spinners[@]}" 2>/dev/null || true

# A killed server leaves a dead mount, which the next one takes away.
sync "$MNT"
kill -KILL "$SERVER"
wait "$SERVER" 2>/dev/null || true
SERVER=
up -o io-uring=on
[ "$(ls "$MNT" | wc -l)" = 2000 ] || fail "$(ls "$MNT" | wc -l) of 2000 files after a kill"
down_well
sound

# In one that is full, a write waits for room until the kernel forgets what was removed.
use flash
make 16M
up -o io-uring=on
for round in 1 2 3 4 5; do
    head -c 9M /dev/urandom >"$MNT/one" || fail "round $round: no room after a removal"
    rm "$MNT/one"
done
down_well
sound

# One thread a processor: a write that waits for a read to be answered must not keep it from coming.
MOUNT_OPTIONS=io-uring=on,threads=1 TRIAL_SECONDS=300 "$REPOSITORY/tests/trials/run" coherence >"$WORK/coherence" 2>&1 ||
    { tail -n 20 "$WORK/coherence"; fail "coherence with a thread for each processor"; }

again=(posix coherence many-at-once)
for trial in "${again[@]}"; do
    MOUNT_OPTIONS=io-uring=off SECONDS_EACH=4 bash "$REPOSITORY/tests/trials/$trial.sh" >"$WORK/$trial" 2>&1 || { tail -n 20 "$WORK/$trial"; fail "$trial by the device"; }
done
did "auto, on and off; beside busy programs; killed; full; and by the device ${again[*]} once more"
