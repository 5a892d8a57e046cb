#!/usr/bin/env bash
# A fast and a big disk under the same programs; then a program is unpacked and built on them, the
# server killed, the fast disk deleted: nothing is lost with the big one alone, nor with a new fast
# disk.
. "$(dirname "$0")/common.sh"
here=$(cd "$(dirname "$0")" && pwd)
need make=make cc=gcc
export ONODE_DEVICE=tier FSX_OPS=${FSX_OPS:-5000} KILLS=${KILLS:-5}
lines=() ran=0
for one in fsx pjdfstest git sqlite kill9; do
    code=0
    bash "$here/$one.sh" >"$WORK/$one.log" 2>&1 || code=$?
    lines+=("$(tail -n 1 "$WORK/$one.log")")
    case $code in
        0) ran=$((ran + 1)) ;;
        77) ;;
        *) cat "$WORK/$one.log"; fail "$one ended with $code" ;;
    esac
done
printf '  %s\n' "${lines[@]}"

# What is done about the fast disk, as the next command is told.
SETTINGS=
volume_of() { echo "tier:$1.fast,$1$SETTINGS"; }

# A program of 40 files, with some data beside it.
project=$WORK/project
mkdir -p "$project/src" "$project/data"
for n in $(seq 40); do
    printf 'int part%d(int x) {\n    int sum = 0;\n    for (int i = 0; i < %d; i++) sum += x ^ (i * %d);\n    return sum;\n}\n' \
        "$n" "$n" $((n * 37)) >"$project/src/part$n.c"
    seq -s "$n " $((n * 2000)) >"$project/data/table$n"
done
{
    echo '#include <stdio.h>'
    for n in $(seq 40); do echo "int part$n(int);"; done
    echo 'int main(void) {'
    for n in $(seq 40); do echo "    printf(\"%d\\n\", part$n($n));"; done
    echo '    return 0;'
    echo '}'
} >"$project/src/main.c"
{
    echo 'OBJECTS := $(patsubst %.c,%.o,$(wildcard src/*.c))'
    echo 'program: $(OBJECTS)'
    printf '\tcc -o $@ $(sort $(OBJECTS))\n'
    echo '%.o: %.c'
    printf '\tcc -O1 -c -o $@ $<\n'
} >"$project/Makefile"
tar -C "$WORK" -cf "$WORK/project.tar" project
rm -rf "$project"

build() { make -s -j2 -C "$1/project" && "$1/project/program" >"$1/project/output"; }
work_on() {
    tar -C "$1" -xf "$WORK/project.tar"
    build "$1"
}
change() {
    sed -i 's/int sum = 0/int sum = 1/' "$1"/project/src/part?.c
    rm "$1/project/data/table7"
    mv "$1/project/data/table8" "$1/project/data/seventh"
    build "$1"
}

mkdir "$WORK/same"
work_on "$WORK/same"
onode_up 512M
mkdir "$MNT/project"
"$ONODE" place "$MNT/project" --section large >/dev/null || fail "place"
work_on "$MNT"
same_trees "$MNT" "$WORK/same"
find "$MNT/project" -exec sync {} +
kill -KILL "$SERVER"
wait "$SERVER" 2>/dev/null || true
umount -l "$MNT" 2>/dev/null || true
rm "$IMAGE.fast"
"$ONODE" ls "$(volume_of "$IMAGE")" / >"$WORK/refused.log" 2>&1 && fail "the volume opened without its fast disk, and nobody had said so"
grep -q 'fast=none' "$WORK/refused.log" && grep -q 'fast=new' "$WORK/refused.log" || { cat "$WORK/refused.log"; fail "no advice"; }

onode_up 512M --without-fast
same_trees "$MNT" "$WORK/same"
change "$MNT"
change "$WORK/same"
same_trees "$MNT" "$WORK/same"
SETTINGS=,fast=none
onode_down
[ ! -e "$IMAGE.fast" ] || fail "there is a fast disk again"

SETTINGS=,fast=new
onode_up
same_trees "$MNT" "$WORK/same"
"$ONODE" promote --wait "$MNT/project" >"$WORK/promoted.log" || { cat "$WORK/promoted.log"; fail "promote"; }
fast=$("$ONODE" stat --why "$MNT/project/program" | awk '$1 == "fast" { print $2 }')
[ "$fast" -gt 0 ] || fail "the program is not on the new fast disk"
same_trees "$MNT" "$WORK/same"
SETTINGS=
onode_down
onode_up
same_trees "$MNT" "$WORK/same"
[ "$(make -C "$MNT/project" -s -q && echo done)" = done ] || fail "it would be built again after a new mount"
onode_down

# Two loop devices: requests in flight, and what is deleted is given back by the files behind them.
mkdir "$WORK/disks"
truncate -s 256M "$WORK/disks/big"
truncate -s 64M "$WORK/disks/fast"
on_loops="loop devices cannot be had here"
if BIG=$(losetup --find --show --direct-io=on "$WORK/disks/big" 2>/dev/null); then
    before_clean_up() { umount -l "$MNT" 2>/dev/null; losetup --detach "$BIG" ${FAST:+"$FAST"}; }
    FAST=$(losetup --find --show --direct-io=on "$WORK/disks/fast") || fail "one loop device and no second"
    IMAGE=$BIG
    volume_of() { echo "tier:$FAST,$BIG"; }
    "$ONODE" mkfs "$(volume_of)" >/dev/null || fail "mkfs on loop devices"
    way=$("$ONODE" info "$(volume_of)" | grep -o 'io_uring\|one request at a time' | sort -u) || fail "nobody says how requests reach the disks"
    onode_up
    cp -a "$WORK/same/." "$MNT/"
    dd if=/dev/urandom of="$MNT/large" bs=1M count=96 conv=fsync status=none
    full=$(du -k "$WORK/disks/big" | cut -f 1)
    rm "$MNT/large"
    onode_down
    onode_up
    same_trees "$MNT" "$WORK/same"
    onode_down
    [ "$(du -k "$WORK/disks/big" | cut -f 1)" -lt $((full - 64 * 1024)) ] || fail "the file behind the big disk is as large as before"
    on_loops="two loop devices ($way) gave back what was deleted"
fi
files=$(find "$WORK/same" -type f | wc -l)
did "$ran programs on two disks; $files files unpacked and built, equal without the fast disk and with a new one; $on_loops"
