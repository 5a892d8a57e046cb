#!/usr/bin/env bash
# A mounted volume that becomes smaller while files are written to it: its server is killed at any
# moment, the command is interrupted, and the volume is asked for again, until it is as small as it
# was to be. It always has one of both sizes, all that was synced, and nothing that `check` finds.
. "$(dirname "$0")/common.sh"
LARGE=536870912 SMALL=201326592
is_long && ROUNDS=40 || ROUNDS=4

# size prints the bytes that the mounted volume has.
size() { "$ONODE" --json resize -n "$MNT" | sed -n 's/.*"before": \([0-9]*\).*/\1/p'; }

# whole says that every file of before is whole.
whole() { (cd "$MNT" && md5sum --quiet -c "$WORK/sums") || fail "$ONODE_DEVICE: content is missing $1"; }

lines=()
for kind in flash flash+scm tier; do
    use "$kind"
    make 512M
    up
    # What goes lies before what stays.
    for n in $(seq 12); do head -c 25M /dev/urandom >"$MNT/gone$n"; done
    for n in $(seq 60); do head -c $((RANDOM * 150)) /dev/urandom >"$MNT/kept$n"; done
    sync "$MNT"/kept*
    rm "$MNT"/gone*
    # A kill would bring back what is not synced.
    sync "$MNT"
    (cd "$MNT" && md5sum kept*) >"$WORK/sums"
    kills=0 interrupts=0 resized=0
    for round in $(seq "$ROUNDS"); do
        bytes=$(size)
        if [ "$bytes" -eq "$SMALL" ]; then
            resized=$((resized + 1))
            "$ONODE" resize "$MNT" "$LARGE" >/dev/null || fail "$kind: it does not grow again"
            for n in 1 2 3 4; do head -c 50M /dev/urandom >"$MNT/gone$n"; done
            rm "$MNT"/gone*
            sync "$MNT"
        fi
        "$ONODE" resize "$MNT" "$SMALL" >"$WORK/resized" 2>&1 &
        command=$!
        (for n in $(seq 40); do echo "$round $n" >"$MNT/written$n" && sync "$MNT/written$n" || exit 0; done) 2>/dev/null &
        writer=$!
        sleep "0.0$((RANDOM % 10))"
        if [ $((round % 2)) -eq 0 ]; then
            kill -INT "$command" 2>/dev/null && interrupts=$((interrupts + 1))
            code=0
            wait "$command" || code=$?
            [ "$code" -le 1 ] || { cat "$WORK/resized"; fail "$kind: an interrupted resize ends with $code"; }
            wait "$writer" || true
            down
        else
            killed
            kills=$((kills + 1))
            wait "$command" "$writer" 2>/dev/null || true
        fi
        asked check "$(spec)"
        [ "$CODE" -eq 0 ] || { cat "$WORK/said"; fail "$kind: check says $CODE in round $round"; }
        up
        bytes=$(size)
        [ "$bytes" -eq "$SMALL" ] || [ "$bytes" -eq "$LARGE" ] || fail "$kind: it has $bytes bytes"
        whole "in round $round"
    done
    "$ONODE" resize "$MNT" "$SMALL" >/dev/null || fail "$kind: it does not become smaller"
    whole "at the end"
    down
    long=$(stat -c %s "$IMAGE")
    [ "$long" -le $((SMALL + 8 * 1048576)) ] || fail "$kind: the image has $long bytes for a volume of $SMALL"
    lines+=("$kind: $kills kills, $interrupts interrupts, $resized times made smaller before")
done
did "$(printf '%s; ' "${lines[@]}")"
