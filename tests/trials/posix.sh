#!/usr/bin/env bash
# What programs expect of any file system, asked as the conformance suites asked it when it was not
# so.
. "$(dirname "${BASH_SOURCE[0]}")/../apps/common.sh"
need python3=python3 setfacl=acl setpriv=util-linux findmnt=util-linux rsync=rsync
HERE=$REPOSITORY/tests/trials
FILES=${FILES:-$([ "${TRIALS:-}" = long ] && echo 200000 || echo 20000)}
IN_MEMORY=$(mktemp -d "/dev/shm/onode-$NAME.XXXXXX")
PLACE=$IN_MEMORY
LIMITS=()
before_clean_up() {
    rm -rf "$IN_MEMORY"
    [ ${#LIMITS[@]} -eq 0 ] || rmdir "${LIMITS[@]}" 2>/dev/null
}
image() { IMAGE=$PLACE/$1; }
spec_of() {
    case $1 in
        flash) echo "flash:$PLACE/flash" ;;
        scm) echo "scm:$PLACE/scm" ;;
        flash+scm) echo "flash+scm:$PLACE/both,$PLACE/both.index" ;;
        tier) echo "tier:$PLACE/ssd,$PLACE/hdd" ;;
    esac
}

# Set-id bits, access times, attributes.
chmod 755 "$PLACE"
image posix
for options in noatime strictatime; do
    onode_up 256M -o "suid,dev,$options"
    mkdir -p "$MNT/$options"
    chmod 777 "$MNT/$options"
    python3 "$HERE/posix.py" "$MNT/$options" "$options" || fail "with -o $options"
    seen=$(findmnt -no OPTIONS "$MNT")
    case $options/,$seen, in
        noatime/*,noatime,*) ;;
        strictatime/*,noatime,* | strictatime/*,relatime,*) fail "-o $options is shown as $seen" ;;
        strictatime/*) ;;
        *) fail "-o $options is shown as $seen" ;;
    esac
    onode_down
done

# Handles of files that the kernel knows nothing of any more.
onode_up
python3 "$HERE/handles.py" keep "$MNT" "$WORK/handles" || fail "handles cannot be had"
onode_down
onode_up
python3 "$HERE/handles.py" open "$MNT" "$WORK/handles" || fail "handles from before are lost"

# Every mount's source is what it can be mounted with again.
onode_down
for kind in flash scm flash+scm tier; do
    "$ONODE" mkfs "$(spec_of "$kind"),size=64M" >/dev/null || fail "mkfs of $kind"
    (cd "$PLACE" && "$ONODE" mount "$(spec_of "$kind" | sed "s|$PLACE/||g")" "$MNT") || fail "mount of $kind"
    source=$(findmnt -no SOURCE "$MNT")
    [ "$source" = "$(spec_of "$kind")" ] || fail "the source of $(spec_of "$kind") is $source"
    echo "$kind" >"$MNT/kind"
    "$ONODE" umount "$MNT" >/dev/null || fail "umount of $kind"
    "$ONODE" mount "$source" "$MNT" || fail "mount of $source"
    [ "$(cat "$MNT/kind")" = "$kind" ] || fail "$source is another volume"

    # Full: a write that finds no space says so at once, and what is removed is there for the next.
    dd if=/dev/zero of="$MNT/big" bs=1M status=none 2>/dev/null && fail "$kind has no end"
    begin=$(date +%s%N)
    for _ in $(seq 20); do dd if=/dev/zero of="$MNT/more" bs=64K count=1 conv=notrunc oflag=append status=none 2>/dev/null || true; done
    took=$((($(date +%s%N) - begin) / 1000000))
    [ "$took" -lt 2000 ] || fail "$kind: 20 writes that find no space take $took ms"
    rm "$MNT/big" "$MNT/more"
    free=$(df --output=avail -k "$MNT" | tail -n 1)
    [ "$free" -gt 30000 ] || fail "$kind: $free KiB are free after everything was removed"
    head -c 20000000 /dev/zero >"$MNT/again" || fail "$kind: what was removed is not there"
    "$ONODE" umount "$MNT" >/dev/null || fail "umount of full $kind"
    rm -f "$PLACE"/*
done

# Whatever the kernel remembers, the server lives with 64 MiB. What it is made of matters less than
# that it ends well.
limit_group() {
    local group
    for group in "/sys/fs/cgroup/memory/$NAME-$$" "/sys/fs/cgroup/$NAME-$$"; do
        mkdir "$group" 2>/dev/null || continue
        LIMITS+=("$group")
        for file in memory.limit_in_bytes memory.max; do
            [ -e "$group/$file" ] && echo $((64 << 20)) >"$group/$file" && GROUP=$group && return 0
        done
    done
    return 1
}
GROUP=
# Who makes the pages of an image in memory pays for them.
PLACE=$WORK/limit
mkdir "$PLACE"
if limit_group; then
    for kind in flash scm flash+scm tier; do
        size=$((128 + FILES / 500))M
        "$ONODE" mkfs "$(spec_of "$kind"),size=$size" >/dev/null || fail "mkfs of $kind"
        "$ONODE" mount "$(spec_of "$kind")" "$MNT" || fail "mount of $kind"
        python3 - "$MNT" "$FILES" <<'END' || fail "making files on $kind"
import os, sys
for number in range(int(sys.argv[2])):
    folder = f"{sys.argv[1]}/{number // 1000}"
    if number % 1000 == 0:
        os.mkdir(folder)
    os.close(os.open(f"{folder}/a-name-of-usual-length-{number}", os.O_CREAT | os.O_WRONLY))
END
        "$ONODE" umount "$MNT" >/dev/null || fail "umount of $kind"
        sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" mount -f "$3" "$4"' - "$GROUP" "$ONODE" "$(spec_of "$kind")" "$MNT" \
            >>"$WORK/onode.log" 2>&1 &
        SERVER=$!
        wait_for_mount
        found=$(ls -lR "$MNT" | grep -c a-name) || true
        [ "$found" -eq "$FILES" ] || fail "$kind: $found of $FILES files are listed with 64 MiB of memory"
        head -c 60000000 /dev/urandom >"$MNT/content" || fail "$kind: writing with 64 MiB of memory"
        sync "$MNT/content"
        peak=$(awk '/VmHWM/ { print $2 }' "/proc/$SERVER/status")
        "$ONODE" umount "$MNT" >/dev/null || fail "umount of $kind"
        wait "$SERVER" || fail "$kind: the server ended with $?"
        SERVER=
        rm -f "$PLACE"/*
        did "$kind: $FILES files and 60 MB with 64 MiB of memory; $((peak / 1024)) MiB at most"
    done
else
    echo "$NAME: skipped the limit of memory: there is no control group to set it"
fi
did "set-id bits, times, attributes, handles, sources of mounts, full volumes"
