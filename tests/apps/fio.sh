#!/usr/bin/env bash
# fio: random and sequential writes with checksums that are verified, synced and not, by four jobs.
. "$(dirname "$0")/common.sh"
need fio=fio
size=${FIO_SIZE:-16M}
onode_up 1G
jobs=$WORK/jobs.fio
cat >"$jobs" <<J
[global]
directory=$MNT
size=$size
verify=crc32c
verify_fatal=1
randseed=42
[random]
stonewall
rw=randwrite
bs=4k
ioengine=psync
fsync=64
[mixed]
stonewall
rw=randrw
bsrange=512-64k
ioengine=psync
[sequential]
stonewall
rw=write
bs=1m
ioengine=psync
end_fsync=1
[mapped]
stonewall
rw=randwrite
bs=4k
ioengine=mmap
[parallel]
stonewall
rw=randwrite
bs=16k
numjobs=4
ioengine=psync
J
(cd "$WORK" && fio --minimal "$jobs") >"$WORK/fio.log" 2>&1 || { tail -n 20 "$WORK/fio.log"; fail "fio verify"; }
(cd "$MNT" && sha256sum ./*) >"$WORK/sums"
onode_down
onode_up
(cd "$MNT" && sha256sum --quiet -c "$WORK/sums") || fail "sums differ after a new mount"
onode_down
did "5 kinds of jobs of $size verified, same content after a new mount"
