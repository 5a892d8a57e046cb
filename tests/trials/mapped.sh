#!/usr/bin/env bash
# What programs store through mappings, or write with `writeback`: over existing bytes of a file on
# a full volume it is there after msync said so, in pieces that no single transaction takes; and a
# copy of a sparse file has what was stored a moment before.
. "$(dirname "$0")/common.sh"
cat >"$WORK/map.py" <<'P'
import mmap, os, sys
root, what = sys.argv[1:3]
def drop(): open("/proc/sys/vm/drop_caches", "w").write("1")
if what == "make":
    with open(f"{root}/db", "wb") as file: file.write(os.urandom(3000000))
    os.sync()
    # The kernel takes all with `writeback`: only a sync tells that there is no room.
    rest, at = os.open(f"{root}/rest", os.O_WRONLY | os.O_CREAT), 0
    try:
        while at < 40 << 20: at += os.pwrite(rest, os.urandom(1 << 20), at)
        os.fsync(rest)
    except OSError: pass
if what == "over":
    file, size, wrong, told = os.open(f"{root}/db", os.O_RDWR), 3000000, 0, 0
    for turn in range(20):
        at, data = turn * 137531 % (size - 200000), os.urandom(200000)
        memory = mmap.mmap(file, size)
        memory[at:at + len(data)] = data
        try: memory.flush()
        except OSError: told += 1
        else:
            # Pages that are mapped stay in memory.
            memory.close()
            drop()
            wrong += os.pread(file, len(data), at) != data
    print(f"{wrong} wrong, {told} refused of 20")
if what == "sparse":
    file = os.open(f"{root}/sparse", os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, 8 << 20)
    memory = mmap.mmap(file, 8 << 20)
    memory[5 << 20:(5 << 20) + 10] = b"0123456789"
    try: found = os.lseek(file, 0, os.SEEK_DATA)
    except OSError: found = -1
    os.system(f"cp {root}/sparse {root}/copy")
    copied = open(f"{root}/copy", "rb").read() == bytes(memory)
    print("the copy is right" if copied and 0 <= found <= 5 << 20 else f"data at {found}, the copy is wrong")
P
lines=()
for kind in flash tier; do
    for options in nowriteback writeback; do
        use "$kind"
        make 24M 8M
        up -o "rw,$options"
        sparse=$(python3 "$WORK/map.py" "$MNT" sparse)
        python3 "$WORK/map.py" "$MNT" make
        # What is in memory is written back.
        sleep 6
        over=$(python3 "$WORK/map.py" "$MNT" over)
        down
        [ "$sparse" = "the copy is right" ] || fail "$kind, $options: $sparse"
        [ "${over%% wrong*}" = 0 ] || fail "$kind, $options: $over"
        [ "$kind" != flash ] || [ "$over" = "0 wrong, 0 refused of 20" ] || fail "$kind, $options: $over"
        lines+=("$kind, $options: $over")
    done
done
did "$(printf '%s; ' "${lines[@]}")"
