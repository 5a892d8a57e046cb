#!/usr/bin/env bash
# Spaces of a memory beside a mounted volume: ext2 and FAT on them through loop devices, with real
# files, fsck, mounted again and after a kill of the server; an image that cannot be written; a
# folder that cannot be changed.
ONODE_DEVICE=scm
. "$(dirname "$0")/common.sh"
need losetup=mount mkfs.ext2=e2fsprogs mkfs.vfat=dosfstools mcopy=mtools

SPACES=$MNT/.onode/spaces
LOOPS=()
before_clean_up() {
    umount -l "$WORK"/ext2 "$WORK"/fat 2>/dev/null
    for loop in "${LOOPS[@]}"; do losetup --detach "$loop" 2>/dev/null; done
    umount -l "$MNT" 2>/dev/null
}

# loop_on NAME puts a loop device on a space and sets LOOP.
loop_on() {
    LOOP=$(losetup --find --show "$SPACES/$1" 2>/dev/null) || skip "loop devices cannot be had here"
    LOOPS+=("$LOOP")
}

"$ONODE" mkfs "scm:$IMAGE,size=256M,objects=96M" >/dev/null || fail "mkfs"
head -c 9000 "$ONODE" >"$WORK/firmware"
"$ONODE" spaces create "$IMAGE" boot --kind boot --image "$WORK/firmware" || fail "a boot space"
"$ONODE" spaces create "$IMAGE" ext2 --kind fs --size 48M || fail "a space for ext2"
"$ONODE" spaces create "$IMAGE" fat --kind fs --size 32M || fail "a space for FAT"

onode_up
"$ONODE" spaces list "$IMAGE" >"$WORK/refused" 2>&1 && fail "a mounted memory was opened a second time"
[ "$(ls -A "$MNT")" = "" ] || fail "the folder of spaces is listed in the root: $(ls -A "$MNT")"
[ "$(cd "$SPACES" && echo *)" = "boot ext2 fat" ] || fail "the spaces are $(cd "$SPACES" && echo *)"
[ "$(stat -c %s "$SPACES/ext2")" -eq $((48 << 20)) ] || fail "the length of a space"
cmp -n 9000 "$WORK/firmware" "$SPACES/boot" || fail "the image is not what it was made of"
if echo x | dd of="$SPACES/boot" conv=notrunc 2>/dev/null; then sync "$SPACES/boot" 2>/dev/null && fail "an image was written"; fi
cmp -n 9000 "$WORK/firmware" "$SPACES/boot" || fail "an image was changed"
for refused in "rm $SPACES/fat" "mv $SPACES/fat $MNT/fat" "mv $MNT/.onode $MNT/x" "rmdir $MNT/.onode" "touch $SPACES/new" \
    "mkdir $SPACES/new" "ln $SPACES/fat $MNT/fat" "mkdir $MNT/.onode" "chmod 777 $SPACES/fat"; do
    if $refused 2>/dev/null; then fail "the folder of spaces took: $refused"; fi
done
# Any alignment, and a length that stays.
head -c 100000 /dev/urandom >"$WORK/bytes"
dd if="$WORK/bytes" of="$SPACES/fat" bs=777 seek=3 conv=fsync 2>/dev/null || fail "writing a space"
dd if="$SPACES/fat" bs=777 skip=3 count=200 of="$WORK/read" 2>/dev/null
cmp -n 100000 "$WORK/read" "$WORK/bytes" || fail "a space holds something else"
[ "$(stat -c %s "$SPACES/fat")" -eq $((32 << 20)) ] || fail "a space was cut"

mkfs.ext2 -q -F "$SPACES/ext2" || fail "mkfs.ext2"
mkfs.vfat "$SPACES/fat" >/dev/null || fail "mkfs.vfat"
mkdir "$WORK/ext2" "$WORK/fat"

