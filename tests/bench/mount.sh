#!/usr/bin/env bash
# Speed of the mount: the same operations on tmpfs, ext4 (loop device), bindfs (over tmpfs) and
# Onode in one run, the median of ROUNDS (default 5), as microseconds for one operation and as
# ratios: wall time, and processor time of the program and the FUSE server. All images lie in memory
# (tmpfs), so that this compares file systems and not disks; BENCH_DISK=1 puts them into TMPDIR.
#
#   tests/bench/mount.sh [--json]
. "$(dirname "$0")/../apps/common.sh"
need bindfs=bindfs mkfs.ext4=e2fsprogs tar=tar
rounds=${ROUNDS:-5}
bench=$(ls -t "$REPOSITORY"/target/release/examples/mount_bench 2>/dev/null | head -n 1 || true)
if [ -z "$bench" ] || [ "$REPOSITORY/crates/lab/examples/mount_bench.rs" -nt "$bench" ]; then
    (cd "$REPOSITORY" && cargo build --release --quiet -p onode-lab --example mount_bench)
    bench=$REPOSITORY/target/release/examples/mount_bench
fi

before_clean_up() {
    umount -l "$WORK/bindfs" 2>/dev/null
    umount -l "$EXT" 2>/dev/null
    umount -l "$WORK/tmpfs" 2>/dev/null
    umount -l "$WORK/images" 2>/dev/null
}
mkdir -p "$WORK/tmpfs" "$WORK/bindfs"
mount -t tmpfs -o size=1G none "$WORK/tmpfs"
mkdir "$WORK/tmpfs/below"
bindfs -f "$WORK/tmpfs/below" "$WORK/bindfs" &
BINDFS=$!
mkdir "$WORK/images"
[ -n "${BENCH_DISK:-}" ] || mount -t tmpfs -o size=4G none "$WORK/images"
ext4_up 1024 "$WORK/images/ext4.img"
IMAGE=$WORK/images/disk.img
onode_up 1G
until mountpoint -q "$WORK/bindfs"; do sleep 0.1; done
(cd "$REPOSITORY" && tar -cf "$WORK/tree.tar" crates docs tests)

for round in $(seq "$rounds"); do
    for one in "tmpfs $WORK/tmpfs" "ext4 $EXT" "bindfs $WORK/bindfs $BINDFS" "onode $MNT $SERVER"; do
        read -r kind place server <<<"$one"
        "$bench" "$place" $server | sed "s/^/$kind\t/" >>"$WORK/figures"
        mkdir "$place/untar"
        begin=$(date +%s%N)
        tar -C "$place/untar" -xf "$WORK/tree.tar"
        sync -f "$place"
        end=$(date +%s%N)
        files=$(find "$place/untar" | wc -l)
        printf '%s\tuntar and sync, a file\t%s\n' "$kind" "$(((end - begin) / 1000 / files))" >>"$WORK/figures"
        rm -rf "$place/untar"
    done
done

# table COLUMN prints the medians of one column as a table.
table() {
    awk -F'\t' -v column="$1" '
    '"$MEDIAN"'
    END {
        print "| operation, us | tmpfs | ext4 | bindfs | onode | onode/tmpfs | onode/ext4 | onode/bindfs |"
        print "|---|---|---|---|---|---|---|---|"
        for (i = 1; i <= operations; i++) {
            t = median("tmpfs", names[i]); e = median("ext4", names[i]); b = median("bindfs", names[i]); o = median("onode", names[i])
            printf "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", names[i], t, e, b, o, o / t, o / e, o / b
        }
    }' "$WORK/figures"
}
rows() {
    awk -F'\t' -v column="$1" -v kind="$2" '
    '"$MEDIAN"'
    END {
        for (i = 1; i <= operations; i++)
            printf "%s{\"name\": \"%s\", \"time\": \"%s\", \"unit\": \"us\", \"tmpfs\": %.2f, \"ext4\": %.2f, \"bindfs\": %.2f, \"onode\": %.2f}", (i > 1 ? ", " : ""), names[i], kind,
                median("tmpfs", names[i]), median("ext4", names[i]), median("bindfs", names[i]), median("onode", names[i])
    }' "$WORK/figures"
}
MEDIAN='
    function median(kind, name,    n, i, j, t, v) {
        n = count[kind, name]
        for (i = 1; i <= n; i++) v[i] = value[kind, name, i]
        for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j-1] + 0; j--) { t = v[j]; v[j] = v[j-1]; v[j-1] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    NF >= column {
        if (!($2 in seen)) { seen[$2] = 1; names[++operations] = $2 }
        n = ++count[$1, $2]
        value[$1, $2, n] = $column
    }'
if [ "${1:-}" = --json ]; then
    echo "{\"rounds\": $rounds, \"rows\": [$(rows 3 wall), $(rows 4 processor)]}"
else
    echo "Wall time, median of $rounds:"
    table 3
    echo "Processor time of program and server:"
    table 4
fi
onode_down
