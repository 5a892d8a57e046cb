#!/usr/bin/env bash
# What one writes, the other reads at once: every pair of a writer and a reader on one mount; on two
# mounts of one memory; and beside a library that has that memory open. STEPS=100000 is the long
# form, about an hour for each of MOUNTS: the options of one mount, and `shared` for a memory with
# two. PAIRS=library takes only the pairs of `shared` with the library.
. "$(dirname "${BASH_SOURCE[0]}")/../apps/common.sh"
need cc=gcc python3=python3
STEPS=${STEPS:-$([ "${TRIALS:-}" = long ] && echo 100000 || echo 200)}
MOUNTS=${MOUNTS:-noatime writeback threads=4 strictatime shared}
SOURCE=$REPOSITORY/tests/trials/coherence.c
MEMORY=/dev/shm/$(basename "$WORK").coherence
OTHER=$WORK/other
LIBRARY=$(dirname "$ONODE")
before_clean_up() {
    umount -l "$OTHER" 2>/dev/null
    rm -f "$MEMORY"
}

cc -O2 -Wall -o "$WORK/coherence" "$SOURCE" -lpthread || fail "cannot build coherence.c"
said=()
tell() {
    printf '%s\n' "${said[@]}" | sed "s/^/$NAME: /"
    did "no old byte in $STEPS steps of each pair"
}

# One mount, readers busy in the kernel's cache meanwhile: on flash, also with the kernel's write
# cache, several threads and access times that every read renews.
for options in ${MOUNTS/shared/}; do
    onode_up 256M -o "$options"
    mkdir "$MNT/$options"
    "$WORK/coherence" "$STEPS" 2 "$MNT/$options" >"$WORK/said" || { cat "$WORK/said"; fail "old bytes with -o $options"; }
    said+=("$options: $(tail -n 1 "$WORK/said")")
    onode_down
done

[[ $MOUNTS == *shared* ]] || { tell; exit; }

# Two mounts of one memory, and a library beside them.
"$ONODE" mkfs "scm:$MEMORY,size=128M" >/dev/null
mkdir -p "$OTHER" "$MNT"
"$ONODE" mount -o "${MOUNT_OPTIONS:-rw}" "scm:$MEMORY" "$MNT" || fail "the first mount of a memory"
"$ONODE" mount -o "${MOUNT_OPTIONS:-rw}" "scm:$MEMORY" "$OTHER" || fail "the second mount of a memory"
both() {
    "$@" "$STEPS" 1 "$MNT" "$OTHER" "scm:$MEMORY" >"$WORK/said" || { cat "$WORK/said"; fail "old bytes on a shared memory"; }
    said+=("shared memory: $(tail -n 1 "$WORK/said")")
}
if [ -e "$LIBRARY/libonode_c.so" ]; then
    cc -O2 -Wall -DLIBRARY -I "$REPOSITORY/crates/access/capi/include" -o "$WORK/coherence" "$SOURCE" \
        -L "$LIBRARY" -lonode_c -lpthread || fail "cannot build coherence.c with the library"
    export LD_LIBRARY_PATH=$LIBRARY
else
    said+=("no library: build it with cargo build --release -p onode-capi")
fi
both "$WORK/coherence"

# The time of every change of a content is its own, so who looks at times alone sees each.
times=$(for n in $(seq 200); do
    printf '%08d' "$n" | dd of="$MNT/times" conv=notrunc status=none
    stat -c %y "$OTHER/times"
done | sort -u | wc -l)
[ "$times" -eq 200 ] || fail "200 changes have $times times"

# A mapping shows what others changed a second ago.
printf 'old' >"$MNT/mapped"
python3 - "$MNT/mapped" "$OTHER/mapped" <<'END' || fail "a mapping keeps what is old"
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
mapping = mmap.mmap(fd, 3, prot=mmap.PROT_READ)
assert mapping[:3] == b"old"
with open(sys.argv[2], "r+b") as other:
    other.write(b"new")
for _ in range(50):
    if mapping[:3] == b"new":
        sys.exit(0)
    time.sleep(0.1)
sys.exit(1)
END
"$ONODE" umount "$OTHER" && "$ONODE" umount "$MNT" || fail "umount of a memory"
"$ONODE" check "scm:$MEMORY" >/dev/null || fail "check of the memory"
tell
