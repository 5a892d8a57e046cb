#!/usr/bin/env bash
# The tours of README.md run as they stand: each block below a line `<!-- tour -->` in an empty
# directory, as a person types it. Two of them failed as they were written.
. "$(dirname "$0")/common.sh"

before_clean_up() {
    umount -l "$WORK"/tour-*/mnt 2>/dev/null
    rm -rf "$PLACE"
}

awk -v folder="$WORK" '
    /^<!-- tour -->/ { count += 1; wanted = 1; next }
    wanted && /^```sh/ { inside = 1; wanted = 0; next }
    inside && /^```/ { inside = 0 }
    inside { print >(folder "/tour-" count ".sh") }
' "$REPOSITORY/README.md"
tours=("$WORK"/tour-*.sh)
[ "${#tours[@]}" -ge 4 ] || fail "README.md has ${#tours[@]} tours"
PATH=$(dirname "$ONODE"):$PATH
for tour in "${tours[@]}"; do
    place=${tour%.sh}
    mkdir "$place"
    (cd "$place" && bash -e -o pipefail "$tour") >"$WORK/said" 2>&1 ||
        { cat "$WORK/said"; fail "$(basename "$tour") ends with $?"; }
    mountpoint -q "$place/mnt" && fail "$(basename "$tour") leaves a mount"
done
did "${#tours[@]} tours of README.md as they stand"
