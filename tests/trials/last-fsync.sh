#!/usr/bin/env bash
# One damaged byte in the content of each of three syncs before a crash: the file is whole, or
# reading it is an error, or the mount refuses or `check` says so. Of the very last sync, too: an
# image notes what was durable.
. "$(dirname "$0")/common.sh"
cat >"$WORK/write.py" <<'P'
import os, sys
for n in range(3):
    file = os.open(f"{sys.argv[1]}/f{n}", os.O_CREAT | os.O_WRONLY)
    os.write(file, b"".join(b"file%d-%08d-abcdefgh." % (n, i) for i in range(20000))); os.fsync(file); os.close(file)
P
cat >"$WORK/damage.py" <<'P'
import sys
data = open(sys.argv[1], "rb").read()
at = data.find(b"file%s-%08d" % (sys.argv[2].encode(), 10000))
if at < 0: sys.exit("the content is nowhere")
with open(sys.argv[1], "r+b") as file: file.seek(at + 9); file.write(bytes([data[at + 9] ^ 1]))
P
lines=()
for kind in flash flash+scm tier; do
    use "$kind"
    make 32M 16M
    up
    python3 "$WORK/write.py" "$MNT"
    sums=$(cd "$MNT" && md5sum f0 f1 f2)
    killed
    keep
    for n in 0 1 2; do
        bring_back
        python3 "$WORK/damage.py" "$IMAGE" "$n"
        asked check "$(spec)"
        told=$CODE
        if mounts; then
            for m in 0 1 2; do
                if found=$(cd "$MNT" && md5sum "f$m" 2>/dev/null); then
                    case $sums in
                        *"$found"*) ;;
                        *) [ "$told" -ne 0 ] || fail "$kind: content of f$n damaged; f$m, synced, has $(stat -c %s "$MNT/f$m") other bytes, nobody says so" ;;
                    esac
                fi
            done
            down
        fi
        lines+=("$kind f$n: check $told")
    done
done
did "$(printf '%s; ' "${lines[@]}")"
