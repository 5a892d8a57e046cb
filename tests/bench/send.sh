#!/usr/bin/env bash
# Streams: the bytes and the time that a snapshot of a mounted volume takes to be sent and received,
# and the same of what changed when one hundredth of its content did: whole small files, and blocks
# of a large one. FUSE and python3 are needed, and root, who alone may send from a mount.
#
#   tests/bench/send.sh [DIR]   # DIR: where the images go; else among temporary files
#
# ONODE names the program (else it is built), FILES (20000) says how many small files there are.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
place=$(realpath "${1:-${TMPDIR:-/tmp}}")
cd "$(dirname "$0")/../.."

command -v python3 >/dev/null || { echo "python3 is needed" >&2; exit 1; }
if [ -z "${ONODE:-}" ]; then
    cargo build --release --quiet --bin onode
    ONODE=$PWD/target/release/onode
fi
work=$(mktemp -d "$place/onode-send.XXXXXX")
clean() {
    if mountpoint -q "$work/mnt"; then "$ONODE" umount "$work/mnt"; fi
    rm -r "$work"
}
trap clean EXIT
mkdir "$work/mnt"
"$ONODE" mkfs "flash:$work/disk.img,size=4G" >/dev/null
"$ONODE" mount "$work/disk.img" "$work/mnt"

# Fills the volume (0) or changes one hundredth of it (1).
fill() {
    python3 - "$work/mnt" "${FILES:-20000}" "$1" <<'PYTHON'
import os, random, sys

mount, files, is_change = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
random.seed(is_change)
block = 4096


def write(number):
    with open(f"{mount}/d{number // 1000}/f{number}", "wb") as file:
        file.write(random.randbytes(2 * block))


if is_change:
    for number in random.sample(range(files), files // 100):
        write(number)
    with open(f"{mount}/large", "r+b") as file:
        for number in random.sample(range(2 * files), 2 * files // 100):
            file.seek(number * block)
            file.write(random.randbytes(block))
else:
    for number in range(files):
        if number % 1000 == 0:
            os.mkdir(f"{mount}/d{number // 1000}")
        write(number)
    with open(f"{mount}/large", "wb") as file:
        for number in range(2 * files):
            file.write(random.randbytes(block))
os.sync()
PYTHON
}

seconds() {
    local begin end
    begin=$(date +%s.%N)
    "$@" >/dev/null
    end=$(date +%s.%N)
    echo "$end - $begin" | bc
}

report() {
    local name=$1
    shift
    local sent received
    sent=$(seconds "$ONODE" send "$work/mnt" "$@" -o "$work/$name")
    received=$(seconds "$ONODE" receive "$work/replica.img" "$work/$name")
    echo "$name: $(stat -c %s "$work/$name") bytes, sent in $sent s, received in $received s"
}

fill 0
"$ONODE" snapshot create "$work/mnt" monday >/dev/null
"$ONODE" mkfs "flash:$work/replica.img,size=4G" >/dev/null
report whole monday
fill 1
"$ONODE" snapshot create "$work/mnt" tuesday >/dev/null
report changed tuesday --from monday
"$ONODE" snapshot create "$work/mnt" wednesday >/dev/null
report nothing wednesday --from tuesday
whole=$(stat -c %s "$work/whole")
changed=$(stat -c %s "$work/changed")
echo "what changed takes $(echo "scale=2; 100 * $changed / $whole" | bc) % of the bytes of all"
"$ONODE" umount "$work/mnt"
"$ONODE" check "$work/replica.img" | tail -1
