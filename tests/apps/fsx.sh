#!/usr/bin/env bash
# fsx: random reads, writes, truncations and mappings of one file against a copy in memory.
# FSX_OPS (default 20000) operations for each of FSX_SEEDS (default "1 2 3").
. "$(dirname "$0")/common.sh"
need_tool fsx 0.3.2
onode_up 512M
cat >"$WORK/fsx.toml" <<'T'
flen = 1048576
[opsize]
max = 65536
[weights]
truncate = 1
close_open = 1
invalidate = 1
punch_hole = 1
posix_fallocate = 1
fsync = 0.2
fdatasync = 0.2
copy_file_range = 1
T
operations=${FSX_OPS:-20000}
seeds=${FSX_SEEDS:-1 2 3}
# This fsx never unmaps what it read through a mapping; long runs meet the kernel's limit on
# mappings.
if [ "$operations" -gt 200000 ] && [ "$(sysctl -n vm.max_map_count)" -lt "$operations" ]; then
    sysctl -q -w vm.max_map_count=$((operations * 2)) || fail "vm.max_map_count is too small for $operations operations"
fi
for seed in $seeds; do
    "$ONODE_TOOLS/bin/fsx" -q -f "$WORK/fsx.toml" -N "$operations" -S "$seed" -P "$WORK" "$MNT/file$seed" >"$WORK/fsx.log" 2>&1 ||
        { tail -n 30 "$WORK/fsx.log"; fail "fsx -N $operations -S $seed"; }
done
onode_down
did "$operations operations with each of the seeds $seeds"
