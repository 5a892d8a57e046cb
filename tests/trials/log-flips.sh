#!/usr/bin/env bash
# One flipped bit in the structures of a volume that was closed in order: everything is there, or
# some call says that it is not; never an older state that nobody is told of. On memory 77 of 178
# bits brought deleted files back and took new ones away, and `check` said clean.
. "$(dirname "$0")/common.sh"
cat >"$WORK/flip.py" <<'P'
import os, subprocess, sys
onode, spec, image, most = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
def ask(*command):
    done = subprocess.run([onode, *command], capture_output=True, text=True, timeout=60)
    if done.returncode in (70, 101) or done.returncode < 0: sys.exit(f"{command} ended with {done.returncode}: {done.stderr[-300:]}")
    return done
orig = open(image, "rb").read()
want = ask("ls", spec, "/").stdout
# What holds anything, in lines of a processor.
lines = [at for at in range(0, len(orig), 64) if orig[at:at + 64].strip(b"\0").strip(b"\xff")]
step = max(1, len(lines) // most)
told = silent = same = 0
bad = []
for turn, line in enumerate(lines[::step]):
    at = next(at for at in range(line, line + 64) if orig[at])
    with open(image, "r+b") as file: file.seek(at); file.write(bytes([orig[at] ^ (1 << turn % 8)]))
    check, listed = ask("check", spec), ask("ls", spec, "/")
    # A listing that is another one and says so with its code is no secret.
    if listed.returncode == 0 and listed.stdout != want: bad.append((at, check.returncode, len(listed.stdout.split())))
    elif listed.returncode or check.returncode: told += 1
    else: same += 1
    with open(image, "r+b") as file: file.seek(at); file.write(orig[at:at + 1])
if bad: sys.exit(f"{len(bad)} of {told + same + len(bad)} flips show other names with code 0: (byte, code of check, names) {bad[:3]}")
print(f"{told} told, {same} without consequence")
P
most=40
is_long && most=2000
lines=()
for kind in scm flash tier; do
    use "$kind"
    make 32M
    up
    for n in $(seq 100); do echo "data$n" >"$MNT/f$n"; done
    rm "$MNT"/f[1-4]?
    mkdir "$MNT/sub"
    mv "$MNT/f5" "$MNT/sub"
    down_well
    sound
    found=$(python3 "$WORK/flip.py" "$ONODE" "$(spec)" "$IMAGE" "$most" 2>&1) || fail "$kind: $found"
    lines+=("$kind: $found")
done
did "bits flipped in closed volumes: ${lines[*]}"
