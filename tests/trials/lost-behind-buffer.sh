#!/usr/bin/env bash
# Synced content that was damaged later is told as long as the write buffer beside the flash knows
# of it. The images are those of a volume that was killed, with 512 bytes of ones over a page that
# the last page of the journal places: 13 synced files were gone, and every command called the
# volume clean (onode-crash damage).
. "$(dirname "$0")/common.sh"
need zstd=zstd
images=$(cd "$(dirname "$0")" && pwd)/images/lost-behind-buffer.tar.zst
use flash+scm-buffer
fresh() { rm -f "$IMAGE" "$IMAGE.index" && zstd -q -d -c "$images" | tar -C "$PLACE/$ONODE_DEVICE" -xf -; }
fresh
asked check "$(spec)"
[ "$CODE" -eq 4 ] && grep -q 'acknowledged data is missing' "$WORK/said" || { cat "$WORK/said"; fail "check says $CODE"; }
for how in "ls" "info"; do
    asked $how "$(spec)"
    [ "$CODE" -eq 23 ] || { cat "$WORK/said"; fail "$how says $CODE without consent"; }
done
if mounts; then fail "it was mounted without consent"; fi
[ "$ANSWER" -eq 23 ] || { cat "$WORK/answer"; fail "mount says $ANSWER"; }
fresh
asked repair --drop-damaged "$(spec)"
[ "$CODE" -eq 1 ] && grep -q 'lost: acknowledged data is missing' "$WORK/said" || { cat "$WORK/said"; fail "repair says $CODE"; }
sound
did "check, ls, info and mount say so; a repair with consent tells what it gives up"
