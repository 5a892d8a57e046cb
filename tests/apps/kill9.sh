#!/usr/bin/env bash
# kill -9 of the server under load, KILLS times (default 10): what was fsynced is there, the image
# is sound, the dead mount point says so, and the same command brings the volume back.
. "$(dirname "$0")/common.sh"
need python3=python3-minimal
kills=${KILLS:-10}
cat >"$WORK/writer.py" <<'P'
import hashlib, os, random, sys
root, log, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
draw = random.Random(seed)
log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def tell(text): os.write(log, (text + "\n").encode())
kept, steps = [], 0
try:
    # On a busy machine the server may be gone before this begins.
    os.makedirs(f"{root}/{seed}", exist_ok=True)
    while True:
        steps += 1
        name = f"{seed}/{steps}"
        data = draw.randbytes(draw.choice([1, 500, 4096, 20000, 150000]))
        kind = draw.randrange(4)
        # A file is told of only after fsync; from then on it must be there with just this content.
        target = f"{root}/{name}" + (".new" if kind == 1 else "")
        with open(target, "wb") as file:
            file.write(data)
            if kind == 3: continue          # never synced: may be lost
            file.flush()
            if kind == 1:
                os.fsync(file.fileno())
                os.rename(target, f"{root}/{name}")
                directory = os.open(f"{root}/{seed}", os.O_RDONLY); os.fsync(directory); os.close(directory)
            else: os.fsync(file.fileno())
        tell(f"+ {hashlib.sha256(data).hexdigest()} {name}")
        kept.append(name)
        if len(kept) > 40:
            gone = kept.pop(draw.randrange(len(kept)))
            tell(f"- - {gone}")             # told before: from here on it may be gone
            os.unlink(f"{root}/{gone}")
except OSError as error:
    # The server is gone.
    if error.errno not in (107, 103, 125, 5, 4, 9): raise
P
cat >"$WORK/verify.py" <<'P'
import hashlib, os, sys
root, log = sys.argv[1], sys.argv[2]
there = {}
for line in open(log):
    what, digest, name = line.split()
    if what == "+": there[name] = digest
    else: there.pop(name, None)
for name, digest in there.items():
    try: data = open(f"{root}/{name}", "rb").read()
    except OSError as error: sys.exit(f"{name} was fsynced and is lost: {error}")
    if hashlib.sha256(data).hexdigest() != digest: sys.exit(f"{name} was fsynced and is damaged ({len(data)} bytes)")
print(len(there))
P
seconds_of() { awk -v n="$1" 'BEGIN { srand(n); printf "%.2f", 0.3 + rand() * 1.2 }'; }
onode_up 1G
: >"$WORK/log"
survivors=0
for n in $(seq "$kills"); do
    writers=()
    for w in 1 2; do
        python3 "$WORK/writer.py" "$MNT" "$WORK/log" $((n * 10 + w)) 2>"$WORK/writer$w.log" &
        writers+=($!)
    done
    sleep "$(seconds_of "$n")"
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
    for w in 0 1; do wait "${writers[$w]}" || { cat "$WORK/writer$((w + 1)).log"; fail "writer $((w + 1)) in round $n"; }; done
    said=$(ls "$MNT" 2>&1 || true)
    case $said in *"not connected"* | *"connection abort"* | *"anceled"*) ;; *) fail "the dead mount point says: $said" ;; esac
    cp --sparse=always "$IMAGE" "$WORK/copy.img"
    for beside in index fast; do
        [ ! -e "$IMAGE.$beside" ] || cp --sparse=always "$IMAGE.$beside" "$WORK/copy.img.$beside"
    done
    "$ONODE" check "$(volume_of "$WORK/copy.img")" >"$WORK/check.log" 2>&1 || { cat "$WORK/check.log"; fail "check after kill $n"; }
    rm -f "$WORK/copy.img" "$WORK/copy.img.index" "$WORK/copy.img.fast"
    onode_up
    survivors=$(python3 "$WORK/verify.py" "$MNT" "$WORK/log") || fail "after kill $n: $survivors"
    # Old rounds go, so that the volume does not fill.
    for old in "$MNT"/*; do
        [ "$(basename "$old")" -ge $(((n - 1) * 10)) ] || { sed -i "\\| $(basename "$old")/|d" "$WORK/log"; rm -rf "$old"; }
    done
done
onode_down
did "$kills kills under load, every fsynced file intact ($survivors at the end), image sound each time"
