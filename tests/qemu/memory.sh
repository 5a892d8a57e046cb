# In the machine: Onode on persistent memory (an NVDIMM whose content outlives the machine), as a
# file of a file system with direct access and as a device; FAT and ext2 on spaces through the
# kernel's own drivers; a module loaded from where its file lies. The machine is killed in the
# middle of writing and started again, each time.
# shellcheck shell=sh

ROUNDS=$(cat /share/rounds)
boot=$(cat /share/boot)
for module in nfit nd_pmem dax_pmem device_dax crc32c_generic ext4 loop vfat nls_cp437 nls_ascii; do modprobe $module; done
for _ in $(seq 100); do [ -b /dev/pmem0 ] && break; sleep 0.1; done
mkdir -p /pmem /dev/shm
mount -t tmpfs none /dev/shm

SYNCED=/share/synced
FILE=/pmem/volume

# The character device, if the second NVDIMM could be made one.
direct_device() {
    ndctl create-namespace -f -e namespace1.0 -m devdax -M mem >/tmp/said 2>&1 || return 1
    for _ in $(seq 50); do [ -c /dev/dax1.0 ] && return 0; sleep 0.1; done
    return 1
}

if [ "$boot" -eq 0 ]; then
    : >/share/synced
    tell ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem
    tell mkfs.ext4 -q -F -b 4096 /dev/pmem0
fi
mount -t ext4 -o dax=always /dev/pmem0 /pmem || mount -t ext4 -o dax /dev/pmem0 /pmem || not_ok "a mount with direct access"
grep -q ' /pmem ext4 .*dax' /proc/mounts && ok "the file system gives direct access (boot $boot)" || not_ok "no direct access"

# Files with synced content, without end.
write_files() {
    number=$((boot * 1000))
    while :; do
        number=$((number + 1))
        write_file "f$((number % 40))" $((RANDOM * 8 % 200000 + 1)) || { not_ok "writing file $number"; return; }
    done
}

# fat_and_ext2: each made, filled, unmounted, mounted again and compared on a space of a memory in
# memory.
fat_and_ext2() {
    onode mkfs scm:/dev/shm/scm,size=96M,objects=32M || return 1
    for name in fat ext2; do onode spaces create /dev/shm/scm $name --kind fs --size 24M || return 1; done
    up /dev/shm/scm || return 1
    mkdosfs /mnt/.onode/spaces/fat && mke2fs -F /mnt/.onode/spaces/ext2 || return 1
    mkdir -p /tmp/there
    for name in fat ext2; do
        kind=$([ $name = fat ] && echo vfat || echo ext2)
        mount -o loop -t $kind /mnt/.onode/spaces/$name /tmp/there || return 1
        head -c 3000000 /bin/onode >/tmp/there/part
        umount /tmp/there && mount -o loop -t $kind /mnt/.onode/spaces/$name /tmp/there || return 1
        head -c 3000000 /bin/onode | cmp - /tmp/there/part || return 1
        umount /tmp/there || return 1
    done
    down && onode check scm:/dev/shm/scm
}

# module PROGRAM FILE: loaded and gone again.
module() {
    "$1" "$2" || return 1
    [ -d "/sys/module/$(cat /share/module)" ] || return 1
    rmmod "$(cat /share/module)"
}

modules() {
    rm -f /dev/shm/scm
    export HEAP=scm:/dev/shm/heap,size=16M
    onode mkfs $HEAP && onode put /dev/shm/heap /share/module.ko /module.ko || return 1
    module /bin/insmod.original /share/module.ko || return 1
    module /bin/insmod.adapted /module.ko
}

if [ "$boot" -eq 0 ]; then
    tell onode mkfs scm:$FILE,size=96M
    onode spaces list $FILE >/tmp/said
    grep -q 'clwb\|clflush' /tmp/said && ok "lines are flushed: $(sed -n 's/^needs *//p' /tmp/said)" || { not_ok "what the medium needs"; cat /tmp/said; }
    tell fat_and_ext2
    tell modules
    if direct_device; then
        tell onode mkfs scm:/dev/dax1.0
        onode mkfs scm:/dev/dax1.0 >/tmp/said 2>&1
        [ $? -eq 21 ] && ok "mkfs keeps a volume without --force" || { not_ok "mkfs keeps a volume without --force"; cat /tmp/said; }
        if up scm:/dev/dax1.0; then
            head -c 5000000 /bin/onode >/mnt/part && sync -f /mnt && cmp -n 5000000 /bin/onode /mnt/part && ok "files on a device with direct access" || not_ok "files on a device with direct access"
            down && onode check scm:/dev/dax1.0 >/tmp/said 2>&1 && ok "the device is sound" || { not_ok "the device is sound"; cat /tmp/said; }
        else
            not_ok "a mount of a device with direct access"
        fi
    else
        not_ok "a device with direct access"; cat /tmp/said
    fi
fi
if ! up $FILE; then
    not_ok "mount after $boot kills"
elif ! verify_synced; then
    not_ok "synced files after $boot kills"
elif [ "$boot" -lt "$ROUNDS" ]; then
    [ "$boot" -eq 0 ] || ok "$COUNT synced files are there after kill $boot"
    echo $((boot + 1)) >/share/boot
    (sleep "$((RANDOM % 20 + 10)).$((RANDOM % 10))"; echo b >/proc/sysrq-trigger) &
    write_files
else
    ok "$COUNT synced files are there after kill $boot"
    down || not_ok "the server ends"
    onode check $FILE >/tmp/said 2>&1 && ok "the volume is sound" || { not_ok "the volume is sound"; cat /tmp/said; }
fi
