#!/usr/bin/env bash
# How long a mounted volume stands still while it grows: programs write and read small files, the
# volume grows from 1 GiB step by step, and the longest call during each step is told, beside the
# longest one in a second before it, and the memory of the server. FUSE and python3 are needed.
#
#   tests/bench/resize.sh [DIR]   # DIR: where the image goes; else among temporary files
#
# ONODE names the program (else it is built), SIZES ("10G 100G") says what it grows to, SPEC
# ("flash:IMAGE") what kind of image it is: SPEC=flash:IMAGE,direct for one used like a disk,
# SPEC=tier:IMAGE.fast,IMAGE for two disks.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
place=$(realpath "${1:-${TMPDIR:-/tmp}}")
cd "$(dirname "$0")/../.."

command -v python3 >/dev/null || { echo "python3 is needed" >&2; exit 1; }
if [ -z "${ONODE:-}" ]; then
    cargo build --release --quiet --bin onode
    ONODE=$PWD/target/release/onode
fi
work=$(mktemp -d "$place/onode-resize.XXXXXX")
clean() {
    if mountpoint -q "$work/mnt"; then "$ONODE" umount "$work/mnt"; fi
    rm -r "$work"
}
trap clean EXIT
mkdir "$work/mnt"
spec=${SPEC:-flash:IMAGE}
spec=${spec//IMAGE/$work/disk.img}
"$ONODE" mkfs "$spec" --size 1G >/dev/null
"$ONODE" mount "$spec" "$work/mnt"

python3 - "$ONODE" "$work/mnt" ${SIZES:-10G 100G} <<'PYTHON'
import os, random, subprocess, sys, threading, time

onode, mount, sizes = sys.argv[1], sys.argv[2], sys.argv[3:]
block = random.randbytes(4096)
calls, over = [], threading.Event()


def work(who):
    """Writes, syncs and reads; notes how long each call took, and when it ended."""
    number = 0
    while not over.is_set():
        path = f"{mount}/f{who}-{number % 500}"
        began = time.monotonic()
        with open(path, "wb") as file:
            file.write(block * 4)
            if number % 8 == 0:
                os.fsync(file.fileno())
        with open(path, "rb") as file:
            if file.read() != block * 4:
                sys.exit(f"{path} is not what was written")
        calls.append((time.monotonic(), time.monotonic() - began))
        number += 1


def longest(since):
    took = [took for ended, took in list(calls) if ended >= since]
    return 1000 * max(took, default=0), len(took)


def memory():
    """MiB that the server of the mount has."""
    for entry in os.scandir("/proc"):
        try:
            command = open(f"/proc/{entry.name}/cmdline", "rb").read().split(b"\0")
            if b"--serve" in command and mount.encode() in command:
                status = open(f"/proc/{entry.name}/status").read()
                return int(status.split("VmRSS:")[1].split()[0]) // 1024
        except OSError:
            continue
    return 0


workers = [threading.Thread(target=work, args=[who]) for who in range(4)]
for worker in workers:
    worker.start()
print("| to | command | longest call meanwhile | longest in the second before | files | memory |")
print("|---|---|---|---|---|---|")
for size in sizes:
    began = time.monotonic()
    time.sleep(1)
    usual, _ = longest(began)
    began = time.monotonic()
    subprocess.run([onode, "resize", mount, size], check=True, stdout=subprocess.DEVNULL)
    took = 1000 * (time.monotonic() - began)
    time.sleep(0.2)
    pause, files = longest(began)
    print(f"| {size} | {took:.0f} ms | {pause:.0f} ms | {usual:.0f} ms | {files} | {memory()} MiB |")
over.set()
for worker in workers:
    worker.join()
PYTHON
"$ONODE" umount "$work/mnt"
"$ONODE" check "$spec"
"$ONODE" info "$spec" | grep -E "device|space"
