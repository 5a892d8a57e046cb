#!/usr/bin/env bash
# PostgreSQL: initdb, pgbench and a check of its tables, with its data on the mount.
. "$(dirname "$0")/common.sh"
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1 || true)
if [ -z "$bin" ]; then
    need pg_ctl=postgresql
    bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
fi
[ -x "$bin/pgbench" ] || skip "this PostgreSQL has no pgbench"
as_postgres() { (cd /tmp && setpriv --reuid=postgres --regid=postgres --init-groups env HOME=/tmp "$@"); }
server_up() {
    as_postgres "$bin/pg_ctl" -D "$MNT/data" -w -t 60 -l "$MNT/data/log" -o "-k $MNT/socket -c listen_addresses='' -c data_checksums=on" start >/dev/null 2>&1 ||
        as_postgres "$bin/pg_ctl" -D "$MNT/data" -w -t 60 -l "$MNT/data/log" -o "-k $MNT/socket -c listen_addresses=''" start >/dev/null ||
        { tail "$MNT/data/log"; fail "the server does not start"; }
}
# pg_ctl waits for the file with the number of the server to go; the server ends, and closes its
# files, a moment later.
server_down() {
    local server
    server=$(head -n 1 "$MNT/data/postmaster.pid")
    as_postgres "$bin/pg_ctl" -D "$MNT/data" -w -m fast stop >/dev/null
    for _ in $(seq 200); do kill -0 "$server" 2>/dev/null || return 0; sleep 0.05; done
    fail "the server $server is still there 10 s after its stop"
}
before_clean_up() { [ ! -e "$MNT/data/postmaster.pid" ] || as_postgres "$bin/pg_ctl" -D "$MNT/data" -m immediate stop >/dev/null 2>&1; }
ask() { as_postgres "$bin/psql" -h "$MNT/socket" -d postgres -X -A -t -c "$1"; }

onode_up 2G
mkdir "$MNT/data" "$MNT/socket"
chown postgres:postgres "$MNT/data" "$MNT/socket"
chmod 700 "$MNT/data"
as_postgres "$bin/initdb" -D "$MNT/data" -A trust --data-checksums >"$WORK/initdb.log" 2>&1 || { tail "$WORK/initdb.log"; fail initdb; }
server_up
as_postgres "$bin/pgbench" -h "$MNT/socket" -i -q -s "${PGBENCH_SCALE:-1}" postgres >/dev/null 2>&1 || fail "pgbench -i"
as_postgres "$bin/pgbench" -h "$MNT/socket" -c 4 -j 2 -t "${PGBENCH_TRANSACTIONS:-250}" postgres >"$WORK/pgbench.log" 2>&1 || { tail "$WORK/pgbench.log"; fail pgbench; }
sums() { ask "SELECT sum(abalance) FROM pgbench_accounts"; ask "SELECT sum(bbalance) FROM pgbench_branches"; ask "SELECT sum(delta), count(*) FROM pgbench_history"; }
before=$(sums)
server_down
onode_down
onode_up
as_postgres "$bin/pg_checksums" -D "$MNT/data" --check >"$WORK/sums.log" 2>&1 || { tail "$WORK/sums.log"; fail "page checksums"; }
server_up
[ "$(sums)" = "$before" ] || fail "tables differ after a new mount"
[ "$(echo "$before" | head -n 1)" = "$(echo "$before" | sed -n 2p)" ] || fail "balances do not add up"
ask "VACUUM FULL" >/dev/null
server_down
onode_down
did "initdb, pgbench ($(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$WORK/pgbench.log" | head -n 1) tps), page checksums and balances right after a new mount"
