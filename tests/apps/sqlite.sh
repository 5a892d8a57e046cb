#!/usr/bin/env bash
# SQLite with rollback and write-ahead journals: integrity_check, and the same dump as on ext4.
. "$(dirname "$0")/common.sh"
need sqlite3=sqlite3

statements() {
    echo "PRAGMA journal_mode=$1; PRAGMA synchronous=FULL; CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT, b BLOB); CREATE INDEX i ON t(v);"
    for n in $(seq 1 100); do
        echo "BEGIN; INSERT INTO t(v,b) VALUES('value $((n * 7919 % 101))', zeroblob($((n * 131 % 9000)))); INSERT INTO t(v) VALUES('$n'); COMMIT;"
        [ $((n % 10)) -ne 0 ] || echo "DELETE FROM t WHERE k % 7 = $((n / 10 % 7)); UPDATE t SET v = v || 'x' WHERE k % 5 = 0;"
    done
    echo "VACUUM; INSERT INTO t(v) SELECT v FROM t;"
}

work_on() {
    for mode in delete wal; do
        statements $mode | sqlite3 "$1/$mode.db" >/dev/null
        [ "$(sqlite3 "$1/$mode.db" 'PRAGMA integrity_check')" = ok ] || fail "integrity_check, $mode journal, on $1"
        sqlite3 "$1/$mode.db" .dump >"$1/$mode.sql"
    done
}

onode_up 512M
ext4_up 512
work_on "$MNT"
work_on "$EXT"
for mode in delete wal; do cmp "$MNT/$mode.sql" "$EXT/$mode.sql" || fail "dumps differ, $mode journal"; done
onode_down
onode_up
for mode in delete wal; do
    [ "$(sqlite3 "$MNT/$mode.db" 'PRAGMA integrity_check')" = ok ] || fail "integrity_check after a new mount"
    sqlite3 "$MNT/$mode.db" .dump | cmp - "$EXT/$mode.sql" || fail "dump differs after a new mount"
done
onode_down
did "delete and wal journals, integrity ok, same dump as on $EXT_KIND"
