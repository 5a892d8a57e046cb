#!/usr/bin/env bash
# What one call of a program costs on a mount: microseconds, the median over ROUNDS (default 5) runs
# in turn, and requests of the kernel, on ext4 (loop device), bindfs (over tmpfs) and Onode with
# default options and with each of OPTIONS (default "io-uring=off noflush threads=1"). All images
# lie in memory. CALLS (default 2000) is how many calls one run makes. The kernel's switch of FUSE
# over io_uring is put back.
#
#   tests/bench/calls.sh
. "$(dirname "$0")/../apps/common.sh"
need bindfs=bindfs mkfs.ext4=e2fsprogs cc=gcc python3=python3-minimal
rounds=${ROUNDS:-5}
number=${CALLS:-2000}
options=${OPTIONS:-io-uring=off noflush threads=1}
calls=(create create4k open stat write4k chmod rename unlink)
cc -O2 -Wall -o "$WORK/calls" "$REPOSITORY/tests/bench/calls.c" || fail "cannot build calls.c"

mounts=()
switch=/sys/module/fuse/parameters/enable_uring
switched=$(cat "$switch" 2>/dev/null || true)
before_clean_up() {
    [ -z "$switched" ] || echo "$switched" >"$switch"
    for place in "${mounts[@]}" "$WORK/bindfs" "$EXT" "$WORK/memory"; do umount -l "$place" 2>/dev/null; done
}
mkdir -p "$WORK/memory" "$WORK/bindfs"
mount -t tmpfs -o size=6G none "$WORK/memory"
mkdir "$WORK/memory/below"
bindfs "$WORK/memory/below" "$WORK/bindfs" || fail "bindfs"
ext4_up 1024 "$WORK/memory/ext4.img"
kinds=("ext4 $EXT" "bindfs $WORK/bindfs")
for option in default $options; do
    place=$WORK/onode-$option
    mkdir "$place"
    "$ONODE" mkfs --size 512M "flash:$WORK/memory/$option.img" >/dev/null
    [ "$option" = default ] && set -- || set -- -o "$option"
    "$ONODE" mount "$@" "flash:$WORK/memory/$option.img" "$place" || fail "mount with $option"
    mounts+=("$place")
    kinds+=("onode,$option $place")
done

# requests PLACE prints what the kernel asked for until now.
requests() { "$ONODE" stat --json "$1" 2>/dev/null || echo '{}'; }

for round in $(seq "$rounds"); do
    for one in "${kinds[@]}"; do
        read -r kind place <<<"$one"
        mkdir -p "$place/calls"
        for call in "${calls[@]}"; do
            case $kind in onode*) requests "$place" >"$WORK/before" ;; *) echo '{}' >"$WORK/before" ;; esac
            time=$("$WORK/calls" "$place/calls" "$call" "$number") || fail "$call on $kind"
            case $kind in onode*) requests "$place" >"$WORK/after" ;; *) echo '{}' >"$WORK/after" ;; esac
            printf '%s\t%s\t%s\t%s\t%s\n' "$kind" "$call" "$time" "$(tr -d '\n' <"$WORK/before")" "$(tr -d '\n' <"$WORK/after")" >>"$WORK/figures"
        done
    done
done

python3 - "$WORK/figures" "$number" <<'END'
import json, statistics, sys

times, requests, kinds, calls = {}, {}, [], []
for line in open(sys.argv[1]):
    kind, call, time, before, after = line.rstrip("\n").split("\t")
    kinds += [kind] if kind not in kinds else []
    calls += [call] if call not in calls else []
    times.setdefault((kind, call), []).append(float(time))
    before, after = (json.loads(text).get("requests", {}) for text in (before, after))
    # What makes and removes the files of other calls is asked for once in a call, too; it is named
    # and not counted.
    made = {name: (count - before.get(name, 0)) / int(sys.argv[2]) for name, count in after.items()}
    requests[kind, call] = {name: round(count, 1) for name, count in made.items() if count >= .05}
print("Microseconds of a call:\n\n| call |", " | ".join(kinds), "|")
print("|---" * (len(kinds) + 1) + "|")
for call in calls:
    print(f"| {call} |", " | ".join(f"{statistics.median(times[kind, call]):.1f}" for kind in kinds), "|")
print("\nRequests of the kernel, what makes the files before and removes them afterwards included:\n")
for kind in kinds[2:4]:
    for call in calls:
        print(f"- {kind}, {call}:", ", ".join(f"{name} {count:g}" for name, count in sorted(requests[kind, call].items())) or "none")
END
