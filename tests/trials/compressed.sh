#!/usr/bin/env bash
# Compressed files through a mount: read back after a killed server, by mounts that do not compress,
# with directories that say otherwise; stored bytes are fewer, and the volume is sound.
. "$(dirname "$0")/common.sh"
lines=()
SOURCE=$REPOSITORY/crates/fs
# What does not shrink is to be left alone, and found again.
head -c 300000 /dev/urandom >"$WORK/noise"
for kind in "${DEVICES[@]}"; do
    use "$kind"
    make 48M
    up -o compress=small
    mkdir "$MNT/plain"
    "$ONODE" compress "$MNT/plain" --with none >/dev/null || fail "$kind: onode compress"
    cp -r "$SOURCE" "$MNT/fs"
    cp -r "$SOURCE" "$MNT/plain/fs"
    cp "$WORK/noise" "$MNT/noise"
    sync "$MNT/noise" && find "$MNT" -type f -exec sync {} +
    kill -9 "$SERVER"
    wait "$SERVER" 2>/dev/null || true
    SERVER=
    umount -l "$MNT" 2>/dev/null || true
    up
    for copy in fs plain/fs; do
        diff -r "$SOURCE" "$MNT/$copy" >/dev/null || fail "$kind: $copy is not what was written"
    done
    cmp "$WORK/noise" "$MNT/noise" || fail "$kind: noise is not what was written"
    # What a mount that does not compress appends and overwrites.
    printf 'more' >>"$MNT/fs/Cargo.toml"
    printf 'MIDDLE' | dd of="$MNT/noise" bs=1 seek=150000 conv=notrunc status=none
    down_well
    up
    [ "$(tail -c 4 "$MNT/fs/Cargo.toml")" = more ] || fail "$kind: the appended bytes are gone"
    small=$(du -s --block-size=1K "$MNT/fs" | cut -f1)
    plain=$(du -s --block-size=1K "$MNT/plain/fs" | cut -f1)
    [ "$small" -lt "$plain" ] || fail "$kind: $small KiB compressed, $plain KiB plain"
    # What was written plain is stored anew, while it is in use.
    tail -f "$MNT/plain/fs/Cargo.toml" >/dev/null 2>&1 &
    READER=$!
    "$ONODE" compress "$MNT/plain" --with small --rewrite >"$WORK/told" || fail "$kind: onode compress --rewrite"
    kill "$READER"
    grep -q 'stored anew' "$WORK/told" || fail "$kind: $(cat "$WORK/told")"
    diff -r "$SOURCE" "$MNT/plain/fs" >/dev/null || fail "$kind: stored anew it is not what was written"
    down_well
    up
    anew=$(du -s --block-size=1K "$MNT/plain/fs" | cut -f1)
    [ "$anew" -lt "$plain" ] || fail "$kind: $anew KiB stored anew, $plain KiB before"
    diff -r "$SOURCE" "$MNT/plain/fs" >/dev/null || fail "$kind: stored anew and mounted it is not what was written"
    down_well
    "$ONODE" check "$(volume_of "$IMAGE")" >/dev/null || fail "$kind: check"
    lines+=("$kind $((small * 100 / plain)) %")
done
did "stored: ${lines[*]}"
