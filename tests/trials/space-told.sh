#!/usr/bin/env bash
# What `df` says of a full volume is so: when no file of 1,000 bytes fits any more, at most a tenth
# of what was free is still said to be free (on two disks it was 62 %). How fast the files are
# removed is printed beside ext4 in the same minute, and judged by nobody: times are no test.
. "$(dirname "$0")/common.sh"
need mkfs.ext4=e2fsprogs
here=$(cd "$(dirname "$0")" && pwd)
SIZE=$(is_long && echo 256M || echo 16M)
FILE=${FILE_BYTES:-1000}
devices=("${DEVICES[@]}")
[ $# -eq 0 ] || devices=("$@")

# emptied DIRECTORY removes the files of the log; files a second are in RATE.
emptied() {
    local begin end
    begin=$(date +%s%N)
    python3 "$here/full.py" empty "$1" "$WORK/log" made || fail "$1 cannot be emptied"
    end=$(date +%s%N)
    RATE=$((COUNT * 1000000 / ((end - begin) / 1000 + 1)))
}

# A file of ext4 takes a block, so its image has room for as many files.
truncate -s "$((${SIZE%M} * 5))M" "$PLACE/ext4"
mkfs.ext4 -q -N "$((${SIZE%M} * 2000))" "$PLACE/ext4"
mkdir "$EXT"

lines=() failures=()
for kind in "${devices[@]}"; do
    use "$kind"
    make "$SIZE" "$SIZE"
    up
    mkdir "$MNT/d"
    sync -f "$MNT"
    before=$(stat -f -c '%a * %S' "$MNT")
    COUNT=$(python3 "$here/full.py" fill "$MNT/d" "$FILE" "$WORK/log") || fail "$kind: $COUNT"
    after=$(stat -f -c '%a * %S' "$MNT")
    emptied "$MNT/d"
    ours=$RATE
    down_well
    rm -rf "${PLACE:?}/$kind"

    mount -o loop "$PLACE/ext4" "$EXT"
    mkdir -p "$EXT/d"
    python3 "$here/full.py" again "$EXT/d" "$WORK/log" || fail "ext4 has no room for $COUNT files"
    emptied "$EXT/d"
    umount "$EXT"

    told=$((100 * (after) / (before))) share=$((100 * ours / RATE))
    lines+=("$kind: $COUNT files of $FILE bytes in $(((before) >> 20)) MiB, $told % said to be free; $ours removed a second, ext4 $RATE ($share %)")
    [ "$told" -le 10 ] || failures+=("$kind says that $told % are free when nothing fits")
done
printf '  %s\n' "${lines[@]}"
[ ${#failures[@]} -eq 0 ] || fail "${failures[*]}"
did "df within a tenth on ${#lines[@]} kinds of volume"
