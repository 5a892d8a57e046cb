# Shared by the tests in a virtual machine: packages, a machine that boots from memory, its output.
#
# A machine is a Debian kernel, busybox, a few modules, the onode program and one script. It needs
# no privileges and no /dev/kvm; with -icount it would be deterministic, without it is faster.
# shellcheck shell=bash
set -euo pipefail

REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
ONODE=$(realpath "${ONODE:-$REPOSITORY/target/release/onode}")
WORK=$(mktemp -d "${TMPDIR:-/tmp}/onode-qemu.XXXXXX")
trap 'if [ -n "${KEEP:-}" ]; then echo "kept $WORK"; else rm -rf "$WORK"; fi' EXIT

fail() { echo "FAILED: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }

# Debian's own packages; nothing else is fetched.
need_packages() {
    local missing=()
    command -v qemu-system-x86_64 >/dev/null || missing+=(qemu-system-x86)
    command -v busybox >/dev/null || missing+=(busybox-static)
    command -v modprobe >/dev/null || missing+=(kmod)
    command -v cpio >/dev/null || missing+=(cpio)
    ls /boot/vmlinuz-*-amd64 >/dev/null 2>&1 || missing+=(linux-image-amd64)
    [ ${#missing[@]} -eq 0 ] && return 0
    [ "$(id -u)" -eq 0 ] || skip "needs ${missing[*]} and only root can install that"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        skip "cannot install ${missing[*]}"
}

# build_initrd SCRIPT MODULE... makes $WORK/initrd.gz; the modules are not loaded, the script does
# that.
build_initrd() {
    local script=$1 root=$WORK/root kernel module file
    shift
    KERNEL=$(find /boot -name 'vmlinuz-*-amd64' | sort -V | tail -n 1)
    kernel=${KERNEL#/boot/vmlinuz-}
    rm -rf "$root"
    mkdir -p "$root"/{bin,dev,proc,sys,mnt,tmp,share,etc,run,lib64}
    cp "$(command -v busybox)" "$root/bin/busybox"
    ! ldd "$root/bin/busybox" >/dev/null 2>&1 || skip "busybox is not static; install busybox-static"
    for module in "$@"; do
        modprobe --config /dev/null --set-version "$kernel" --show-depends "$module" | awk '$1 == "insmod" { print $2 }' || fail "no module $module"
    done | sort -u | while read -r file; do
        mkdir -p "$root$(dirname "$file")"
        cp "$file" "$root$file"
    done
    cp "/lib/modules/$kernel"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$kernel/"
    depmod -b "$root" "$kernel"
    put_program "$ONODE" onode
    strip "$root/bin/onode" 2>/dev/null || true
    cp "$REPOSITORY/tests/qemu/$script" "$root/script"
    cp "$REPOSITORY/tests/qemu/init" "$root/init"
    chmod 755 "$root/init" "$root/script" "$root/bin"/*
    pack_initrd
}

# put_program PATH NAME: into the machine, with the libraries that it needs.
put_program() {
    local root=$WORK/root file
    cp -L "$1" "$root/bin/$2"
    ldd "$1" | grep -o '/[^ ]*' | while read -r file; do
        mkdir -p "$root$(dirname "$file")"
        cp -L "$file" "$root$file"
    done
}

pack_initrd() {
    (cd "$WORK/root" && find . | cpio --quiet -o -H newc | gzip -1) >"$WORK/initrd.gz"
}

# build_simulators makes nandsim.ko and mtdram.ko in $WORK/simulators: Debian's simulators of a NAND
# chip and of a memory, whose power can be cut in the middle of a program, an erase or a write to
# the memory. Parameters of nandsim: cut_after=N cuts at the N-th one of either, which is done in
# part (the first 700 bytes of a page, some words of the memory); power_off=1 is the state then, in
# which nothing on either is changed any more.
build_simulators() {
    local version source kernel folder=$WORK/simulators
    version=$(find /boot -name 'vmlinuz-*-amd64' | sort -V | tail -n 1)
    kernel=${version#/boot/vmlinuz-}
    source=linux-source-${kernel%%.*}.$(echo "$kernel" | cut -d . -f 2)
    if [ ! -e "/usr/src/$source.tar.xz" ] || [ ! -d "/usr/src/linux-headers-$kernel" ] || ! command -v xz make gcc >/dev/null; then
        [ "$(id -u)" -eq 0 ] || skip "needs $source and linux-headers-$kernel, and only root can install those"
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -y -qq --no-install-recommends \
            "$source" "linux-headers-$kernel" xz-utils make gcc >/dev/null || skip "cannot install $source and headers"
    fi
    mkdir -p "$folder"
    tar -xJf "/usr/src/$source.tar.xz" -C "$folder" --transform 's,.*/,original-,' \
        "$source/drivers/mtd/nand/raw/nandsim.c" "$source/drivers/mtd/devices/mtdram.c"
    awk '
        /^module_param\(bbt,/ {
            print
            print "static unsigned int cut_after;"
            print "unsigned int power_off;"
            print "EXPORT_SYMBOL(power_off);"
            print "module_param(cut_after, uint, 0600);"
            print "module_param(power_off, uint, 0600);"
            next
        }
        /^static int ns_do_state_action\(/ {
            print "int power_fails(void);"
            print "int power_fails(void)"
            print "{"
            print "\tif (!cut_after || --cut_after)"
            print "\t\treturn 0;"
            print "\tpower_off = 1;"
            print "\treturn 1;"
            print "}"
            print "EXPORT_SYMBOL(power_fails);"
        }
        /^\t\tif \(ns_prog_page\(ns, num\) == -1\)/ {
            print "\t\tif (!power_off && ns_prog_page(ns, power_fails() ? min(num, 700) : num) == -1)"
            next
        }
        /^\t\tns_erase_sector\(ns\);/ {
            print "\t\tif (!power_off && !power_fails())"
            print "\t\t\tns_erase_sector(ns);"
            next
        }
        { print }
    ' "$folder/original-nandsim.c" >"$folder/nandsim.c"
    awk '
        /^static int ram_write\(/ {
            print "extern unsigned int power_off;"
            print "int power_fails(void);"
        }
        /^\tmemcpy\(\(char \*\)mtd->priv \+ to, buf, len\);/ {
            print "\tif (!power_off)"
            print "\t\tmemcpy((char *)mtd->priv + to, buf, power_fails() ? (get_random_u32() % (len + 1)) & ~7 : len);"
            next
        }
        { print }
    ' "$folder/original-mtdram.c" >"$folder/mtdram.c"
    sed -i 's/^#include <linux\/module.h>/&\n#include <linux\/random.h>/' "$folder/mtdram.c"
    [ "$(grep -c power_fails "$folder/nandsim.c")" -eq 5 ] && [ "$(grep -c power_fails "$folder/mtdram.c")" -eq 2 ] ||
        fail "the simulators of $source are not those that are known"
    rm "$folder"/original-*
    echo 'obj-m := nandsim.o mtdram.o' >"$folder/Makefile"
    make -s -C "/usr/src/linux-headers-$kernel" M="$folder" modules >"$folder/log" 2>&1 ||
        { tail -n 20 "$folder/log"; fail "the simulators cannot be built"; }
}

# put_simulators puts them into the machine in place of those of the kernel.
put_simulators() {
    local name there
    for name in nandsim mtdram; do
        there=$(find "$WORK/root" -name "$name.ko*")
        [ -z "$there" ] || cp "$WORK/simulators/$name.ko" "$there"
    done
    pack_initrd
}

# machine LOG SECONDS QEMU-OPTION... runs one until it powers off.
machine() {
    local log=$1 seconds=$2
    shift 2
    mkdir -p "$WORK/share"
    timeout --kill-after=5 "$seconds" qemu-system-x86_64 -accel tcg -cpu max -smp 1 -m 1024 -nodefaults \
        -no-user-config -display none -serial stdio -kernel "$KERNEL" -initrd "$WORK/initrd.gz" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off" \
        -fsdev "local,id=share,path=$WORK/share,security_model=none" \
        -device virtio-9p-pci,fsdev=share,mount_tag=share "$@" </dev/null 2>&1 | tr -d '\r' >"$log" ||
        { tail -n 40 "$log"; fail "the machine did not end within $seconds s"; }
}

# verdict LOG shows what the script said and tells whether it ended well.
verdict() {
    grep -E '^(ok|not ok|#) ' "$1" || true
    local passed failed
    passed=$(grep -c '^ok ' "$1" || true)
    failed=$(grep -c '^not ok ' "$1" || true)
    if ! grep -q '^script ended with 0$' "$1"; then
        tail -n 30 "$1"
        failed=$((failed + 1))
    fi
    PASSED=$((${PASSED:-0} + passed)) FAILED=$((${FAILED:-0} + failed))
}
