#!/usr/bin/env bash
# Files as memory beside a mount of the same volume: nothing of a file is lost by a look, and the
# mount sees whose it is.
. "$(dirname "$0")/../apps/common.sh"
need gcc=gcc setfattr=attr

LIBRARY=$(dirname "$ONODE")
[ -e "$LIBRARY/libonode_c.so" ] || skip "there is no libonode_c.so beside $ONODE; build it: cargo build --release -p onode-capi"
REGION=/dev/shm/$(basename "$WORK").heap
OTHER=$REGION.other
before_clean_up() { rm -f "$REGION" "$OTHER"; }

cat >"$WORK/look.c" <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "onode.h"
#define CHECK(what) do { if (!(what)) { printf("line %d: %s\n", __LINE__, onode_error()); exit(1); } } while (0)
int main(int count, char **arguments) {
    onode_heap *heap = onode_open_heap(arguments[1]);
    CHECK(heap && onode_use(heap) == 0);
    if (count > 2) {
        size_t bytes;
        char *memory = onode_map(heap, arguments[2], &bytes);
        CHECK(memory && bytes == 300000);
        strcpy(memory + 1000, "stored");
        CHECK(onode_unmap(heap, memory) == 0);
        int fd = onode_open(heap, arguments[2], O_RDWR, 0);
        CHECK(file_to_mm(fd, ONODE_DROP) == NULL); /* it has another name */
        CHECK(onode_pwrite(heap, fd, "written", 7, 2000) == 7 && onode_close(heap, fd) == 0);
    } else {
        int fd = onode_open(heap, "/mine", O_CREAT | O_RDWR, 0644);
        CHECK(fd >= 0 && onode_close(heap, fd) == 0);
    }
    CHECK(onode_close_heap(heap) == 0);
}
C
gcc -O1 -Wall -o "$WORK/look" "$WORK/look.c" -I "$REPOSITORY/crates/access/capi/include" -L "$LIBRARY" -lonode_c "-Wl,-rpath,$LIBRARY"
chmod 755 "$WORK/look"

start() {
    mkdir -p "$MNT"
    "$ONODE" mount -f "scm:$1" "$MNT" >"$WORK/onode.log" 2>&1 &
    SERVER=$!
    wait_for_mount
}
stop() {
    "$ONODE" umount "$MNT" || fail "umount"
    wait "$SERVER" || fail "the server ended with $?"
    SERVER=
}

"$ONODE" mkfs "scm:$REGION,size=64M" >/dev/null
start "$REGION"
truncate -s 300000 "$MNT/sparse"
ln "$MNT/sparse" "$MNT/second"
setfattr -n user.k -v v "$MNT/sparse"
touch "$MNT/sparse.compact"
before=$(stat -c '%i %h %s %Y' "$MNT/sparse")
names=$(ls "$MNT")
"$WORK/look" "scm:$REGION,size=64M" /sparse || fail "the look failed"
[ "$(ls "$MNT")" = "$names" ] || fail "there are other names: $(ls "$MNT")"
[ "$(stat -c '%i %h %s' "$MNT/sparse")" = "${before% *}" ] || fail "it was $before, it is $(stat -c '%i %h %s' "$MNT/sparse")"
[ "$(getfattr --only-values -n user.k "$MNT/second")" = v ] || fail "an attribute is gone"
stop
start "$REGION"
for name in sparse second; do
    [ "$(tail -c +1001 "$MNT/$name" | head -c 6)" = stored ] || fail "what was stored is not in $name"
    [ "$(tail -c +2001 "$MNT/$name" | head -c 7)" = written ] || fail "what was written is not in $name"
done
stop
"$ONODE" check "scm:$REGION" >/dev/null || fail "check"
did "a file with holes, a hard link and an attribute is what it was after a look"

setpriv --reuid=1000 --regid=1000 --clear-groups "$WORK/look" "scm:$OTHER,size=32M" || fail "as user 1000"
start "$OTHER"
[ "$(stat -c %u:%g "$MNT/mine"),$(stat -c %u:%g "$MNT")" = 1000:1000,1000:1000 ] || fail "they belong to $(stat -c %u:%g "$MNT/mine" "$MNT")"
stop
did "what a user's program makes is the user's"
