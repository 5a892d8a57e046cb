# In the machine: Onode on a zoned NVMe drive. The machine resets itself in the middle of writing,
# as if the power had failed and come back; the drive keeps its zones. What fsync(2) confirmed is
# kept outside.
# shellcheck shell=sh

ROUNDS=$(cat /share/rounds)
boot=$(cat /share/boot)
DRIVE=/dev/nvme0n1
modprobe nvme
for _ in $(seq 100); do [ -b $DRIVE ] && break; sleep 0.1; done

zones() { echo "# zones: $(cat /sys/block/nvme0n1/queue/nr_zones), at most $(cat /sys/block/nvme0n1/queue/max_active_zones) active"; }

# Files with synced content, without end.
write_files() {
    number=$((boot * 1000))
    while :; do
        number=$((number + 1))
        write_file "f$((number % 60))" $((RANDOM * 8 % 200000 + 1)) || { not_ok "writing file $number"; return; }
        if [ $((number % 10)) -eq 0 ]; then dd if=/dev/urandom of=/mnt/large bs=64k count=100 2>/dev/null; fi
    done
}

SYNCED=/share/synced
if [ "$boot" -eq 0 ]; then
    : >/share/synced
    zones
    tell onode mkfs $DRIVE
    onode mkfs $DRIVE >/tmp/said 2>&1
    [ $? -eq 21 ] && ok "mkfs keeps a volume without --force" || { not_ok "mkfs keeps a volume without --force"; cat /tmp/said; }
    onode info $DRIVE | sed 's/^/# /'
fi
if ! up $DRIVE; then
    not_ok "mount after $boot resets"
elif ! verify_synced; then
    not_ok "synced files after $boot resets"
elif [ "$boot" -lt "$ROUNDS" ]; then
    [ "$boot" -eq 0 ] || ok "$COUNT synced files are there after reset $boot"
    echo $((boot + 1)) >/share/boot
    (sleep "$((RANDOM % 20 + 10)).$((RANDOM % 10))"; echo b >/proc/sysrq-trigger) &
    write_files
else
    ok "$COUNT synced files are there after reset $boot"
    # Over and over, so that zones are cleaned and reset.
    round=0
    dd if=/dev/urandom of=/tmp/large bs=1M count=50 2>/dev/null
    while [ "$round" -lt 5 ]; do
        round=$((round + 1))
        cp /tmp/large /mnt/large && sync /mnt/large && cmp /tmp/large /mnt/large || { not_ok "large file"; break; }
    done
    verify_synced && down && ok "250 MiB written over and over" || not_ok "250 MiB written over and over"
    tell onode check $DRIVE
    tell onode stat $DRIVE
fi
true
