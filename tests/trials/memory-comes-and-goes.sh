#!/usr/bin/env bash
# The memory beside the flash of a mounted volume goes and comes, also after it was cut short:
# nothing that was accepted is lost, what is not its memory is refused, and everything is told. A
# memory that failed came back with the next mount only.
. "$(dirname "$0")/common.sh"
fill() { for n in $(seq 40); do head -c 20000 /dev/urandom >"$MNT/$1$n" && sync "$MNT/$1$n"; done; }
sums() { (cd "$MNT" && find . -type f | sort | xargs sha256sum) >"$1"; }
same() { sums "$WORK/now"; cmp "$WORK/sums" "$WORK/now" || fail "$ONODE_DEVICE: other files $1"; }
tells() { asked "${@:2}"; [ "$CODE" -eq "$1" ] || { cat "$WORK/said"; fail "$ONODE_DEVICE: onode ${*:2}: $CODE, expected $1"; }; }
# A notice of what was filled anew may be there.
well() {
    asked health "$MNT"
    if grep -q DEGRADED "$WORK/said"; then cat "$WORK/said"; fail "$ONODE_DEVICE: health says $CODE $1"; fi
}

for kind in flash+scm flash+scm-buffer; do
    use $kind
    make 48M
    up
    fill before
    tells 0 detach "$MNT"
    tells 2 detach "$MNT"
    asked health "$MNT"
    [ "$CODE" -ne 0 ] || fail "$kind: health says nothing of a volume without its memory"
    fill without
    sums "$WORK/sums"
    # The flash has it all: after a crash, with no memory.
    killed
    mv "$IMAGE.index" "$WORK/old"
    up
    same "after a crash without the memory"
    tells 2 attach "$MNT"
    tells 0 detach "$MNT"

    # The memory of another volume and what is none are refused, a missing one is made.
    mv "$IMAGE.index" "$WORK/one"
    "$ONODE" mkfs "flash+scm:$PLACE/other,$IMAGE.index,size=48M" >/dev/null
    tells 2 attach "$MNT"
    tells 0 attach --empty "$MNT"
    well "after an empty memory was attached"
    tells 0 detach "$MNT"
    head -c 1M /dev/urandom >"$IMAGE.index"
    tells 2 attach --empty "$MNT"
    rm "$IMAGE.index"
    tells 0 attach "$MNT"
    fill back
    # Cut short under the mount it is given up, now or when it is used next, and comes back anew.
    truncate -s 0 "$IMAGE.index"
    fill cut
    asked detach "$MNT"
    tells 0 attach "$MNT"
    well "after the memory came back"
    fill last
    sums "$WORK/sums"
    killed
    up
    same "after a crash with the memory"
    down_well
    sound
    up
    same "after a new mount"
    down_well
    # One of before is not taken for the one of now.
    cp "$WORK/old" "$IMAGE.index"
    up
    same "with an old memory"
    down_well
    rm -f "$PLACE/other"
    did "$kind: $(wc -l <"$WORK/sums") files, whatever became of the memory"
done
