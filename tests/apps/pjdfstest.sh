#!/usr/bin/env bash
# pjdfstest, the Rust edition: what POSIX says about the calls that take names; no failure allowed.
. "$(dirname "$0")/common.sh"
if [ ! -x "$ONODE_TOOLS/bin/pjdfstest" ] && ! [ -e /usr/include/sys/acl.h ]; then need no-such-command=libacl1-dev; fi
need_tool pjdfstest 0.2.2
onode_up 512M
cat >"$WORK/pjdfstest.toml" <<'T'
[features]
posix_fallocate = {}
rename_ctime = {}
utimensat = {}
utime_now = {}
stat_st_birthtime = {}
[settings]
naptime = 0.01
allow_remount = false
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"], ["games", "games"]]
T
mkdir "$MNT/test"
chmod 777 "$MNT/test"
code=0
(cd "$WORK" && "$ONODE_TOOLS/bin/pjdfstest" -c "$WORK/pjdfstest.toml" -p "$MNT/test" ${PJDFSTEST_ARGUMENTS:-}) >"$WORK/pjdfstest.log" 2>&1 || code=$?
summary=$(grep -E '[0-9]+ (passed|failed|tests)' "$WORK/pjdfstest.log" | tail -n 1)
if [ $code -ne 0 ] || grep -qE '(^| )[1-9][0-9]* failed' "$WORK/pjdfstest.log"; then
    grep -iE 'fail|panick' "$WORK/pjdfstest.log" | head -n 60
    tail -n 5 "$WORK/pjdfstest.log"
    fail "$summary"
fi
[ -n "$summary" ] || fail "no summary: $(tail -n 3 "$WORK/pjdfstest.log")"
onode_down
did "$summary"
