# Shared by the trials: what the tests of applications share, and several kinds of device in one
# test.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../apps/common.sh"

DEVICES=(flash flash+scm flash+scm-buffer scm tier)
# Images lie in memory if they are small: what is looked for is no matter of the disk.
FAST_PLACE=/dev/shm
[ -d "$FAST_PLACE" ] || FAST_PLACE=$WORK
PLACE=$(mktemp -d "$FAST_PLACE/onode-$NAME.XXXXXX")
before_clean_up() { rm -rf "$PLACE"; }

is_long() { [ "${TRIALS:-}" = long ]; }

# use KIND makes this the device of what follows, with files of its own.
use() {
    ONODE_DEVICE=$1
    rm -rf "$PLACE/${1:?}"
    mkdir -p "$PLACE/$1"
    IMAGE=$PLACE/$1/disk
}

# make SIZE [FAST] makes a volume of the device in use.
make() {
    local spec
    spec=$(volume_of "$IMAGE")
    case $ONODE_DEVICE in
        tier) "$ONODE" mkfs "$spec,size=$1,fast-size=${2:-32M}" >>"$WORK/onode.log" 2>&1 ;;
        flash) "$ONODE" mkfs --size "$1" "$spec" >>"$WORK/onode.log" 2>&1 ;;
        scm) "$ONODE" mkfs "scm:$spec,size=$1" >>"$WORK/onode.log" 2>&1 ;;
        *) "$ONODE" mkfs "$spec,size=$1" >>"$WORK/onode.log" 2>&1 ;;
    esac || { tail -n 5 "$WORK/onode.log"; fail "mkfs on $ONODE_DEVICE"; }
}

# mounts [OPTION...] mounts the volume; says no with the answer of the server in ANSWER instead of
# ending the test.
mounts() {
    mkdir -p "$MNT"
    "$ONODE" mount -f -o "${MOUNT_OPTIONS:-rw}" "$@" "$(volume_of "$IMAGE")" "$MNT" >"$WORK/answer" 2>&1 &
    SERVER=$!
    for _ in $(seq 600); do
        if is_served; then return 0; fi
        if ! kill -0 "$SERVER" 2>/dev/null; then
            ANSWER=0
            wait "$SERVER" || ANSWER=$?
            SERVER=
            return 1
        fi
        sleep 0.05
    done
    fail "neither a mount nor an answer after 30 s"
}

up() { mounts "$@" || { cat "$WORK/answer"; fail "mount of $ONODE_DEVICE: $ANSWER"; }; }

# down unmounts; how that ended is in UNMOUNTED, how the server ended in ENDED.
down() {
    cd "$WORK"
    UNMOUNTED=0 ENDED=0
    "$ONODE" umount "$MNT" >"$WORK/unmounted" 2>&1 || UNMOUNTED=$?
    wait "$SERVER" || ENDED=$?
    SERVER=
}

# down_well unmounts, and everything is saved.
down_well() {
    down
    [ "$UNMOUNTED/$ENDED" = 0/0 ] || { cat "$WORK/unmounted" "$WORK/answer"; fail "$ONODE_DEVICE: umount said $UNMOUNTED, the server $ENDED"; }
}

# killed ends the server as a crash would.
killed() {
    cd "$WORK"
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
    SERVER=
    umount -l "$MNT"
}

# sound: a check of the volume finds nothing.
sound() { check_image; }

# keep and bring_back: the files of the volume as they are now, and as they were then.
keep() { rm -rf "$PLACE/kept"; cp -r --sparse=always "$PLACE/$ONODE_DEVICE" "$PLACE/kept"; }
bring_back() { rm -rf "${PLACE:?}/$ONODE_DEVICE"; cp -r --sparse=always "$PLACE/kept" "$PLACE/$ONODE_DEVICE"; }

# asked COMMAND... runs a command of onode; its code is in CODE, its words are in $WORK/said.
asked() { CODE=0; timeout 60 "$ONODE" "$@" >"$WORK/said" 2>&1 || CODE=$?; }

spec() { volume_of "$IMAGE"; }
need python3=python3-minimal
