#!/usr/bin/env bash
# xfstests, its group XFSTESTS_GROUP (default quick) or the tests in XFSTESTS_ONLY, on a volume of
# the kind ONODE_DEVICE. XFSTESTS is the folder where it was built (`make`): no package has it.
# About a quarter of an hour; needs root and the users fsgqa, fsgqa2 and 123456-fsgqa. A test that
# fails is one of those below, each for the reason that stands there.
. "$(dirname "$0")/common.sh"
[ -n "${XFSTESTS:-}" ] && [ -x "$XFSTESTS/ltp/fsstress" ] ||
    skip "XFSTESTS names no folder with a built xfstests; clone it, run make, and name it"
[ "$(id -u)" -eq 0 ] || skip "needs root"
declare -A KNOWN=(
    [generic/394]="sets a limit of the file size, which machines without that right refuse"
    [generic/564]="the same"
    [generic/490]="takes the byte at which a hole ends for the size of a block: holes are exact to the byte"
    [generic/539]="the same, on memory"
    [generic/556]="asks for names without case, which mkfs does not refuse because FUSE volumes are made elsewhere"
    [generic/568]="fallocate reserves nothing"
    [generic/732]="mounts one image in two places, which is refused"
)
size=${XFSTESTS_SIZE:-4G}
# Its files have the source of a mount between commas; a volume on two media has a comma in it.
cp -r "$XFSTESTS" "$WORK/xfstests"
cd "$WORK/xfstests"
sed -i -E 's/s,(\\B)?\$(TEST_DEV|SCRATCH_DEV),([A-Z_]+),(g?)/s|\1$\2|\3|\4/g' common/*
sed -i "s|-e 's/fuse.ceph-fuse/ceph-fuse/'|& -e 's/fuse.onode/fuse/'|" common/rc
sed -i "s|exec ./\$seq\"|exec timeout -k 10 ${XFSTESTS_SECONDS:-300} ./\$seq\"|" check
before_clean_up() {
    umount -l "$WORK/test" "$WORK/scratch" 2>/dev/null
    rm -f /sbin/mount.fuse.onode "${MEMORY_FILE:-$WORK/none}".*
}
ln -sf "$ONODE" /sbin/mount.fuse.onode
for user in fsgqa fsgqa2 123456-fsgqa; do id "$user" >/dev/null 2>&1 || useradd "$user"; done

# volume NAME makes a volume; its spec, as the source of a mount shows it, is in SPEC.
volume() {
    local image=$IMAGE.$1
    case ${ONODE_DEVICE:-flash} in
        scm) SPEC=scm:$image ;;
        flash) SPEC=flash:$image ;;
        *) SPEC=$(volume_of "$image") ;;
    esac
    "$ONODE" mkfs "$SPEC,size=$size" >/dev/null || fail "mkfs of $SPEC"
}
volume test && test_spec=$SPEC
volume scratch && scratch_spec=$SPEC
mkdir "$WORK/test" "$WORK/scratch"
cat >local.config <<CONFIG
export FSTYP=fuse FUSE_SUBTYP=.onode
export TEST_DEV=$test_spec TEST_DIR=$WORK/test
export SCRATCH_DEV=$scratch_spec SCRATCH_MNT=$WORK/scratch
export MOUNT_OPTIONS="-o relatime,suid,dev" TEST_FS_MOUNT_OPTS="-o relatime,suid,dev"
CONFIG
# shellcheck disable=SC2086
./check ${XFSTESTS_ONLY:--g ${XFSTESTS_GROUP:-quick}} >"$WORK/said" 2>&1 || true
grep -q '^Ran: ' "$WORK/said" || { tail -n 20 "$WORK/said"; fail "it ran no test"; }
umount "$WORK/scratch" 2>/dev/null || true
umount "$WORK/test" 2>/dev/null || true
listed=$(grep '^Ran: ' "$WORK/said" | wc -w) left=$(grep '^Not run: ' "$WORK/said" | wc -w || true)
unknown=() known=()
for name in $(sed -n 's/^Failures: //p' "$WORK/said"); do
    if [ -n "${KNOWN[$name]:-}" ]; then known+=("$name"); else unknown+=("$name"); fi
done
for name in "${known[@]}"; do echo "  $name: ${KNOWN[$name]}"; done
for spec in "$test_spec" "$scratch_spec"; do
    for _ in $(seq 100); do "$ONODE" check "$spec" >/dev/null 2>&1 && break; sleep 0.1; done
    "$ONODE" check "$spec" >/dev/null || fail "check of $spec"
done
[ ${#unknown[@]} -eq 0 ] || { for name in "${unknown[@]}"; do head -n 20 "results/$name.out.bad"; done; fail "${unknown[*]}"; }
did "$((listed - 1)) listed, $((left > 0 ? left - 2 : 0)) not for this file system, ${#known[@]} fail for a known reason, the rest pass"
