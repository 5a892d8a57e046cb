#!/usr/bin/env bash
# A volume on a block device is listed, found by its label and its number, checked and mounted by
# them; two of one label are refused.
. "$(dirname "$0")/common.sh"
need losetup=mount
LOOPS=()
before_clean_up() {
    umount -l "$MNT" 2>/dev/null
    for loop in "${LOOPS[@]}"; do losetup --detach "$loop" 2>/dev/null; done
    rm -rf "$PLACE"
}
for name in one two; do
    truncate -s 64M "$PLACE/$name"
    LOOPS+=("$(losetup --find --show "$PLACE/$name" 2>/dev/null)") || skip "loop devices cannot be had here"
done
label="trial $$"
"$ONODE" mkfs --label "$label" "${LOOPS[0]}" >/dev/null || fail "mkfs on a block device"
"$ONODE" list >"$WORK/listed" || fail "list"
grep -q "^${LOOPS[0]} .*$label" "$WORK/listed" || { cat "$WORK/listed"; fail "the volume is not listed"; }
number=$("$ONODE" list --udev "${LOOPS[0]}" | sed -n 's/^ID_FS_UUID=//p')
mkdir -p "$MNT"
for named in "LABEL=$label" "UUID=$number"; do
    "$ONODE" check "$named" >/dev/null || fail "check of $named"
    "$ONODE" mount "$named" "$MNT" || fail "mount of $named"
    echo "$named" >"$MNT/written" || fail "a write"
    "$ONODE" list | grep "^[^ ]*${LOOPS[0]} .*$MNT" >/dev/null || { "$ONODE" list; fail "list does not say where it is mounted"; }
    "$ONODE" umount "$MNT" || fail "umount"
done
[ "$("$ONODE" cat "LABEL=$label" /written)" = "UUID=$number" ] || fail "cat by the label"
"$ONODE" mkfs --label "$label" "${LOOPS[1]}" >/dev/null || fail "mkfs on the other one"
asked mount "LABEL=$label" "$MNT"
[ "$CODE" = 2 ] && grep -q "${LOOPS[0]}, ${LOOPS[1]}" "$WORK/said" || { cat "$WORK/said"; fail "two of one label: $CODE"; }
"$ONODE" label "${LOOPS[1]}" "another $$" || fail "label"
"$ONODE" info "LABEL=another $$" | grep -q "another $$" || fail "info by the new label"
