#!/usr/bin/env bash
# Several programs at once on one volume: 4 KB random reads with O_DIRECT by 4 programs at depths 1,
# 4 and 16, and 4 KB writes with an fsync each by 1 and 8 programs, in flash on a plain file with
# direct I/O, mounted with one thread and with several, by the device of FUSE and by io_uring, which
# is switched on for that, beside ext4 on a loop device with direct I/O on the same disk. Root,
# FUSE, loop devices, fio and mkfs.ext4 are needed. Prints operations a second, the median of the
# rounds, and the ratios to ext4.
#
#   tests/bench/parallel.sh [DIR]    # DIR: on the disk that is to be measured; else the one of
#                                    # temporary files
#
# ONODE names the program (else it is built), ROUNDS (3), SECONDS_EACH (4) and THREADS (8) say how
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
rounds=${ROUNDS:-3} seconds=${SECONDS_EACH:-4} threads=${THREADS:-8}
work=$(mktemp -d "$place/onode-parallel.XXXXXX")
loop=
switch=/sys/module/fuse/parameters/enable_uring
switched=$(cat "$switch" 2>/dev/null || true)
clean() {
    [ -z "$switched" ] || echo "$switched" >"$switch"
    mountpoint -q "$work/mnt" && umount "$work/mnt"
    [ -z "$loop" ] || losetup -d "$loop"
    rm -rf "$work"
}
trap clean EXIT
mkdir "$work/mnt"

# run NAME KIND PROGRAMS DEPTH: one round of fio; adds a row to the results.
run() {
    local name=$1 kind=$2 programs=$3 depth=$4 options
    case $kind in
    read) options=(--rw=randread --filename="$work/mnt/data" --size=256m --iodepth="$depth" --ioengine=libaio --direct=1) ;;
    sync) options=(--rw=randwrite --size=8m --ioengine=psync --fsync=1 --directory="$work/mnt") ;;
    esac
    fio --name=job --bs=4k --numjobs="$programs" --time_based --runtime="$seconds" --group_reporting --randrepeat=1 \
        --output-format=json "${options[@]}" >"$work/fio.json"
    python3 - "$work/fio.json" "$kind" >>"$work/$kind-$programs-$depth.$name" <<'END'
import json, sys
job = json.load(open(sys.argv[1]))["jobs"][0]
print(job["read" if sys.argv[2] == "read" else "write"]["iops"])
END
}

# measure NAME: all loads on what is mounted.
measure() {
    fio --name=fill --rw=write --bs=1m --size=256m --filename="$work/mnt/data" --direct=0 --end_fsync=1 --output=/dev/null
    sync
    for ((round = 0; round < rounds; round++)); do
        for depth in 1 4 16; do run "$1" read 4 "$depth"; done
        for programs in 1 8; do run "$1" sync "$programs" 1; done
    done
}

truncate -s 1G "$work/ext4.img"
loop=$(losetup --find --show --direct-io=on "$work/ext4.img")
mkfs.ext4 -q "$loop"
mount "$loop" "$work/mnt"
measure ext4
umount "$work/mnt"
losetup -d "$loop"
loop=
rm "$work/ext4.img"

kinds=("threads=1" "threads=$threads")
[ -z "$switched" ] || kinds+=("threads=$threads,io-uring=on")
for kind in "${kinds[@]}"; do
    spec=flash:$work/flash.img,direct
    "$ONODE" mkfs "$spec" --size 1G >/dev/null
    "$ONODE" mount -o "io-uring=off,$kind" "$spec" "$work/mnt" >/dev/null
    measure "$kind"
    "$ONODE" umount "$work/mnt" >/dev/null
    rm "$work/flash.img"
done

python3 - "$work" "${kinds[@]}" <<'END'
import statistics, sys
work, *kinds = sys.argv[1:]
names = ["ext4", *kinds]
def row(what, load):
    found = [statistics.median(float(line) for line in open(f"{work}/{load}.{name}")) for name in names]
    cells = [f"{one:,.0f}" for one in found] + [f"{one / found[0]:.2f}" for one in found[1:]]
    print(f"| {what} | {' | '.join(cells)} |")
columns = ["operations a second", "ext4", *(f"`{kind}`" for kind in kinds), *(f"`{kind}`/ext4" for kind in kinds)]
print(f"| {' | '.join(columns)} |")
print("|---" * len(columns) + "|")
for depth in (1, 4, 16):
    row(f"4 KB random reads, O_DIRECT, 4 programs, depth {depth}", f"read-4-{depth}")
for programs in (1, 8):
    row(f"4 KB write + fsync, {programs} {'program' if programs == 1 else 'programs'}", f"sync-{programs}-1")
END
