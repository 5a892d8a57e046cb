#!/usr/bin/env bash
# Volumes filled to ENOSPC with small files through the kernel lose nothing, can be emptied, and can
# be mounted and checked afterwards. They could not: on memory every unlink but the first few said
# ENOSPC and then no command opened the volume; on two disks 24,720 of 196,905 accepted files of 100
# bytes were empty after an orderly unmount; on flash beside a memory 219 of 37,056 of 900 bytes; on
# aged flash `rm -rf` ended in ENOSPC.
. "$(dirname "$0")/common.sh"
here=$(cd "$(dirname "$0")" && pwd)

# one KIND SIZE SIZES ORDER [FAST]: fill, unmount in order, mount, compare, empty, and again as much
# room.
one() {
    local count free orders=("${@:4:1}")
    use "$1"
    make "$2" "${5:-32M}"
    up
    sync -f "$MNT"
    free=$(stat -f -c %a "$MNT")
    for round in $(seq "$ROUNDS"); do
        mkdir "$MNT/d"
        count=$(python3 "$here/full.py" fill "$MNT/d" "$3" "$WORK/log" 2>&1) || fail "$1 of $2, files of $3 bytes, round $round: $count"
        down_well
        up
        python3 "$here/full.py" verify "$MNT/d" "$WORK/log" || fail "$1 of $2, files of $3 bytes, round $round, after an orderly unmount"
        # A tree is removed as rm -r of other systems does it, in the order of the directory.
        python3 "$here/full.py" empty "$MNT/d" "$WORK/log" "$4" || fail "$1 of $2, files of $3 bytes, round $round: it cannot be emptied"
        rmdir "$MNT/d" || fail "$1 of $2, files of $3 bytes: something is left"
    done
    down_well
    sound
    up
    local left
    left=$(stat -f -c %a "$MNT")
    [ $((left * 100)) -ge $((free * 97)) ] || fail "$1 of $2, files of $3 bytes: $left of $free blocks are free at the end"
    down_well
    lines+=("$1, $2: $count files of $3 bytes")
    rm -rf "${PLACE:?}/$1"
}

lines=() ROUNDS=1
if is_long; then
    ROUNDS=${FULL_ROUNDS:-3}
    for kind in "${DEVICES[@]}"; do
        for size in 40M 64M 96M; do
            for files in 0 100 300 900 1000 4096 65536 0,100,300,1000,4096,65536; do
                for order in listed drawn made; do one "$kind" "$size" "$files" "$order"; done
            done
        done
    done
    one tier 48M 150 listed 24M
    one tier 48M 1100 drawn 24M
else
    one scm 32M 1000 listed
    one scm 4M 0 drawn
    one tier 16M 1100 listed 8M
    one tier 16M 150 drawn 8M
    one flash+scm 8M 900 listed
    one flash+scm-buffer 8M 300 drawn
    one flash 8M 300 listed
fi
printf '  %s\n' "${lines[@]}"
did "${#lines[@]} volumes filled, compared after an orderly unmount, emptied, checked"
