#!/usr/bin/env bash
# Mixes of work by 16 threads (tests/bench/mixes.c: varmail, fileserver, webserver) in flash on a
# plain file with direct I/O, by the device of FUSE and by io_uring, beside ext4 and xfs on loop
# devices with direct I/O on the same disk. Root, FUSE, loop devices, mkfs.ext4 and mkfs.xfs are
# needed. Prints operations a second, the median of the rounds, and the ratios to ext4.
#
#   tests/bench/mixes.sh [DIR]    # DIR: on the disk that is to be measured; else the one of
#                                 # temporary files
#
# ONODE names the program (else it is built), ROUNDS (3) and SECONDS_EACH (5) say how much.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
place=$(realpath "${1:-${TMPDIR:-/tmp}}")
cd "$(dirname "$0")/../.."
for tool in cc mkfs.ext4 mkfs.xfs losetup python3; do
    command -v "$tool" >/dev/null || { echo "$tool is needed" >&2; exit 1; }
done
if [ -z "${ONODE:-}" ]; then
    cargo build --release --quiet --bin onode
    ONODE=$PWD/target/release/onode
fi
rounds=${ROUNDS:-3} seconds=${SECONDS_EACH:-5}
work=$(mktemp -d "$place/onode-mixes.XXXXXX")
loop=
clean() {
    mountpoint -q "$work/mnt" && umount "$work/mnt"
    [ -z "$loop" ] || losetup -d "$loop"
    rm -rf "$work"
}
trap clean EXIT
mkdir "$work/mnt"
cc -O2 -Wall -o "$work/mixes" tests/bench/mixes.c -lpthread
mixes=(varmail fileserver webserver)
kinds=(ext4 xfs "onode, device" "onode, io_uring")

# up KIND mounts a new file system.
up() {
    case $1 in
    ext4 | xfs)
        truncate -s 2G "$work/image"
        loop=$(losetup --find --show --direct-io=on "$work/image")
        "mkfs.$1" -q "$loop"
        mount "$loop" "$work/mnt"
        ;;
    onode*)
        "$ONODE" mkfs "flash:$work/image,direct" --size 2G >/dev/null
        [ "$1" = "onode, device" ] && way=off || way=on
        "$ONODE" mount -o "io-uring=$way" "flash:$work/image,direct" "$work/mnt" >/dev/null
        ;;
    esac
}
down() {
    case $1 in
    onode*) "$ONODE" umount "$work/mnt" >/dev/null ;;
    *) umount "$work/mnt"; losetup -d "$loop"; loop= ;;
    esac
    rm "$work/image"
}

for ((round = 0; round < rounds; round++)); do
    for mix in "${mixes[@]}"; do
        for kind in "${kinds[@]}"; do
            up "$kind"
            printf '%s\t%s\t%s\n' "$mix" "$kind" "$("$work/mixes" "$work/mnt" "$mix" "$seconds")" >>"$work/figures"
            down "$kind"
        done
    done
done

python3 - "$work/figures" "${kinds[@]}" <<'END'
import statistics, sys
path, *kinds = sys.argv[1:]
found = {}
for line in open(path):
    mix, kind, figure = line.rstrip("\n").split("\t")
    found.setdefault(mix, {}).setdefault(kind, []).append(float(figure))
columns = ["operations a second", *kinds, *(f"{kind}/ext4" for kind in kinds[1:])]
print(f"| {' | '.join(columns)} |")
print("|---" * len(columns) + "|")
for mix, by_kind in found.items():
    each = [statistics.median(by_kind[kind]) for kind in kinds]
    cells = [f"{one:,.0f}" for one in each] + [f"{one / each[0]:.2f}" for one in each[1:]]
    print(f"| {mix} | {' | '.join(cells)} |")
END
