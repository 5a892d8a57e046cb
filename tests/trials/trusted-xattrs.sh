#!/usr/bin/env bash
# `trusted.*` attributes are hidden from users, as xattr(7) says, so that `rsync -aX` of a user
# works; the name `user.` is invalid. Users saw the names and could not read the values.
. "$(dirname "$0")/common.sh"
need setfattr=attr getfattr=attr setpriv=util-linux
user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
lines=()
for kind in flash scm tier; do
    use "$kind"
    make 32M
    up -o allow_other
    chmod 755 "$MNT"
    echo data >"$MNT/file"
    chown 65534:65534 "$MNT/file"
    setfattr -n trusted.overlay.opaque -v y "$MNT/file"
    setfattr -n user.color -v red "$MNT/file"
    names() { "$@" getfattr --absolute-names -m - "$MNT/file" | sed '/^#/d; /^$/d' | sort | paste -sd ' '; }
    root=$(names env)
    seen=$(names user)
    [ "$root" = "trusted.overlay.opaque user.color" ] || fail "$kind: root sees '$root'"
    [ "$seen" = user.color ] || fail "$kind: a user sees '$seen'"
    code=$(python3 -c 'import errno, os, sys
try: os.setxattr(sys.argv[1], "user.", b"1"); print("ok")
except OSError as error: print(errno.errorcode[error.errno])' "$MNT/file")
    [ "$code" = EINVAL ] || fail "$kind: setxattr of 'user.' says $code"
    down_well
    lines+=("$kind")
done
did "hidden from users on ${lines[*]}"
