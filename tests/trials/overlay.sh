#!/usr/bin/env bash
# Onode as the upper directory of an overlay mount, as podman and docker use one: what is removed or
# renamed in the overlay leaves whiteouts (RENAME_WHITEOUT), and after a remount the overlay shows
# the same tree.
. "$(dirname "$0")/common.sh"

grep -q '\boverlay$' /proc/filesystems || modprobe overlay 2>/dev/null || skip "this kernel has no overlay mounts"

# work_in DIRECTORY does there what a container does to its image.
work_in() (
    cd "$1"
    mv hosts names
    mv bin/tool bin/other
    rm etc/old
    rm -r share
    mkdir share
    echo new >share/new
    echo more >>etc/log
    chmod 700 etc/secret
    ln etc/log etc/same
    mv tree forest
    mv forest/deep/leaf forest/leaf
    rm etc/old-too
    echo again >etc/old-too
)

fill() {
    mkdir -p "$1"/{bin,etc,share/doc,tree/deep}
    for file in hosts bin/tool bin/keep etc/old etc/old-too etc/log etc/secret share/doc/a share/b tree/deep/leaf tree/stem; do
        printf '%s\n' "$file" >"$1/$file"
    done
}

over() { mount -t overlay overlay -o "lowerdir=$PLACE/lower,upperdir=$MNT/upper,workdir=$MNT/work" "$PLACE/over"; }

before_clean_up() {
    mountpoint -q "$PLACE/over" && umount -l "$PLACE/over"
    rm -rf "$PLACE"
}

# shows says whether the overlay shows what the same work made of a plain directory.
shows() {
    diff -r --no-dereference "$PLACE/plain" "$PLACE/over" || fail "$ONODE_DEVICE: $1 the overlay shows something else"
    local modes='find . -mindepth 1 ! -type d -printf "%P %M %n %s\n" | sort'
    diff <(cd "$PLACE/plain" && eval "$modes") <(cd "$PLACE/over" && eval "$modes") ||
        fail "$ONODE_DEVICE: $1 modes, links or sizes are others"
}

for device in "${DEVICES[@]}"; do
    use "$device"
    make 64M
    up
    rm -rf "$PLACE"/{lower,plain,over}
    mkdir -p "$PLACE"/{lower,plain,over} "$MNT"/{upper,work}
    fill "$PLACE/lower"
    fill "$PLACE/plain"
    over || fail "$device: no overlay mount with the volume as its upper directory"
    work_in "$PLACE/plain"
    work_in "$PLACE/over"
    shows "at once"
    [ -c "$MNT/upper/hosts" ] && [ "$(stat -c '%t:%T' "$MNT/upper/hosts")" = 0:0 ] || fail "$device: no whiteout is left"
    umount "$PLACE/over"
    down_well
    up
    over || fail "$device: no overlay mount after a remount"
    shows "after a remount"
    umount "$PLACE/over"
    down_well
    sound
    echo "$device: an overlay mount shows what it should, also after a remount"
done
