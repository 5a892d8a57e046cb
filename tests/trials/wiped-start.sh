#!/usr/bin/env bash
# 3 MiB of zeros over the start of a volume are not its end: it is found by what stands at its end,
# `check` names the files that were there, `repair --drop-damaged` makes it clean, and every other
# file is as it was. It was "not an Onode image" then.
. "$(dirname "$0")/common.sh"
lines=()
for device in flash flash-direct tier scm; do
    use "${device%-direct}"
    # What is known by its first bytes alone has to be named.
    spec() {
        case $device in
            flash-direct) echo "flash:$IMAGE,direct" ;;
            scm) echo "scm:$IMAGE" ;;
            *) volume_of "$IMAGE" ;;
        esac
    }
    case $device in
        flash) "$ONODE" mkfs --size 128M "$(spec)" ;;
        flash-direct) "$ONODE" mkfs "$(spec),size=128M" ;;
        tier) "$ONODE" mkfs "$(spec),size=128M,fast-size=32M" ;;
        scm) "$ONODE" mkfs "$(spec),size=128M" ;;
    esac >>"$WORK/onode.log" 2>&1 || fail "mkfs on $device"
    mkdir -p "$MNT"
    there() { "$ONODE" mount "$(spec)" "$MNT" >>"$WORK/onode.log" 2>&1 || fail "mount of $device"; }
    away() { "$ONODE" umount "$MNT" >>"$WORK/onode.log" 2>&1 || fail "umount of $device"; }
    there
    # Whole pages: the ends of files that are none lie together, and would all be lost together.
    bytes=262144
    [ "$device" = flash-direct ] && bytes=$((64 * 4080))
    for n in $(seq 200); do head -c "$bytes" /dev/urandom >"$MNT/f$n"; done
    (cd "$MNT" && sha256sum f*) >"$WORK/sums"
    away
    dd if=/dev/zero of="$IMAGE" bs=1M count=3 conv=notrunc status=none
    # The table of spaces of a memory is lost with its start, and spaces that it named may be: that
    # asks for consent.
    consent=()
    if [ "$device" = scm ]; then
        asked info "$(spec)"
        [ "$CODE" -eq 23 ] || { cat "$WORK/said"; fail "$device: info says $CODE without consent"; }
        consent=(--accept-loss)
    else
        asked info "$(spec)"
        [ "$CODE" -eq 0 ] || { cat "$WORK/said"; fail "$device: info says $CODE"; }
    fi
    asked check "$(spec)"
    found=$CODE
    { [ "$CODE" -eq 0 ] || [ "$CODE" -eq 4 ] || [ "$device/$CODE" = scm/8 ]; } || { tail -n 3 "$WORK/said"; fail "$device: check says $CODE"; }
    asked repair --drop-damaged "${consent[@]}" "$(spec)"
    { [ "$CODE" -eq 0 ] || [ "$CODE" -eq 1 ]; } || { tail -n 3 "$WORK/said"; fail "$device: repair says $CODE"; }
    sed -n 's|^restore from a backup: /||p' "$WORK/said" | sort -u >"$WORK/named"
    asked check "$(spec)"
    [ "$CODE" -eq 0 ] || { tail -n 3 "$WORK/said"; fail "$device: after a repair check says $CODE"; }
    there
    [ "$(find "$MNT" -name 'f*' | wc -l)" -eq 200 ] || fail "$device: $(find "$MNT" -name 'f*' | wc -l) of 200 names are left"
    { (cd "$MNT" && sha256sum --check --quiet "$WORK/sums" 2>/dev/null) || true; } | sed -n 's/: FAILED.*//p' | sort >"$WORK/wrong"
    away
    unnamed=$(comm -13 "$WORK/named" "$WORK/wrong" | wc -l)
    [ "$unnamed" -eq 0 ] || fail "$device: $unnamed files are wrong, and repair did not name them"
    wrong=$(wc -l <"$WORK/wrong")
    # 3 MiB are twelve of these files, and at both borders of the zeros half a segment belongs to
    # another one.
    [ "$wrong" -le 20 ] || fail "$device: $wrong of 200 files are lost, 3 MiB held at most 20 of them"
    lines+=("$device: $wrong of 200 lost and named (check $found)")
done
did "$(printf '%s; ' "${lines[@]}")"
