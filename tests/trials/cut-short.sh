#!/usr/bin/env bash
# A memory or the index beside flash cut short under a mount: calls fail or go on, the server lives
# and ends by itself. It was killed by SIGBUS. Then: an index file that is empty or too short is
# filled again from the flash, as one that is missing is.
. "$(dirname "$0")/common.sh"
cat >"$WORK/work.py" <<'P'
import os, sys
root, said = sys.argv[1], {}
def attempt(what, call):
    try: call(); answer = "ok"
    except OSError as error: answer = os.strerror(error.errno)
    said.setdefault(what, set()).add(answer)
def read(n):
    if open(f"{root}/f{n}", "rb").read() not in (bytes([n]) * 50000,): sys.exit(f"f{n} has wrong bytes")
def write(n):
    with open(f"{root}/n{n}", "wb") as file: file.write(b"z" * 3000); file.flush(); os.fsync(file.fileno())
for n in range(0, 40, 3): attempt("read", lambda: read(n))
for n in range(4): attempt("write and fsync", lambda: write(n))
attempt("list", lambda: os.listdir(root))
attempt("unlink", lambda: os.unlink(root + "/f1"))
if any("not connected" in answer for answers in said.values() for answer in answers): sys.exit(f"the server is gone: {said}")
print({what: sorted(answers) for what, answers in said.items()})
P
cat >"$WORK/fill.py" <<'P'
import os, sys
for n in range(40):
    file = os.open(f"{sys.argv[1]}/f{n}", os.O_CREAT | os.O_WRONLY); os.write(file, bytes([n]) * 50000); os.fsync(file); os.close(file)
P
lines=()
# one KIND FILE BYTES
one() {
    use "$1"
    make 32M
    up
    python3 "$WORK/fill.py" "$MNT"
    # The kernel is to ask the server, not its own pages.
    echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
    truncate -s "$3" "$IMAGE$2"
    said=$(timeout 60 python3 "$WORK/work.py" "$MNT" 2>&1) || fail "$1 cut to $3 bytes under the mount: $said"
    down
    [ "$ENDED" -lt 100 ] || fail "$1 cut to $3 bytes under the mount: the server ended with $ENDED"
    lines+=("$1 cut to $3: $said, umount $UNMOUNTED")
}
one scm "" 0
one scm "" 16M
one flash+scm .index 0
one flash+scm-buffer .index 0

# Closed in order, then the index is too short.
for bytes in 0 4096; do
    use flash+scm
    make 32M
    up
    python3 "$WORK/fill.py" "$MNT"
    down_well
    truncate -s "$bytes" "$IMAGE.index"
    mounts || { cat "$WORK/answer"; fail "an index file of $bytes bytes: the mount says $ANSWER"; }
    [ "$(find "$MNT" -name 'f*' | wc -l)" -eq 40 ] || fail "an index file of $bytes bytes: files are missing"
    down_well
    sound
done
printf '  %s\n' "${lines[@]}"
did "${#lines[@]} media cut short under a mount; index files of 0 and 4,096 bytes are filled again"
