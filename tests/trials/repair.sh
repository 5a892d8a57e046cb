#!/usr/bin/env bash
# One letter of a name changed in the log of a volume with synced files: `check` says so, `repair
# --drop-damaged` ends, the volume is clean then and most files are there, and the mount works. On
# memory nothing could be read any more and repair ran in a circle; `ls` of flash showed 74 of 100
# names with code 0.
. "$(dirname "$0")/common.sh"
cat >"$WORK/write.py" <<'P'
import os, sys
for n in range(100):
    file = os.open(f"{sys.argv[1]}/name{n}", os.O_CREAT | os.O_WRONLY); os.write(file, b"data%d" % n); os.fsync(file); os.close(file)
P
cat >"$WORK/change.py" <<'P'
import sys
path = sys.argv[1]
data = open(path, "rb").read()
at = data.rfind(b"name50") if sys.argv[2] == "last" else data.find(b"name50")
if at < 0: sys.exit("the name is nowhere")
with open(path, "r+b") as file: file.seek(at + 5); file.write(b"1")
P
lines=()
for kind in scm flash tier; do
    for which in first last; do
        use "$kind"
        make 32M
        up
        python3 "$WORK/write.py" "$MNT"
        if [ "$kind" = scm ]; then down_well; else killed; fi
        python3 "$WORK/change.py" "$IMAGE" "$which"
        asked check "$(spec)"
        checked=$CODE
        asked ls "$(spec)" /
        names=$(grep -c name "$WORK/said" || true)
        [ "$checked" -ne 0 ] || [ "$names" -eq 100 ] || fail "$kind, $which: check says nothing, ls shows $names of 100 names"
        [ "$CODE" -ne 0 ] || [ "$names" -eq 100 ] || fail "$kind, $which: ls shows $names of 100 names with code 0"
        if [ "$checked" -ne 0 ]; then
            asked repair "$(spec)"
            asked repair --drop-damaged "$(spec)"
            asked check "$(spec)"
            [ "$CODE" -eq 0 ] || { cat "$WORK/said"; fail "$kind, $which: check says $CODE after repair --drop-damaged"; }
        fi
        up
        there=$(find "$MNT" -name 'name*' | wc -l)
        wrong=0
        for n in $(seq 0 99); do
            [ ! -e "$MNT/name$n" ] || [ "$(cat "$MNT/name$n" 2>/dev/null)" = "data$n" ] || wrong=$((wrong + 1))
        done
        down_well
        [ "$wrong" -le 1 ] || fail "$kind, $which: $wrong files have other bytes or none"
        lines+=("$kind $which: check $checked, $there of 100 left")
    done
done
did "$(printf '%s; ' "${lines[@]}")"
