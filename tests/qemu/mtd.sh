# In the machine: Onode on a raw NAND chip (the kernel's simulator, 128 MiB, pages of 2 KiB) through
# /dev/mtd0. Servers are killed at any moment; the chip stays as it is then, as after a cut.
# shellcheck shell=sh

ROUNDS=$(cat /share/rounds)

chip() { modprobe nandsim id_bytes=0x20,0xa1,0x00,0x15 "$@"; }

# Files with synced content until the server is gone.
write_files() {
    while :; do
        number=$((number + 1))
        write_file "f$((number % 40))" $((RANDOM % 60000 + 1)) || return
        rewrite_pages "p$((number % 8))" || return
        total=$((total + 2))
        if [ $((number % 5)) -eq 0 ]; then rm -f "/mnt/g$((number % 15))"; cp /tmp/content "/mnt/g$((number % 15))" 2>/dev/null; fi
    done
}

number=0 total=0 compared=0
chip
onode info /dev/mtd0 >/tmp/said 2>&1
[ $? -eq 10 ] && ok "a blank chip is not a volume" || { not_ok "a blank chip is not a volume"; cat /tmp/said; }
tell onode mkfs /dev/mtd0
onode mkfs /dev/mtd0 >/tmp/said 2>&1
[ $? -eq 21 ] && ok "mkfs keeps a volume without --force" || { not_ok "mkfs keeps a volume without --force"; cat /tmp/said; }
onode mkfs --page 4K --force /dev/mtd0 >/tmp/said 2>&1
[ $? -eq 19 ] && ok "a chip has its own pages" || { not_ok "a chip has its own pages"; cat /tmp/said; }
onode info /dev/mtd0 | sed 's/^/# /'

round=0
while [ "$round" -lt "$ROUNDS" ]; do
    round=$((round + 1))
    up /dev/mtd0 || { not_ok "mount of round $round"; break; }
    verify_synced || { not_ok "synced files of round $round"; break; }
    compared=$((compared + COUNT))
    if [ "$round" -eq 1 ]; then
        onode ls /dev/mtd0 >/tmp/said 2>&1
        [ $? -eq 13 ] && ok "a chip in use is refused" || { not_ok "a chip in use is refused"; cat /tmp/said; }
    fi
    (sleep "$((RANDOM % 4)).$((RANDOM % 10))"; kill -9 "$SERVER") &
    write_files
    wait
    umount -l /mnt 2>/dev/null
    if [ $((round % 5)) -eq 0 ]; then
        onode check /dev/mtd0 >/tmp/said 2>&1 || { not_ok "check of round $round"; cat /tmp/said; break; }
    fi
done
[ "$round" -eq "$ROUNDS" ] && up /dev/mtd0 && verify_synced && down &&
    ok "$ROUNDS killed servers: $total synced files, compared $compared times" || not_ok "killed servers"
tell onode check /dev/mtd0
tell onode stat /dev/mtd0

# Written over and over, so that every segment was cleaned.
up /dev/mtd0
round=0
while [ "$round" -lt 5 ]; do
    round=$((round + 1))
    dd if=/dev/urandom of=/tmp/large bs=1M count=40 2>/dev/null
    cp /tmp/large /mnt/large && sync /mnt/large && cmp /tmp/large /mnt/large || { not_ok "large file"; break; }
done
down && ok "200 MiB through a chip of 128 MiB"
tell onode check /dev/mtd0
rmmod nandsim

# Blocks that are bad from the start: one for superblocks, others in segments.
chip badblocks=1,7,9,500
tell onode mkfs /dev/mtd0
up /dev/mtd0 && cp /tmp/large /mnt/large && sync && cmp /tmp/large /mnt/large && down &&
    ok "a chip with bad blocks" || not_ok "a chip with bad blocks"
tell onode check /dev/mtd0
rmmod nandsim

# Blocks that refuse to be erased after a few times: they are retired, nothing is lost.
chip weakblocks=0:3,20:1,21:2,300:1,301:1,600:1,601:1,700:1,800:1,900:1,901:1,1000:1
tell onode mkfs /dev/mtd0
up /dev/mtd0
cp /tmp/large /mnt/kept
round=0
while [ "$round" -lt 6 ]; do
    round=$((round + 1))
    cp /tmp/large /mnt/large && sync || { not_ok "rewrite on weak blocks"; break; }
done
cmp /tmp/large /mnt/kept && cmp /tmp/large /mnt/large && down && ok "a chip whose blocks wear out" ||
    not_ok "a chip whose blocks wear out"
tell onode check /dev/mtd0
tell onode stat /dev/mtd0
bad=$(cat /sys/class/mtd/mtd0/bad_blocks)
[ "$bad" -gt 0 ] && ok "$bad worn blocks are marked bad" || not_ok "no worn block is marked bad"
rmmod nandsim

# Two partitions of one chip, named instead of numbered; the other one is left alone.
chip parts=400
tell onode mkfs "flash:mtd:NAND simulator partition 1"
up "flash:mtd:NAND simulator partition 1" && cp /tmp/large /mnt/large && sync && cmp /tmp/large /mnt/large && down &&
    ok "a partition by its name" || not_ok "a partition by its name"
tell onode check /dev/mtd1
onode info /dev/mtd0 >/tmp/said 2>&1
[ $? -eq 10 ] && ok "the other partition is still blank" || { not_ok "the other partition is still blank"; cat /tmp/said; }
onode info "flash:mtd:rootfs" >/tmp/said 2>&1
[ $? -eq 20 ] && grep -q "NAND simulator partition 0" /tmp/said && ok "an unknown name is refused and the names are told" ||
    { not_ok "an unknown name is refused and the names are told"; cat /tmp/said; }
rmmod nandsim

# Pages that refuse to be programmed: the device goes on elsewhere, nothing is lost.
chip weakpages=3000:1,9001:1,20017:1,33333:1,45002:1,58000:1
tell onode mkfs /dev/mtd0
up /dev/mtd0
cp /tmp/large /mnt/kept
round=0
while [ "$round" -lt 6 ]; do
    round=$((round + 1))
    cp /tmp/large /mnt/large && sync || { not_ok "rewrite on weak pages"; break; }
done
cmp /tmp/large /mnt/kept && cmp /tmp/large /mnt/large && down && ok "a chip whose pages wear out" ||
    not_ok "a chip whose pages wear out"
tell onode check /dev/mtd0
rmmod nandsim

# Bits that flip: one read of a page in a thousand has a wrong one, as many as this chip corrects.
# What lies on such blocks moves, and its blocks are erased.
chip bitflips=1
tell onode mkfs /dev/mtd0
up /dev/mtd0 && cp /tmp/large /mnt/large && sync
round=0
while [ "$round" -lt 4 ]; do
    round=$((round + 1))
    echo 3 >/proc/sys/vm/drop_caches
    cmp /tmp/large /mnt/large || { not_ok "a chip whose bits flip"; break; }
    sleep 2
done
onode stat --json /mnt >/tmp/said 2>&1
grep -E "refreshed|corrected" /tmp/said | sed 's/^/# /'
grep -q '"segments_refreshed": [1-9]' /tmp/said && ok "segments whose bits flip are refreshed" ||
    not_ok "segments whose bits flip are refreshed"
down
tell onode check /dev/mtd0
true
