#!/usr/bin/env bash
# A device that is missing is refused. `up` made a file of its name in /dev, which is memory, and
# returned 0.
. "$(dirname "$0")/common.sh"
missing=/dev/onode-trial-$$
before_clean_up() { rm -rf "$PLACE" "$missing" "$missing.index" "$missing.fast"; }
mkdir -p "$MNT"
for spec in "flash:$missing" "scm:$missing" "flash+scm:$missing,$missing.index" "flash+scm:$PLACE/disk,$missing.index" "tier:$missing.fast,$missing" "tier:$PLACE/fast,$missing"; do
    code=0
    timeout 20 "$ONODE" up "$MNT" "$spec,size=64M" >"$WORK/said" 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || break
        if mountpoint -q "$MNT"; then umount -l "$MNT"; fail "$spec: it is mounted"; fi
        sleep 0.1
    done
    wait "$pid" || code=$?
    [ "$code" -ne 0 ] || fail "$spec: up says 0"
    ! ls "$missing"* >/dev/null 2>&1 || fail "$spec: there is a file in /dev now"
done
did "devices that are missing are refused by every kind of spec"
