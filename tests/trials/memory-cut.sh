#!/usr/bin/env bash
# A memory that is cut short under a mount: errors and no dead server; beside flash nothing at all
# is lost.
. "$(dirname "$0")/../apps/common.sh"
need python3=python3-minimal

MEMORY=/dev/shm/$(basename "$WORK").memory
before_clean_up() { rm -f "$MEMORY"; }

start() {
    mkdir -p "$MNT"
    "$ONODE" mount -f "$1" "$MNT" >"$WORK/onode.log" 2>&1 &
    SERVER=$!
    wait_for_mount
}
fill() {
    python3 - "$MNT" <<'P'
import os, sys
for i in range(60):
    f = os.open(f"{sys.argv[1]}/f{i}", os.O_CREAT | os.O_WRONLY)
    os.write(f, bytes([i]) * 50000)
    os.fsync(f)
    os.close(f)
P
}
# work ANSWERS: what calls may answer; never anything else, and never wrong data.
work() {
    python3 - "$MNT" "$@" <<'P'
import errno, os, sys
mount, allowed = sys.argv[1], set(sys.argv[2:])
def answer(call):
    try:
        call()
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
def read(i):
    with open(f"{mount}/f{i}", "rb", buffering=0) as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        found = f.read()
    if found != bytes([i]) * 50000: sys.exit(f"f{i}: wrong data")
def write(i):
    with open(f"{mount}/n{i}", "wb", buffering=0) as f:
        f.write(b"z" * 3000)
        os.fsync(f.fileno())
answers = {answer(lambda i=i: read(i)) for i in range(60)} | {answer(lambda i=i: write(i)) for i in range(5)}
answers |= {answer(lambda: os.unlink(mount + "/f1")), answer(lambda: os.mkdir(mount + "/dd")), answer(lambda: os.listdir(mount))}
if not answers <= allowed: sys.exit(f"answers {answers}, not {allowed}")
P
}
# stop CODES: how the server may end.
stop() {
    kill -0 "$SERVER" 2>/dev/null || fail "the server is dead"
    timeout 60 "$ONODE" umount "$MNT" >"$WORK/said" 2>&1 || true
    umount -l "$MNT" 2>/dev/null || true
    local code=0
    wait "$SERVER" || code=$?
    SERVER=
    [ "$code" -lt 128 ] || fail "the server ended with $code"
}

for size in 0 32M; do
    rm -f "$MEMORY"
    "$ONODE" mkfs "scm:$MEMORY,size=64M" >/dev/null
    start "scm:$MEMORY"
    fill
    truncate -s $size "$MEMORY"
    echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
    work ok EIO EROFS || fail "scm, cut to $size"
    stop
    did "scm, cut to $size: errors, and the server lives"
done
for buffer in off on; do
    rm -f "$MEMORY" "$IMAGE"
    spec="flash+scm:$IMAGE,$MEMORY,buffer=$buffer"
    "$ONODE" mkfs --size 64M "$spec" >/dev/null
    start "$spec"
    fill
    truncate -s 0 "$MEMORY"
    echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
    work ok || fail "flash+scm, buffer=$buffer"
    stop
    # The flash has everything.
    rm -f "$MEMORY"
    start "flash+scm:$IMAGE,$MEMORY,buffer=$buffer,rebuild=on"
    [ "$(find "$MNT" -name 'f*' -type f | wc -l)" = 59 ] || fail "files are missing"
    stop
    did "flash+scm, buffer=$buffer, memory cut to nothing: no error, and everything is on the flash"
done
