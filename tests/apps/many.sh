#!/usr/bin/env bash
# MANY_ENTRIES (default 100000; 1000000 by option) files in one directory: listed, found, removed.
. "$(dirname "$0")/common.sh"
need python3=python3-minimal
entries=${MANY_ENTRIES:-100000}
onode_up "${MANY_SIZE:-2G}"
cat >"$WORK/many.py" <<'P'
import os, random, sys
root, entries, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
name = lambda n: f"{root}/{n:x}-entry-{n * 2654435761 % 2**32:x}"
everything = {os.path.basename(name(n)) for n in range(entries)}
def check(expected):
    found = [entry.name for entry in os.scandir(root)]
    assert len(found) == len(set(found)), "a name is listed twice"
    assert set(found) == expected, f"{len(found)} names instead of {len(expected)}"
draw = random.Random(1)
if what == "make":
    os.mkdir(root)
    for n in range(entries): os.close(os.open(name(n), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
check(everything)
for n in draw.sample(range(entries), 2000): assert os.lstat(name(n)).st_size == 0
for n in range(2000):
    try: os.lstat(f"{root}/absent-{n}"); raise SystemExit("found what is not there")
    except FileNotFoundError: pass
if what == "remove":
    # Every second one, while a listing is under way: names that stay must all be listed once.
    stay = {os.path.basename(name(n)) for n in range(0, entries, 2)}
    seen = []
    with os.scandir(root) as listing:
        for count, entry in enumerate(listing):
            seen.append(entry.name)
            if count == 1000:
                for n in range(1, entries, 2): os.unlink(name(n))
    assert len(seen) == len(set(seen)), "a name is listed twice"
    assert stay <= set(seen), "a name that stayed was not listed"
    check(stay)
    for n in range(0, entries, 2): os.unlink(name(n))
    check(set())
    os.rmdir(root)
P
begin=$SECONDS
python3 "$WORK/many.py" "$MNT/directory" "$entries" make || fail "making"
made=$((SECONDS - begin))
onode_down
onode_up
python3 "$WORK/many.py" "$MNT/directory" "$entries" remove || fail "removing"
onode_down
did "$entries entries in one directory made in $made s, listed, found and removed during a listing"