mount_both() {
    loop_on ext2
    mount -t ext2 "$LOOP" "$WORK/ext2" || fail "mount ext2"
    # Where the kernel has no FAT, the tools that know it without the kernel read and write the
    # space itself.
    if grep -qw vfat /proc/filesystems || modprobe vfat 2>/dev/null; then
        loop_on fat
        mount -t vfat "$LOOP" "$WORK/fat" || fail "mount FAT"
        FAT=mounted
    fi
}
FAT=mtools

fat_copy() {
    if [ $FAT = mounted ]; then cp -r "$WORK/source" "$WORK/fat/copy"; else mcopy -s -i "$SPACES/fat" "$WORK/source" ::copy; fi
}

# fat_compare: what FAT holds is what was copied.
fat_compare() {
    local found=$WORK/fat/copy
    if [ $FAT = mtools ]; then
        found=$WORK/from-fat
        rm -rf "$found"
        mcopy -s -i "$SPACES/fat" ::copy "$found" || fail "reading FAT"
    fi
    diff -r "$WORK/source" "$found" || fail "the copy differs on FAT"
}

unmount_fat() { if [ $FAT = mounted ]; then umount "$WORK/fat" || fail "umount of FAT"; fi; }

unmount_both() {
    umount "$WORK/ext2" || fail "umount of a space"
    unmount_fat
    for loop in "${LOOPS[@]}"; do losetup --detach "$loop"; done
    LOOPS=()
    e2fsck -f -n "$SPACES/ext2" >"$WORK/fsck.log" 2>&1 || { cat "$WORK/fsck.log"; fail "e2fsck found damage"; }
    fsck.vfat -n "$SPACES/fat" >"$WORK/fsck.log" 2>&1 || { cat "$WORK/fsck.log"; fail "fsck.vfat found damage"; }
}

mount_both
mkdir "$WORK/source"
cp -r "$REPOSITORY/docs" "$REPOSITORY/scripts" "$WORK/source"
head -c 10M /dev/urandom >"$WORK/source/big"
for place in "$WORK/ext2" "$MNT"; do
    cp -r "$WORK/source" "$place/copy"
    diff -r "$WORK/source" "$place/copy" || fail "a copy differs in $place"
done
rm "$WORK/ext2/copy/big"
fat_copy || fail "writing FAT"
fat_compare
unmount_both
onode_down

# All three are there again, in the same memory.
onode_up
mount_both
fat_compare
diff -r "$WORK/source" "$MNT/copy" || fail "the volume differs after a new mount"
diff -r "$WORK/source/docs" "$WORK/ext2/copy/docs" || fail "ext2 differs after a new mount"
cp "$WORK/bytes" "$WORK/ext2/synced"
sync -f "$WORK/ext2"
umount "$WORK/ext2"
unmount_fat
for loop in "${LOOPS[@]}"; do losetup --detach "$loop"; done
LOOPS=()
kill -KILL "$SERVER"
wait "$SERVER" 2>/dev/null || true
umount -l "$MNT"
onode_up
mount_both
cmp "$WORK/bytes" "$WORK/ext2/synced" || fail "a synced file is not what was synced"
unmount_both
onode_down
"$ONODE" spaces resize "$IMAGE" ext2 --size 64M || fail "resize"
"$ONODE" spaces remove "$IMAGE" fat || fail "remove"
onode_up
e2fsck -f -p "$SPACES/ext2" >/dev/null || fail "e2fsck of a longer space"
resize2fs "$SPACES/ext2" >/dev/null 2>&1 || fail "resize2fs of a longer space"
loop_on ext2
mount -t ext2 "$LOOP" "$WORK/ext2" || fail "mount of a longer space"
cmp "$WORK/bytes" "$WORK/ext2/synced" || fail "a longer space lost a file"
umount "$WORK/ext2"
losetup --detach "$LOOP"
LOOPS=()
[ "$(cd "$SPACES" && echo *)" = "boot ext2" ] || fail "a removed space is there"
onode_down
did "ext2 (mounted) and FAT ($FAT) on spaces of a file in memory: copies equal, fsck clean, a killed server lost nothing synced"
