#!/usr/bin/env bash
# What hints bring on a mounted flash volume: pages that it programs and bytes that its cleaner
# moves for the same files, with lifetimes given and without. Two loads, each with what lives for a
# moment beside what stays: a mail spool (queue files, mailboxes) and the files of a key-value store
# (a log, sorted tables in levels that are merged). Every file is durable before the next. Needs
# root for the mount, python3 and setfattr.
#
#   tests/bench/hints.sh [SIZE]        SIZE of the volume, 128M if nothing is said
#
# Prints a row for each load and way: bytes that files got, pages programmed, write amplification
# (bytes programmed by bytes written), bytes that the cleaner moved, segments that it cleaned.
set -euo pipefail
cd "$(dirname "$0")/../.."

size=${1:-128M}
onode=${ONODE:-target/release/onode}
[ -n "${ONODE:-}" ] || cargo build --release --quiet --bin onode
work=$(mktemp -d)
trap 'umount "$work/mnt" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/mnt"
pages=4096

cat >"$work/load.py" <<'LOAD'
import os, random, sys
load, top, total = sys.argv[1], sys.argv[2], int(sys.argv[3])
seeded = random.Random(1)
noise = seeded.randbytes(1 << 20)

def put(path, length):
    with open(path, "wb") as file:
        while length > 0:
            length -= file.write(noise[:length])
        file.flush()
        os.fsync(file.fileno())

def spool(fill, turns):
    """Queue files that go once they are delivered, 16 later; mailboxes of which one in so many is
    replaced."""
    queue, boxes, number = [], [], 0
    while len(boxes) * 64 * 1024 < total * fill:
        boxes.append(f"{top}/keep/{number}")
        put(boxes[-1], 64 * 1024)
        number += 1
    for turn in range(turns):
        path = f"{top}/brief/{turn}"
        put(path, seeded.choice([16, 32, 64, 128]) * 1024)
        queue.append(path)
        if len(queue) > 16:
            os.unlink(queue.pop(0))
        if turn % 3 == 0:
            place = seeded.randrange(len(boxes))
            put(f"{top}/keep/new", 64 * 1024)
            os.rename(f"{top}/keep/new", boxes[place])

def store(fill, turns):
    """A log that is cut every 1 MiB; tables of 1 MiB: four of level 0 are merged to two of level 1,
    eight of these into eight of level 2, which is the most of it. While tables are written the log
    goes on, 16 KiB for each 64 KiB of them."""
    made, logged, log = 0, 0, open(f"{top}/brief/log", "wb")
    def append():
        nonlocal logged, log
        if logged >= 1 << 20:
            log.close()
            log, logged = open(f"{top}/brief/log", "wb"), 0
        logged += log.write(noise[:16384])
        log.flush()
        os.fsync(log.fileno())
    def table(level):
        nonlocal made
        made += 1
        path = f"{top}/{level}/{made}"
        with open(path, "wb") as file:
            for _ in range(16):
                file.write(noise[:65536])
                file.flush()
                os.fsync(file.fileno())
                append()
        return path
    last = [table("keep") for _ in range(int(total * fill) >> 20)]
    young, middle = [], []
    for turn in range(turns):
        young.append(table("brief"))
        if len(young) == 4:
            middle += [table("while"), table("while")]
            while young:
                os.unlink(young.pop())
        if len(middle) == 8:
            for place in seeded.sample(range(len(last)), 8):
                new = table("keep")
                os.unlink(last[place])
                last[place] = new
            while middle:
                os.unlink(middle.pop())

turns = total // 65536 * 3
if load == "spool":
    spool(.70, turns)
else:
    store(.65, turns // 16)
LOAD

# counter NAME: a figure of the mounted volume.
counter() {
    "$onode" stat --json "$work/mnt" | python3 -c '
import json, sys
counters = json.load(sys.stdin)["device"]
print(counters[sys.argv[1]])' "$1"
}

bytes=$(numfmt --from=iec "$size")
printf '| load | placement | lifetimes | written | programs | write amplification | moved | cleaned |\n'
printf '|---|---|---|---|---|---|---|---|\n'
for load in spool store; do
    for way in "user-cleaner no" "lifespan no" "hints no" "hints given"; do
        read -r placement given <<<"$way"
        "$onode" mkfs "flash:$work/disk,size=$size,page=4K,placement=$placement" >/dev/null
        "$onode" mount "flash:$work/disk,placement=$placement" "$work/mnt"
        mkdir "$work/mnt/brief" "$work/mnt/while" "$work/mnt/keep"
        if [ "$given" = given ]; then
            setfattr -n user.onode.lifetime -v short "$work/mnt/brief"
            setfattr -n user.onode.lifetime -v medium "$work/mnt/while"
            setfattr -n user.onode.lifetime -v long "$work/mnt/keep"
        fi
        python3 "$work/load.py" "$load" "$work/mnt" "$bytes"
        sync -f "$work/mnt"
        programs=$(counter nand.programs) written=$(counter bytes_written)
        moved=$(counter bytes_moved) cleaned=$(counter segments_cleaned)
        ratio=$(awk -v p="$programs" -v w="$written" -v s="$pages" 'BEGIN { printf "%.2f", p * s / w }')
        printf '| %s | %s | %s | %s MiB | %s | %s | %s MiB | %s |\n' \
            "$load" "$placement" "$given" $((written >> 20)) "$programs" "$ratio" $((moved >> 20)) "$cleaned"
        "$onode" umount "$work/mnt"
        "$onode" check "$work/disk" >/dev/null
        rm "$work/disk"
    done
done
