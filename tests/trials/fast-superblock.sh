#!/usr/bin/env bash
# One bad sector of a superblock of the fast disk loses nothing of what `acknowledge=either`
# acknowledged, and with both damaged the volume is not mounted without them unasked. 2 to 14 of 80
# to 100 synced files were left.
. "$(dirname "$0")/common.sh"
use tier
"$ONODE" mkfs "$(spec),size=64M,fast-size=32M,acknowledge=either" >>"$WORK/onode.log" 2>&1
up
for n in $(seq 80); do
    echo "$n" >"$MNT/f$n"
    sync "$MNT/f$n"
done
killed
keep
lines=()
damage() { printf XXXX | dd of="$IMAGE.fast" bs=1 seek="$1" conv=notrunc status=none; }
# The first superblock, the second, one after the other.
for places in 50 4146 "50 4146"; do
    bring_back
    for at in $places; do damage "$at"; done
    asked ls "$(spec)" /
    names=$(grep -c '^.*f[0-9]' "$WORK/said" || true)
    if [ "$CODE" -eq 0 ] && [ "$names" -ne 80 ]; then fail "bytes $places of the fast disk damaged: $names of 80 synced files, code 0"; fi
    case $places in
        *" "*) ;;
        *) [ "$CODE" -eq 0 ] || { cat "$WORK/said"; fail "one bad sector at $places of the fast disk: ls says $CODE"; } ;;
    esac
    lines+=("at $places: code $CODE, $names names")
    if mounts; then
        there=$(find "$MNT" -name 'f*' | wc -l)
        down_well
        [ "$there" -eq 80 ] || fail "bytes $places of the fast disk damaged: mounted with $there of 80 synced files"
    fi
done
did "$(printf '%s; ' "${lines[@]}")"
