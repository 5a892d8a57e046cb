#!/usr/bin/env bash
# A volume on a loop device with direct I/O: files written, mounted again, compared; the server
# killed with synced files on it; the device refused to everybody else while it is in use.
. "$(dirname "$0")/common.sh"
need losetup=mount mkfs.ext4=e2fsprogs

DISK=$WORK/disk
truncate -s 1G "$DISK"
LOOP=$(losetup --find --show --direct-io=on "$DISK" 2>/dev/null || losetup --find --show "$DISK" 2>/dev/null) ||
    skip "loop devices cannot be had here"
before_clean_up() { umount -l "$MNT" 2>/dev/null; losetup --detach "$LOOP"; }
IMAGE=$LOOP

mkfs.ext4 -q "$LOOP"
"$ONODE" mkfs "$LOOP" >"$WORK/refused" 2>&1 && fail "mkfs took a device with ext4 on it"
grep -q ext4 "$WORK/refused" || fail "mkfs did not say what the device holds"
"$ONODE" mkfs --force "$LOOP" >/dev/null || fail "mkfs --force"

onode_up
mkdir "$WORK/source"
cp -r "$REPOSITORY/crates" "$REPOSITORY/docs" "$WORK/source"
head -c 50M /dev/urandom >"$WORK/source/big"
cp -r "$WORK/source" "$MNT/first"
"$ONODE" ls "$LOOP" >/dev/null 2>&1 && fail "a mounted device was opened a second time"
mkfs.ext4 -q -F "$LOOP" >/dev/null 2>&1 && fail "mkfs.ext4 took a device that is mounted"
diff -r "$WORK/source" "$MNT/first" || fail "the copy differs"
onode_down
onode_up
diff -r "$WORK/source" "$MNT/first" || fail "the copy differs after a new mount"

# Over and over, so that segments are cleaned and erased places show what they held before.
for round in 1 2 3 4; do
    head -c 40M /dev/urandom >"$WORK/part"
    cp "$WORK/part" "$MNT/rewritten"
    sync "$MNT/rewritten"
    cp "$WORK/part" "$MNT/unsynced-$round"
    if [ $((round % 2)) -eq 0 ]; then
        kill -KILL "$SERVER"
        wait "$SERVER" 2>/dev/null || true
        umount -l "$MNT"
        check_image
        onode_up
        cmp "$WORK/part" "$MNT/rewritten" || fail "a synced file is not what was synced in round $round"
    fi
    rm -f "$MNT"/unsynced-*
done
diff -r "$WORK/source" "$MNT/first" || fail "the copy differs at the end"
onode_down
did "$(find "$WORK/source" -type f | wc -l) files on $LOOP mounted again and compared, 2 killed servers, 320 MiB rewritten"
