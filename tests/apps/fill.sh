#!/usr/bin/env bash
# FILL_ROUNDS (default 20; 1000 by option) rounds of filling to ENOSPC and deleting: no space leaks,
# unlink always works, and 99 % of what statfs promises can be written.
. "$(dirname "$0")/common.sh"
need python3=python3-minimal
rounds=${FILL_ROUNDS:-20}
onode_up "${FILL_SIZE:-32M}"
cat >"$WORK/fill.py" <<'P'
import errno, os, random, sys, time
root, rounds = sys.argv[1], int(sys.argv[2])
def free(expected=0):
    # What was unlinked is free once the kernel forgets it, which is soon but not at once.
    for _ in range(100):
        os.sync(); v = os.statvfs(root)
        if v.f_bavail * v.f_frsize >= expected: break
        time.sleep(0.1)
    return v.f_bavail * v.f_frsize
def fill(draw, sizes):
    names = []
    try:
        while True:
            name = f"{root}/{len(names)}"
            names.append(name)
            with open(name, "wb", buffering=0) as file:
                left = draw.choice(sizes)
                while left: left -= file.write(draw.randbytes(min(left, 65536)))
    except OSError as error:
        if error.errno != errno.ENOSPC: raise
    return names
figures, least = [], 1.0
kinds = [[1 << 20], [4096], [500, 3000, 9000], [100, 50000, 300000], [65536]]
for n in range(rounds):
    draw = random.Random(n)
    names = fill(draw, kinds[n % len(kinds)])
    draw.shuffle(names)
    for name in names:
        # The very last may be the one that could not even be made.
        if os.path.lexists(name): os.unlink(name)
    figures.append(free(figures[0] - 65536 if figures else 0))
    promise = figures[-1]
    left = promise * 99 // 100
    with open(f"{root}/promise", "wb", buffering=0) as file:
        try:
            while left: left -= file.write(draw.randbytes(min(left, 1 << 20)))
            os.fsync(file.fileno())
        except OSError as error: sys.exit(f"round {n}: {left} of the promised {promise} bytes could not be written: {error}")
    os.unlink(f"{root}/promise")
    after = free(promise - 65536)
    if after != promise: print(f"round {n}: {promise} free before, {after} after", file=sys.stderr)
    figures[-1] = after
spread = max(figures) - min(figures)
print(f"{figures[0]} bytes free after the first round, {figures[-1]} after the last, spread {spread}")
# Leaks grow; a page or two of metadata that wait for the cleaner do not.
if figures[-1] < figures[0] - 65536 or spread > 262144: sys.exit(f"free space wanders: {figures}")
P
before=$(stat -f -c %a "$MNT")
figures=$(python3 "$WORK/fill.py" "$MNT" "$rounds") || { echo "$figures"; fail "filling"; }
[ -z "$(ls -A "$MNT")" ] || fail "something is left"
sync -f "$MNT"
onode_down
onode_up
after=$(stat -f -c %a "$MNT")
onode_down
did "$rounds rounds: $figures; $before blocks free when new, $after at the end"
