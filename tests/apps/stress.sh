#!/usr/bin/env bash
# Several processes create, write, rename, link, cut and unlink at once, each verifying its own
# files. STRESS_SECONDS (default 20), STRESS_PROCESSES (default 6).
. "$(dirname "$0")/common.sh"
need python3=python3-minimal
seconds=${STRESS_SECONDS:-20}
processes=${STRESS_PROCESSES:-6}
onode_up 1G
cat >"$WORK/worker.py" <<'P'
import os, random, sys, time
root, number, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
draw = random.Random(number)
mine, steps, end = {}, 0, time.monotonic() + seconds
def path(name): return os.path.join(root, name)
# Half of the files lie in a directory of all workers, half in one of their own.
os.makedirs(path(f"own{number}"), exist_ok=True)
def new_name(): return (f"shared/{number}-{steps}" if draw.random() < .5 else f"own{number}/{steps}")
def verify(name):
    with open(path(name), "rb") as file: found = file.read()
    if found != mine[name]: sys.exit(f"{name}: {len(found)} bytes read are not the {len(mine[name])} written")
while time.monotonic() < end:
    steps += 1
    kind = draw.randrange(10)
    some = draw.choice(list(mine)) if mine else None
    if kind < 3 or some is None:
        name, data = new_name(), draw.randbytes(draw.choice([0, 10, 4096, 5000, 100000]))
        with open(path(name), "xb") as file:
            file.write(data)
            if draw.random() < .1: file.flush(); os.fsync(file.fileno())
        mine[name] = data
    elif kind == 3:
        at, data = draw.randrange(len(mine[some]) + 5000), draw.randbytes(3000)
        old = mine[some]
        mine[some] = old[:at].ljust(at, b"\0") + data + old[at + len(data):]
        with open(path(some), "r+b") as file: file.seek(at); file.write(data)
    elif kind == 4:
        name = new_name(); os.rename(path(some), path(name)); mine[name] = mine.pop(some)
    elif kind == 5:
        size = draw.randrange(8000); os.truncate(path(some), size)
        mine[some] = mine[some][:size].ljust(size, b"\0")
    elif kind == 6:
        os.unlink(path(some)); del mine[some]
    elif kind == 7:
        name = new_name(); os.link(path(some), path(name)); os.unlink(path(some)); mine[name] = mine.pop(some)
    elif kind == 8 and len(mine) > 1:
        other = draw.choice(list(mine))
        if other != some: os.replace(path(some), path(other)); mine[other] = mine.pop(some)
    else: verify(some)
    if len(mine) > 200:
        for name in draw.sample(list(mine), 100): os.unlink(path(name)); del mine[name]
for name in list(mine): verify(name)
listed = {f"own{number}/{name}" for name in os.listdir(path(f"own{number}"))}
listed |= {f"shared/{name}" for name in os.listdir(path("shared")) if name.startswith(f"{number}-")}
if listed != set(mine): sys.exit(f"names differ: {sorted(listed ^ set(mine))[:10]}")
with open(sys.argv[4], "w") as file:
    import hashlib
    for name, data in mine.items(): file.write(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
print(steps)
P
mkdir "$MNT/shared"
pids=()
for number in $(seq "$processes"); do
    python3 "$WORK/worker.py" "$MNT" "$number" "$seconds" "$WORK/sums$number" >"$WORK/steps$number" 2>"$WORK/error$number" &
    pids+=($!)
done
for index in "${!pids[@]}"; do
    wait "${pids[$index]}" || { tail -n 5 "$WORK/error$((index + 1))"; fail "worker $((index + 1))"; }
done
steps=$(cat "$WORK"/steps* | awk '{ sum += $1 } END { print sum }')
onode_down
onode_up
for number in $(seq "$processes"); do (cd "$MNT" && sha256sum --quiet -c "$WORK/sums$number") || fail "content differs after a new mount"; done
onode_down
did "$processes processes, $steps steps in $seconds s, all verified, also after a new mount"
