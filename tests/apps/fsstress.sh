#!/usr/bin/env bash
# fsstress of LTP or xfstests: FSSTRESS_OPS random calls (default 2000) of each of 4 processes;
# names, metadata and content are the same after a new mount, and the image is sound. It is taken
# from PATH or $ONODE_TOOLS/bin: no package has it.
. "$(dirname "$0")/common.sh"
PATH=$ONODE_TOOLS/bin:/usr/lib/xfstests/ltp:/opt/ltp/testcases/bin:$PATH
command -v fsstress >/dev/null || skip "there is no fsstress; build it from LTP or xfstests and put it into $ONODE_TOOLS/bin"
onode_up "${FSSTRESS_SIZE:-512M}"
mkdir "$MNT/s"
# LTP's removes its files at the end unless it has -c; that of xfstests removes them if it has it.
keep=()
usage=$(fsstress -H 2>&1 || true)
[[ $usage != *"-c "*"not to remove"* ]] || keep=(-c)
# Device nodes, and calls that only other file systems have, say that they are not supported.
fsstress "${keep[@]}" -d "$MNT/s" -p 4 -n "${FSSTRESS_OPS:-2000}" -s "${FSSTRESS_SEED:-1}" >"$WORK/fsstress.log" 2>&1 || { tail -n 5 "$WORK/fsstress.log"; fail fsstress; }
sync -f "$MNT"
[ -n "$(ls -A "$MNT/s")" ] || fail "fsstress left no files to compare"
listing "$MNT/s" >"$WORK/names"
sums "$MNT/s" >"$WORK/sums"
onode_down
onode_up
listing "$MNT/s" | diff -q - "$WORK/names" >/dev/null || fail "names or metadata differ after a new mount"
sums "$MNT/s" | diff -q - "$WORK/sums" >/dev/null || fail "content differs after a new mount"
rm -rf "$MNT/s" || fail "it cannot be removed"
onode_down
did "$((4 * ${FSSTRESS_OPS:-2000})) calls, $(wc -l <"$WORK/names") names the same after a new mount"
