#!/usr/bin/env bash
# A volume that is known to be read-only because the host's disk is full says so to every call that
# would change it. ftruncate, utime and open with O_TRUNC returned 0, and what they did was gone at
# the unmount.
. "$(dirname "$0")/common.sh"
need mkfs.ext4=e2fsprogs
truncate -s 40M "$WORK/host.img"
mkfs.ext4 -q -m 0 "$WORK/host.img"
mkdir -p "$WORK/host"
mount -o loop "$WORK/host.img" "$WORK/host" 2>/dev/null || skip "needs loop devices"
before_clean_up() { umount -l "$WORK/host" 2>/dev/null; rm -rf "$PLACE"; }
ONODE_DEVICE=flash
IMAGE=$WORK/host/disk.img
make 256M
up
for n in $(seq 8); do head -c 100000 /dev/zero >"$MNT/f$n"; done
sync -f "$MNT"
dd if=/dev/urandom of="$MNT/big" bs=64k count=1000 status=none 2>/dev/null || true
cat >"$WORK/calls.py" <<'P'
import errno, os, sys, time
root = sys.argv[1]
def attempt(call):
    try: call()
    except OSError as error: return errno.errorcode[error.errno]
    return "ok"
# It is read-only once a write to the host has failed.
for _ in range(100):
    if attempt(lambda: os.mkdir(f"{root}/d")) == "EROFS": break
    attempt(lambda: os.rmdir(f"{root}/d")); attempt(os.sync)
    time.sleep(0.2)
else: sys.exit("it does not become read-only")
file = os.open(f"{root}/f2", os.O_RDONLY)
calls = {
    "truncate": lambda: os.truncate(f"{root}/f2", 0),
    "open(O_TRUNC)": lambda: os.close(os.open(f"{root}/f3", os.O_WRONLY | os.O_TRUNC)),
    "utime": lambda: os.utime(f"{root}/f4", (1, 1)),
    "chmod": lambda: os.chmod(f"{root}/f5", 0o600),
    "unlink": lambda: os.unlink(f"{root}/f6"),
    "setxattr": lambda: os.setxattr(f"{root}/f7", "user.a", b"1"),
    "rename": lambda: os.rename(f"{root}/f7", f"{root}/g7"),
}
answers = {name: attempt(call) for name, call in calls.items()}
print(answers)
yes = [name for name, answer in answers.items() if answer == "ok"]
if yes: sys.exit(f"a read-only volume says yes to {yes}")
P
answers=$(python3 "$WORK/calls.py" "$MNT" 2>&1) || fail "$answers"
down
[ "$UNMOUNTED" -ne 0 ] || fail "umount of a volume that could not be saved says 0"
did "$answers; umount said $UNMOUNTED"
