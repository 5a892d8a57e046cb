# Shared by the application tests: a work folder, Onode and ext4 mounts, packages, clean-up.
#
# A test sources this file, says what it did in one line with `did`, and ends with 0 (passed), 77
# (skipped, with the reason) or anything else (failed). ONODE names the binary to test,
# MOUNT_OPTIONS what every mount is given with -o.
# shellcheck shell=bash
set -euo pipefail

REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
ONODE=$(realpath "${ONODE:-$REPOSITORY/target/release/onode}")
ONODE_TOOLS=${ONODE_TOOLS:-$REPOSITORY/target/tools}
NAME=$(basename "$0" .sh)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/onode-$NAME.XXXXXX")
chmod 755 "$WORK"
MNT=$WORK/mnt
IMAGE=$WORK/disk.img
# ONODE_DEVICE=flash, scm, flash+scm, flash+scm-buffer or tier: the kind of device that a test runs
# on. Storage-class memory is a file in memory.
if [ "${ONODE_DEVICE:-flash}" = scm ]; then
    MEMORY_FILE=/dev/shm/$(basename "$WORK").region
    IMAGE=$MEMORY_FILE
fi
# What the volume in an image (and with some devices in a file beside it) is called.
volume_of() {
    case ${ONODE_DEVICE:-flash} in
        flash+scm) echo "flash+scm:$1,$1.index" ;;
        flash+scm-buffer) echo "flash+scm:$1,$1.index,buffer=on" ;;
        tier) echo "tier:$1.fast,$1" ;;
        *) echo "$1" ;;
    esac
}
EXT=$WORK/ext4
SERVER=
EXT_KIND=

clean_up() {
    local code=$?
    trap - EXIT
    set +e
    cd /
    if [ "$code" -ne 0 ] && [ "$code" -ne 77 ] && [ -s "$WORK/onode.log" ]; then
        echo "--- what the server said:"
        tail -n 20 "$WORK/onode.log"
    fi
    if declare -F before_clean_up >/dev/null; then before_clean_up; fi
    if [ -n "$SERVER" ] && kill -0 "$SERVER" 2>/dev/null; then
        umount -l "$MNT" 2>/dev/null
        kill -TERM "$SERVER" 2>/dev/null
        for _ in $(seq 50); do kill -0 "$SERVER" 2>/dev/null || break; sleep 0.1; done
        kill -KILL "$SERVER" 2>/dev/null
    fi
    umount -l "$MNT" 2>/dev/null
    umount -l "$EXT" 2>/dev/null
    if [ -n "${KEEP:-}" ]; then echo "kept $WORK"; else rm -rf "$WORK" "${MEMORY_FILE:-$WORK}"; fi
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

did() { echo "$NAME: $*"; }
fail() { echo "$NAME: FAILED: $*"; exit 1; }
skip() { echo "$NAME: skipped: $*"; exit 77; }

# need command=package ... installs what is missing.
need() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    [ "$(id -u)" -eq 0 ] || skip "needs ${missing[*]} and only root can install that"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; } ||
        fail "cannot install ${missing[*]}"
}

# need_tool name version installs a tool from the Rust registry below ONODE_TOOLS.
need_tool() {
    [ -x "$ONODE_TOOLS/bin/$1" ] && return 0
    command -v cargo >/dev/null || skip "needs cargo to install $1"
    cargo install "$1" --version "$2" --locked --root "$ONODE_TOOLS" --quiet || fail "cannot install $1 $2"
}

[ -x "$ONODE" ] || fail "there is no $ONODE; build it: cargo build --release -p onode-cli"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
[ "$(id -u)" -eq 0 ] || skip "mounting ext4 beside it needs root"

# is_served: a mount whose server was killed still looks like one, from what the kernel remembers of
# it, and when it was taken away the directory below it shows for a moment. The type of the file
# system is asked of the server, in one call.
is_served() { [ "$(stat -f -c %t "$MNT" 2>/dev/null)" = 65735546 ]; }

wait_for_mount() {
    for _ in $(seq 300); do
        if is_served; then return 0; fi
        kill -0 "$SERVER" 2>/dev/null || { cat "$WORK/onode.log"; fail "onode up ended"; }
        sleep 0.1
    done
    fail "no mount after 30 s"
}

# onode_up [SIZE] [OPTION...] mounts the image, made with that size at the first time.
onode_up() {
    local size=${1:-2G}
    shift || true
    local spec
    spec=$(volume_of "$IMAGE")
    if [ ! -e "$IMAGE" ]; then
        case $spec in *:*) spec=$spec,size=$size ;; *) spec=${ONODE_DEVICE:-flash}:$spec,size=$size ;; esac
    fi
    "$ONODE" up "$MNT" "$spec" -o "${MOUNT_OPTIONS:-rw}" "$@" >>"$WORK/onode.log" 2>&1 &
    SERVER=$!
    wait_for_mount
}

# onode_down unmounts; the server must end well and the image must be sound.
onode_down() {
    cd "$WORK"
    sync -f "$MNT"
    "$ONODE" umount "$MNT" >/dev/null || fail "umount"
    wait "$SERVER" || fail "the server ended with $?"
    SERVER=
    check_image
}

check_image() {
    "$ONODE" check "$(volume_of "$IMAGE")" >"$WORK/check.log" 2>&1 || { cat "$WORK/check.log"; fail "onode check found damage"; }
}

# ext4_up [MIB [IMAGE]] makes EXT an ext4 file system, or, where loop devices cannot be had, a host
# folder.
ext4_up() {
    mkdir -p "$EXT"
    need mkfs.ext4=e2fsprogs
    local image=${2:-$WORK/ext4.img}
    truncate -s "${1:-2048}M" "$image"
    if mkfs.ext4 -q -F "$image" && mount -o loop "$image" "$EXT" 2>/dev/null; then
        EXT_KIND=ext4
        rmdir "$EXT/lost+found"
    else
        EXT_KIND="the host's $(stat -f -c %T "$WORK")"
    fi
}

# listing DIRECTORY prints what is in a tree: type, mode, owner, size, links, time, name, target.
listing() {
    (cd "$1" && find . -mindepth 1 \
        \( -type d -printf '%y %m %u:%g - - - %P\n' \) -o \
        \( -printf '%y %m %u:%g %s %n %T@ %P %l\n' \) | LC_ALL=C sort)
}

sums() { (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum); }

# same_trees A B: contents and metadata are equal (times with the flag).
same_trees() {
    diff <(sums "$1") <(sums "$2") >"$WORK/diff.log" || { head "$WORK/diff.log"; fail "contents differ"; }
    local drop=6
    [ "${3:-}" = --times ] && drop=0
    diff <(listing "$1" | cut_field $drop) <(listing "$2" | cut_field $drop) >"$WORK/diff.log" ||
        { head "$WORK/diff.log"; fail "metadata differ"; }
}

cut_field() {
    if [ "$1" -eq 0 ]; then cat; else awk -v drop="$1" '{ $drop = ""; print }' | LC_ALL=C sort; fi
}
