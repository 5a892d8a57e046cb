# In the machine: a raw NAND chip with its index in a memory beside it, both memory technology
# devices (/dev/mtd0 of type NAND, /dev/mtd1 of type RAM). Their power fails at once, in the middle
# of a program, an erase or a write to the memory, and neither does anything from then on; every
# file that fsync(2) confirmed before is compared. In every third round the power fails while the
# volume is mounted, in every second one syncs end in the memory.
# shellcheck shell=sh

ROUNDS=$(cat /share/rounds)
SWITCHES=/sys/module/nandsim/parameters
modprobe nandsim id_bytes=0x20,0xa1,0x00,0x15
# The rest of a run is of the memory, so it is small: 256 KiB for 128 MiB.
modprobe mtdram total_size=256 erase_size=4
PAIR=flash+scm:/dev/mtd0,/dev/mtd1

# What returns after the cut is no confirmation.
confirmed() { [ "$(cat $SWITCHES/power_off)" -eq 0 ]; }

power_back() {
    kill -9 "$SERVER" 2>/dev/null
    wait "$SERVER" 2>/dev/null
    umount -l /mnt 2>/dev/null
    echo 0 >$SWITCHES/cut_after
    echo 0 >$SWITCHES/power_off
}

# refused CODE WORDS COMMAND...: with this exit code and these words.
refused() {
    code=$1 words=$2
    shift 2
    "$@" >/tmp/said 2>&1
    [ $? -eq "$code" ] && grep -q "$words" /tmp/said && ok "refused: $*" || { not_ok "refused: $*"; cat /tmp/said; }
}

# memory_with FILE: the memory holds that from its start on.
memory_with() { dd if="$1" of=/dev/mtd1 bs=4096 count=64 2>/dev/null; }

refused 10 "type RAM, not NAND flash" onode mkfs flash+scm:/dev/mtd1,/dev/mtd0
refused 10 "type NAND flash, not RAM" onode mkfs flash+scm:/tmp/image,/dev/mtd0,size=16M
refused 2 "are the same" onode mkfs flash+scm:/dev/mtd0,/dev/mtd0
refused 19 "the device has 256K" onode mkfs $PAIR,memory=64K
tell onode mkfs $PAIR
refused 21 "holds" onode mkfs $PAIR
refused 20 "no device /dev/mtd7" onode info flash+scm:/dev/mtd0,/dev/mtd7
[ -e /dev/mtd7 ] && not_ok "a file took the place of a device"
onode mkfs flash+scm:/tmp/image,/tmp/index,size=16M >/dev/null
refused 10 "type NAND flash, not RAM" onode info flash+scm:/tmp/image,/dev/mtd0
rm /tmp/image /tmp/index
refused 2 "flash+scm" onode ls /dev/mtd0
tell onode info "flash+scm:mtd:NAND simulator partition 0,mtd:mtdram test device"

# An orderly end, and the next start.
dd if=/dev/urandom of=/tmp/large bs=1M count=8 2>/dev/null
if up $PAIR && cp /tmp/large /mnt/large && mkdir /mnt/d && for i in $(seq 200); do echo "$i" >"/mnt/d/file $i"; done; then
    refused 13 "another process" onode ls $PAIR
    down && ok "written and unmounted" || not_ok "unmount"
else
    not_ok "a mount of the pair"
fi
up $PAIR && cmp /tmp/large /mnt/large && [ "$(ls /mnt/d | wc -l)" -eq 200 ] && [ "$(cat "/mnt/d/file 77")" = 77 ] &&
    down && ok "mounted again and compared" || not_ok "mounted again and compared"
tell onode check $PAIR
tell onode stat $PAIR
onode info $PAIR | sed 's/^/# /'

round=0 number=0 compared=0 cuts=0 mounts=0
while [ "$round" -lt "$ROUNDS" ]; do
    round=$((round + 1))
    pair=$PAIR
    [ $((round % 2)) -eq 0 ] && pair=$PAIR,buffer=on
    if [ $((round % 3)) -eq 0 ]; then
        echo $((RANDOM % 40 + 1)) >$SWITCHES/cut_after
        up $pair >/tmp/said
        confirmed || mounts=$((mounts + 1))
        power_back
    fi
    up $pair || { not_ok "mount of round $round"; break; }
    verify_synced || { not_ok "synced files of round $round"; break; }
    compared=$((compared + COUNT))
    echo $((RANDOM % 900 + 1)) >$SWITCHES/cut_after
    while :; do
        number=$((number + 1))
        write_file "f$((number % 30))" $((RANDOM * 2 % 50000 + 1)) || break
        rewrite_pages "p$((number % 8))" || break
        if [ $((number % 4)) -eq 0 ]; then rm -f "/mnt/g$((number % 12))"; cp /tmp/content "/mnt/g$((number % 12))"; fi 2>/dev/null
    done
    confirmed && not_ok "a write failed with the power on"
    cuts=$((cuts + 1))
    power_back
    if [ $((round % 5)) -eq 0 ]; then
        onode check $pair >/tmp/said 2>&1 || { not_ok "check of round $round"; cat /tmp/said; break; }
    fi
done
up $PAIR && verify_synced && cmp /tmp/large /mnt/large && down && [ "$round" -eq "$ROUNDS" ] &&
    ok "$cuts cuts while writing, $mounts while mounting: $((number * 2)) synced files, compared $((compared + COUNT)) times" ||
    not_ok "power cuts"
tell onode check $PAIR

# A memory whose battery ran out, one that was wiped, and one that stood still while the flash went
# on.
dd if=/dev/mtd1 of=/tmp/earlier bs=4096 count=64 2>/dev/null
for what in urandom zero earlier; do
    case $what in earlier) from=/tmp/earlier ;; *) from=/dev/$what ;; esac
    memory_with $from
    up $PAIR && verify_synced && write_file "after-$what" 30000 && down && ok "a memory of $what is filled from the flash" ||
        not_ok "a memory of $what is filled from the flash"
    grep -q "filled from the flash" /tmp/server && ok "and that is said" || { not_ok "and that is said"; cat /tmp/server; }
done
tell onode check $PAIR
true
