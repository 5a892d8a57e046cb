#!/usr/bin/env bash
# One memory, several processes: a mount, programs on the library and the command beside it see each
# other's files at once, and those that are killed in the middle take nothing with them.
ONODE_DEVICE=scm
. "$(dirname "$0")/common.sh"
need cc=gcc
library=$(dirname "$ONODE")
[ -e "$library/libonode_c.so" ] || skip "there is no $library/libonode_c.so; build it: cargo build --release -p onode-capi"
export LD_LIBRARY_PATH=$library HEAP=scm:$IMAGE
for name in cp cat; do
    cc -std=gnu11 -O2 -I "$REPOSITORY/crates/access/capi/include" -o "$WORK/$name" \
        "$REPOSITORY/examples/memory/$name.adapted.c" -L "$library" -lonode_c || fail "cannot build $name"
done

onode_up 256M
head -c 300000 /dev/urandom >"$WORK/content"
# What the mount writes, others have at once, and the other way round: a block of memory that became
# a file.
cp "$WORK/content" "$MNT/one" || fail "writing through the mount"
"$WORK/cat" /one | cmp - "$WORK/content" || fail "the library does not see what the mount wrote"
"$WORK/cp" /one /two || fail "mm_to_file beside a mount"
cmp "$MNT/two" "$WORK/content" || fail "the mount does not see what the library made"
"$ONODE" get "$HEAP" /two "$WORK/got" >/dev/null && cmp "$WORK/got" "$WORK/content" || fail "the command beside a mount"
"$ONODE" put "$HEAP" "$WORK/content" /three >/dev/null || fail "put beside a mount"
cmp "$MNT/three" "$WORK/content" || fail "the mount does not see what the command put"
for n in $(seq 20); do
    echo "$n" >"$MNT/number"
    [ "$("$WORK/cat" /number)" = "$n" ] || fail "round $n: an old content was read"
    "$ONODE" put "$HEAP" "$MNT/number" /copy >/dev/null || fail "round $n: put"
    [ "$(cat "$MNT/copy")" = "$n" ] || fail "round $n: the mount shows an old content"
    mv "$MNT/copy" "$MNT/copy$n"
done
[ "$("$ONODE" ls "$HEAP" / | grep -c copy)" -eq 20 ] || fail "names: $("$ONODE" ls "$HEAP" /)"
# A name that is removed here is gone there.
rm "$MNT/two"
"$WORK/cat" /two >/dev/null 2>&1 && fail "a removed file is still read"

# A file that is open here, removed there and made anew under its name: the handle is stale and
# never shows the other one's bytes.
echo old >"$MNT/again"
exec 7<"$MNT/again"
"$ONODE" rm "$HEAP" /again >/dev/null || fail "rm beside a mount"
echo new >"$WORK/new"
"$ONODE" put "$HEAP" "$WORK/new" /again >/dev/null || fail "put in place of a removed file"
cat <&7 >"$WORK/stale" 2>"$WORK/why" && fail "a handle of a removed file reads: $(cat "$WORK/stale")"
grep -q "Stale file handle" "$WORK/why" || fail "a handle of a removed file: $(cat "$WORK/why")"
[ ! -s "$WORK/stale" ] || fail "a handle of a removed file shows bytes: $(cat "$WORK/stale")"
exec 7<&-
[ "$(cat "$MNT/again")" = new ] || fail "the file that was made anew is not what its name leads to"

# The memory cannot be divided anew while somebody uses it, and that is said; nothing changes.
"$ONODE" spaces resize "$IMAGE" --size 512M 2>"$WORK/why" && fail "a memory was resized under a mount"
grep -q "unmount" "$WORK/why" || fail "resizing under a mount: $(cat "$WORK/why")"
"$ONODE" spaces resize "$MNT" --size 512M 2>"$WORK/why" && fail "a mount was taken for a memory"
grep -q "not where it is mounted" "$WORK/why" || fail "resizing a mount: $(cat "$WORK/why")"

# Killed at any moment, while the mount works.
for n in $(seq "${KILLS:-10}"); do
    (while :; do "$WORK/cp" /one "/killed$n" && "$ONODE" rm "$HEAP" "/killed$n" >/dev/null; done) >/dev/null 2>&1 &
    victim=$!
    for i in $(seq 30); do cp "$WORK/content" "$MNT/kept$i" || fail "round $n: writing beside a victim"; done
    pkill -KILL -P "$victim" 2>/dev/null || true
    kill -KILL "$victim" 2>/dev/null || true
    wait "$victim" 2>/dev/null || true
    for i in $(seq 30); do cmp "$MNT/kept$i" "$WORK/content" || fail "round $n: a file is damaged"; done
done
rm -f "$MNT"/killed*
onode_down
did "mount, library and command on one memory; ${KILLS:-10} processes killed beside it, nothing lost"
