# In the machine: a raw NAND chip whose power fails in the middle of a program or an erase, and that
# does nothing from then on. The server is killed, the power comes back, and every file that
# fsync(2) confirmed before is compared. In every third round the power fails while the volume is
# mounted.
# shellcheck shell=sh

ROUNDS=$(cat /share/rounds)
SWITCHES=/sys/module/nandsim/parameters
modprobe nandsim id_bytes=0x20,0xa1,0x00,0x15

# What returns after the cut is no confirmation.
confirmed() { [ "$(cat $SWITCHES/power_off)" -eq 0 ]; }

power_back() {
    kill -9 "$SERVER" 2>/dev/null
    wait "$SERVER" 2>/dev/null
    umount -l /mnt 2>/dev/null
    echo 0 >$SWITCHES/cut_after
    echo 0 >$SWITCHES/power_off
}

tell onode mkfs /dev/mtd0
round=0 number=0 compared=0 cuts=0 mounts=0
while [ "$round" -lt "$ROUNDS" ]; do
    round=$((round + 1))
    if [ $((round % 3)) -eq 0 ]; then
        echo $((RANDOM % 20 + 1)) >$SWITCHES/cut_after
        up /dev/mtd0 >/tmp/said
        confirmed || mounts=$((mounts + 1))
        power_back
    fi
    up /dev/mtd0 || { not_ok "mount of round $round"; break; }
    verify_synced || { not_ok "synced files of round $round"; break; }
    compared=$((compared + COUNT))
    echo $((RANDOM % 600 + 1)) >$SWITCHES/cut_after
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
        onode check /dev/mtd0 >/tmp/said 2>&1 || { not_ok "check of round $round"; cat /tmp/said; break; }
    fi
done
up /dev/mtd0 && verify_synced && down && [ "$round" -eq "$ROUNDS" ] &&
    ok "$cuts cuts while writing, $mounts while mounting: $((number * 2)) synced files, compared $((compared + COUNT)) times" ||
    not_ok "power cuts"
tell onode check /dev/mtd0
true
