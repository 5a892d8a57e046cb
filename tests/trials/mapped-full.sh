#!/usr/bin/env bash
# Stores through a mapping into the holes of a sparse file on a full volume: msync or fsync says
# that there is no room, or the bytes are there after the caches were dropped and after a new mount.
. "$(dirname "$0")/common.sh"
cat >"$WORK/map.py" <<'P'
import errno, mmap, os, sys
root, verify = sys.argv[1], sys.argv[2] == "verify"
def count(file): return sum(os.pread(file, 8, at) == b"mmapdata" for at in range(0, 1 << 20, 4096))
if verify: print(count(os.open(f"{root}/sparse", os.O_RDONLY))); sys.exit()
file = os.open(f"{root}/sparse", os.O_RDWR | os.O_CREAT); os.ftruncate(file, 1 << 20)
rest, piece = os.open(f"{root}/rest", os.O_WRONLY | os.O_CREAT), 1 << 20
while piece >= 512:
    try: os.write(rest, os.urandom(piece))
    except OSError: piece //= 2
told = "nothing"
memory = mmap.mmap(file, 1 << 20)
for at in range(0, 1 << 20, 4096): memory[at:at + 8] = b"mmapdata"
for call in (memory.flush, lambda: os.fsync(file)):
    try: call()
    except OSError as error: told = errno.errorcode[error.errno]
print(told)
P
lines=()
for kind in flash scm tier; do
    use "$kind"
    make 16M 8M
    up
    told=$(python3 "$WORK/map.py" "$MNT" store)
    echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
    now=$(python3 "$WORK/map.py" "$MNT" verify)
    down
    up
    later=$(python3 "$WORK/map.py" "$MNT" verify)
    down_well
    [ "$told" != nothing ] || [ "$now/$later" = 256/256 ] || fail "$kind: msync and fsync said nothing; $now, then $later of 256 pages are there"
    lines+=("$kind: told $told, $later of 256 pages")
done
did "$(printf '%s; ' "${lines[@]}")"
