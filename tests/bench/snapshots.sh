#!/usr/bin/env bash
# Snapshots: what it takes to make, list, read and delete 1,000 of them on a mounted volume with
# many files, of which one changes after each; clones of the oldest likewise, in each of which one
# file changes; then the pages that overwriting takes with and without snapshots, and in a clone, on
# a simulated NAND. FUSE and python3 are needed.
#
#   tests/bench/snapshots.sh [DIR]   # DIR: where the image goes; else among temporary files
#
# ONODE names the program (else it is built), FILES (100000), SNAPSHOTS (1000) and CLONES (1000) say
# how many.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
place=$(realpath "${1:-${TMPDIR:-/tmp}}")
cd "$(dirname "$0")/../.."

command -v python3 >/dev/null || { echo "python3 is needed" >&2; exit 1; }
if [ -z "${ONODE:-}" ]; then
    cargo build --release --quiet --bin onode
    ONODE=$PWD/target/release/onode
fi
work=$(mktemp -d "$place/onode-snapshots.XXXXXX")
clean() {
    if mountpoint -q "$work/mnt"; then "$ONODE" umount "$work/mnt"; fi
    rm -r "$work"
}
trap clean EXIT
mkdir "$work/mnt"
"$ONODE" mkfs "flash:$work/disk.img,size=8G" >/dev/null
"$ONODE" mount "$work/disk.img" "$work/mnt"
python3 - "$work/mnt" "${FILES:-100000}" "${SNAPSHOTS:-1000}" "${CLONES:-1000}" <<'PYTHON'
import os, sys, time

mount, files, snapshots, clones = sys.argv[1], *map(int, sys.argv[2:])
folder, cloned = f"{mount}/.snapshots", f"{mount}/.clones"


def path(number):
    return f"d{number // 1000}/f{number}"


def timed(call):
    begin = time.monotonic()
    call()
    return (time.monotonic() - begin) * 1000


def told(what, times):
    times = sorted(times)
    middle, late = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"{what}: median {middle:.2f} ms, 99 of 100 in {late:.2f} ms, all in {sum(times) / 1000:.2f} s")


for number in range(files):
    if number % 1000 == 0:
        os.mkdir(f"{mount}/d{number // 1000}")
    with open(f"{mount}/{path(number)}", "w") as file:
        file.write("a" * 1000)
os.sync()
made = []
for number in range(snapshots):
    made.append(timed(lambda: os.mkdir(f"{folder}/{number}")))
    with open(f"{mount}/{path(number * 7 % files)}", "w") as file:
        file.write("b" * 1000)
told(f"take one of {snapshots} snapshots of {files} files", made)
told("the first tenth of them", made[: snapshots // 10])
told("the last tenth of them", made[-snapshots // 10 :])
told("list them", [timed(lambda: os.listdir(folder))])
first = os.listdir(folder)[0]
walk = [timed(lambda: sum(len(found) for _, _, found in os.walk(f"{folder}/{first}")))]
told(f"walk through all files of the oldest, with {snapshots - 1} after it", walk)
with open(f"{folder}/{first}/{path(0)}") as file:
    assert file.read() == "a" * 1000, "the oldest snapshot has what came later"


def memory():
    server = os.popen(f"pgrep -f 'onode mount .*{mount}'").read().split()[0]
    lines = open(f"/proc/{server}/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) // 1024


before = memory()
make = lambda name: os.setxattr(cloned, "user.onode.clone", f"{first}/c{name}".encode())
told(f"make one of {clones} clones of the oldest", [timed(lambda: make(number)) for number in range(clones)])
told("list them", [timed(lambda: os.listdir(cloned))])


def change(number):
    with open(f"{cloned}/c{number}/{path(number * 7 % files)}", "w") as file:
        file.write("c" * 1000)


told("change a file in one that was not used before", [timed(lambda: change(number)) for number in range(clones)])
print(f"memory of the server: {before} MiB before, {memory()} MiB with {clones} clones in use")
walk = [timed(lambda: sum(len(found) for _, _, found in os.walk(f"{cloned}/c0")))]
told("walk through all files of one", walk)
with open(f"{cloned}/c0/{path(0)}") as file:
    assert file.read() == "c" * 1000, "a clone has lost its change"
with open(f"{cloned}/c1/{path(0)}") as file:
    assert file.read() == "a" * 1000, "a clone has the change of another one"
told("delete one of them", [timed(lambda: os.rmdir(f"{cloned}/c{number}")) for number in range(clones)])
told("delete a snapshot", [timed(lambda: os.rmdir(f"{folder}/{number}")) for number in range(snapshots)])
PYTHON
"$ONODE" umount "$work/mnt"
"$ONODE" check "$work/disk.img"
cargo test --release --quiet -p onode-services --test all -- --nocapture snapshots::flash_keeps clones::a_clone_costs |
    grep -E 'a snapshot|in a clone'
