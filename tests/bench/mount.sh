#!/usr/bin/env bash
# Speed of the mount: the same operations on tmpfs, ext4 (loop device), bindfs (over tmpfs) and Onode in
# one run, the median of ROUNDS (default 5), as microseconds for one operation and as ratios.
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
    umount -l "$WORK/tmpfs" 2>/dev/null
}
mkdir -p "$WORK/tmpfs" "$WORK/bindfs"
mount -t tmpfs -o size=1G none "$WORK/tmpfs"
mkdir "$WORK/tmpfs/below"
bindfs "$WORK/tmpfs/below" "$WORK/bindfs"
ext4_up 1024
onode_up 1G
(cd "$REPOSITORY" && tar -cf "$WORK/tree.tar" crates docs tests)

for round in $(seq "$rounds"); do
    for pair in tmpfs="$WORK/tmpfs" ext4="$EXT" bindfs="$WORK/bindfs" onode="$MNT"; do
        place=${pair#*=}
        "$bench" "$place" | sed "s/^/${pair%%=*}\t/; s/ \([0-9.]*\)\$/\t\1/" >>"$WORK/figures"
        mkdir "$place/untar"
        begin=$(date +%s%N)
        tar -C "$place/untar" -xf "$WORK/tree.tar"
        sync -f "$place"
        end=$(date +%s%N)
        files=$(find "$place/untar" | wc -l)
        printf '%s\tuntar and sync, a file\t%s\n' "${pair%%=*}" "$(((end - begin) / 1000 / files))" >>"$WORK/figures"
        rm -rf "$place/untar"
    done
done

awk -F'\t' -v json="${1:-}" -v rounds="$rounds" '
    function median(key,    n, i, j, t, v) {
        n = count[key]
        for (i = 1; i <= n; i++) v[i] = value[key, i]
        for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j-1] + 0; j--) { t = v[j]; v[j] = v[j-1]; v[j-1] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    !($2 in seen) { seen[$2] = 1; names[++operations] = $2 }
    { key = $1 SUBSEP $2; value[key, ++count[key]] = $3 }
    END {
        if (json == "--json") printf "{\"rounds\": %d, \"rows\": [", rounds
        else {
            printf "| operation, us | tmpfs | ext4 | bindfs | onode | onode/tmpfs | onode/ext4 | onode/bindfs |\n"
            printf "|---|---|---|---|---|---|---|---|\n"
        }
        for (i = 1; i <= operations; i++) {
            name = names[i]
            t = median("tmpfs" SUBSEP name); e = median("ext4" SUBSEP name)
            b = median("bindfs" SUBSEP name); o = median("onode" SUBSEP name)
            if (json == "--json")
                printf "%s{\"name\": \"%s\", \"unit\": \"us\", \"tmpfs\": %.2f, \"ext4\": %.2f, \"bindfs\": %.2f, \"onode\": %.2f}", (i > 1 ? ", " : ""), name, t, e, b, o
            else
                printf "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name, t, e, b, o, o / t, o / e, o / b
        }
        if (json == "--json") print "]}"
    }' "$WORK/figures"
onode_down
