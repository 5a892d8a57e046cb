#!/usr/bin/env bash
# Reads that wait for the medium: a file that was written in random order, read from its start to
# its end from flash in a file with direct I/O; and 4 KB random reads with O_DIRECT by 4 programs at
# depths 1, 4 and 16 from either disk of a tier. Beside them ext4 on a loop device with direct I/O
# on the same disk. Root, FUSE, loop devices, fio and mkfs.ext4 are needed. Prints the median of the
# rounds.
#
#   tests/bench/reads.sh [DIR]    # DIR: on the disk that is to be measured; else the one of
#                                 # temporary files
#
# ONODE names the program (else it is built), ROUNDS (3), SECONDS_EACH (3) and THREADS (8) say how
# much.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
place=$(realpath "${1:-${TMPDIR:-/tmp}}")
cd "$(dirname "$0")/../.."

for tool in fio mkfs.ext4 losetup python3; do
    command -v "$tool" >/dev/null || { echo "$tool is needed" >&2; exit 1; }
done
if [ -z "${ONODE:-}" ]; then
    cargo build --release --quiet --bin onode
    ONODE=$PWD/target/release/onode
fi
rounds=${ROUNDS:-3} seconds=${SECONDS_EACH:-3} threads=${THREADS:-8}
work=$(mktemp -d "$place/onode-reads.XXXXXX")
loop=
clean() {
    mountpoint -q "$work/mnt" && umount "$work/mnt"
    [ -z "$loop" ] || losetup -d "$loop"
    rm -rf "$work"
}
trap clean EXIT
mkdir "$work/mnt"

# scattered: writes the file in random order.
scattered() {
    fio --name=job --filename="$work/mnt/scattered" --size=128m --bs=4k --rw=randwrite --randrepeat=1 --ioengine=psync \
        --fsync=16 --output=/dev/null
}

# in_order: reads it and prints MiB a second; what is mounted has nothing in memory.
in_order() {
    python3 - "$work/mnt/scattered" <<'END'
import sys, time
begun = time.monotonic()
with open(sys.argv[1], "rb", buffering=0) as file:
    length = 0
    while part := file.read(1 << 20):
        length += len(part)
print(round(length / (time.monotonic() - begun) / (1 << 20), 1))
END
}

# at_random FILE DEPTH: prints operations a second.
at_random() {
    fio --name=job --bs=4k --numjobs=4 --time_based --runtime="$seconds" --group_reporting --randrepeat=1 --rw=randread \
        --filename="$work/mnt/$1" --size=256m --iodepth="$2" --ioengine=libaio --direct=1 --output-format=json >"$work/fio.json"
    python3 -c 'import json, sys; print(round(json.load(open(sys.argv[1]))["jobs"][0]["read"]["iops"]))' "$work/fio.json"
}

# row NAME COMMAND...: the median of what the command prints in each round.
row() {
    local name=$1 round
    shift
    for ((round = 0; round < rounds; round++)); do "$@"; done | sort -n | awk -v name="$name" '
        { value[NR] = $1 } END { printf "%-60s %10s\n", name, value[int((NR + 1) / 2)] }'
}

# anew COMMAND...: mounts again, so that nothing is in memory.
anew() {
    umount "$work/mnt"
    sync
    echo 3 >/proc/sys/vm/drop_caches
    "$@"
}

fill() {
    fio --name=fill --rw=write --bs=1m --size=256m --filename="$work/mnt/$1" --end_fsync=1 --output=/dev/null
}

truncate -s 1G "$work/ext4.img"
loop=$(losetup --find --show --direct-io=on "$work/ext4.img")
mkfs.ext4 -q "$loop"
mount_ext4() { mount "$loop" "$work/mnt"; }
mount_ext4
scattered
once() { anew mount_ext4 && in_order; }
row "ext4: written in random order, MiB/s" once
fill data
for depth in 1 4 16; do row "ext4: 4 KB random reads, 4 programs, depth $depth" at_random data "$depth"; done
umount "$work/mnt"
losetup -d "$loop"
loop=
rm "$work/ext4.img"

spec=flash:$work/flash.img,direct
"$ONODE" mkfs "$spec" --size 1G >/dev/null
mount_flash() { "$ONODE" mount -o "threads=$threads" "$spec" "$work/mnt" >/dev/null; }
mount_flash
scattered
once() { anew mount_flash && in_order; }
row "flash: written in random order, MiB/s" once
umount "$work/mnt"
rm "$work/flash.img"

spec=tier:$work/fast.img,$work/big.img
"$ONODE" mkfs "$spec,size=2G,fast-size=512M" >/dev/null
mount_tier() { "$ONODE" mount -o "threads=$threads" "$spec" "$work/mnt" >/dev/null; }
mount_tier
fill fast
fill big
"$ONODE" place --bypass "$work/mnt/big" >/dev/null
"$ONODE" demote "$work/mnt/big" >/dev/null
anew mount_tier
for file in fast big; do
    for depth in 1 4 16; do
        row "tier, $file disk: 4 KB random reads, 4 programs, depth $depth" at_random "$file" "$depth"
    done
done
umount "$work/mnt"
