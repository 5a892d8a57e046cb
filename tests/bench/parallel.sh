#!/usr/bin/env bash
# Several programs at once on one volume: 4 KB random reads with O_DIRECT by 4 programs at depths 1,
# 4 and 16, and 4 KB writes with an fsync each by 1 and 8 programs, in flash on a plain file with
# direct I/O, mounted with one thread and with several, beside ext4 on a loop device with direct I/O
# on the same disk. Root, FUSE, loop devices, fio and mkfs.ext4 are needed. Prints operations a
# second, the median of the rounds, and the ratio to ext4.
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
clean() {
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

for count in 1 "$threads"; do
    spec=flash:$work/flash.img,direct
    "$ONODE" mkfs "$spec" --size 1G >/dev/null
    "$ONODE" mount -o threads="$count" "$spec" "$work/mnt" >/dev/null
    measure "threads=$count"
    "$ONODE" umount "$work/mnt" >/dev/null
    rm "$work/flash.img"
done

python3 - "$work" "$threads" <<'END'
import statistics, sys
work, threads = sys.argv[1:]
names = ["ext4", "threads=1", f"threads={threads}"]
def median(load, name):
    return statistics.median(float(line) for line in open(f"{work}/{load}.{name}"))
print(f"| operations a second | ext4 | onode | onode, {names[2]} | onode/ext4 | onode, {names[2]}/ext4 |")
print("|---|---|---|---|---|---|")
for depth in (1, 4, 16):
    one, two, three = (median(f"read-4-{depth}", name) for name in names)
    print(f"| 4 KB random reads, O_DIRECT, 4 programs, depth {depth} | {one:,.0f} | {two:,.0f} | {three:,.0f} | {two / one:.2f} | {three / one:.2f} |")
for programs in (1, 8):
    one, two, three = (median(f"sync-{programs}-1", name) for name in names)
    plural = "program" if programs == 1 else "programs"
    print(f"| 4 KB write + fsync, {programs} {plural} | {one:,.0f} | {two:,.0f} | {three:,.0f} | {two / one:.2f} | {three / one:.2f} |")
END
