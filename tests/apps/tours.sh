#!/usr/bin/env bash
# The commands of the tours and of the page of troubles run as they stand, each page in an empty
# directory, and print what the page shows (tours.py says how that is compared).
. "$(dirname "$0")/common.sh"
need python3=python3-minimal cc=gcc pkg-config=pkgconf

before_clean_up() {
    local mounted
    # What a page that failed left mounted; a server whose mount is gone ends.
    grep -oE " $WORK/[^ ]+ fuse" /proc/self/mounts | while read -r mounted _; do umount -l "$mounted"; done
}

# As after an installation: programs in C find the library by pkg-config.
BUILT=${BUILT:-$(dirname "$ONODE")}
[ -e "$BUILT/libonode_c.a" ] || fail "there is no $BUILT/libonode_c.a; build it: cargo build --release -p onode-capi"
(cd "$REPOSITORY" && BUILT=$BUILT DESTDIR=$WORK/installed scripts/install) >"$WORK/said" 2>&1 ||
    { cat "$WORK/said"; fail "scripts/install"; }
export PATH=$WORK/installed/usr/local/bin:/usr/sbin:/sbin:$PATH
export PKG_CONFIG_SYSROOT_DIR=$WORK/installed PKG_CONFIG_PATH=$WORK/installed/usr/local/lib/pkgconfig
export LD_LIBRARY_PATH=$WORK/installed/usr/local/lib
pages=("$REPOSITORY"/docs/tours/*.md "$REPOSITORY/docs/troubleshooting.md")
[ "${#pages[@]}" -ge 5 ] || fail "there are ${#pages[@]} pages"
for page in "${pages[@]}"; do
    python3 "$REPOSITORY/tests/apps/tours.py" "$page" "$WORK/$(basename "$page" .md)" || fail "$page"
done
! grep -qE " $WORK/[^ ]+ fuse" /proc/self/mounts || fail "a page leaves a mount"
did "${#pages[@]} pages as they stand"
