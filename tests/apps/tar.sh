#!/usr/bin/env bash
# tar of a source tree in, compared, and out again byte for byte, with links, xattrs and odd files.
. "$(dirname "$0")/common.sh"
need tar=tar setfattr=attr

# The project's own files, and what a source tree seldom has.
mkdir "$WORK/tree"
(cd "$REPOSITORY" && git ls-files -z 2>/dev/null || find crates docs tests -type f -print0) |
    (cd "$REPOSITORY" && tar --null -T - -cf -) | tar -C "$WORK/tree" -xf -
cd "$WORK/tree"
mkdir -p odd/empty odd/deep/{a,b}/{c,d}
ln Cargo.toml odd/hard
ln -s ../Cargo.toml odd/soft
ln -s nowhere odd/dangling
mkfifo odd/pipe
mknod odd/null c 1 3
truncate -s 10M odd/sparse
printf x | dd of=odd/sparse bs=1 seek=5000000 conv=notrunc status=none
head -c 3000000 /dev/urandom >odd/random
touch "odd/a name with spaces" $'odd/new\nline' odd/$'\303\274mlaut' "odd/$(printf 'x%.0s' $(seq 255))"
chmod 4711 odd/random
chmod 1777 odd/empty
chown 12345:54321 odd/hard
setfattr -n user.colour -v blue odd/random
touch -d '2001-02-03 04:05:06.789012345' odd/random
cd "$WORK"

flags=(--xattrs --xattrs-include='*' --numeric-owner --sort=name --format=posix --pax-option=delete=atime,delete=ctime)
tar "${flags[@]}" --sparse -C "$WORK/tree" -cf "$WORK/in.tar" .
onode_up 1G
ext4_up 1024
for place in "$MNT" "$EXT"; do
    mkdir "$place/tree"
    tar "${flags[@]}" -C "$place/tree" -xpf "$WORK/in.tar"
    tar "${flags[@]}" -C "$place/tree" --compare -f "$WORK/in.tar" || fail "tar --compare on $place"
done
tar "${flags[@]}" -C "$MNT/tree" -cf "$WORK/out.tar" .
tar "${flags[@]}" -C "$EXT/tree" -cf "$WORK/ext.tar" .
cmp "$WORK/out.tar" "$WORK/ext.tar" || fail "the archives of the two trees differ"
same_trees "$MNT/tree" "$EXT/tree" --times
entries=$(find "$MNT/tree" | wc -l)
onode_down
onode_up
tar "${flags[@]}" -C "$MNT/tree" --compare -f "$WORK/in.tar" || fail "tar --compare after a new mount"
same_trees "$MNT/tree" "$EXT/tree" --times
rm -rf "$MNT/tree"
[ -z "$(ls -A "$MNT")" ] || fail "rm -rf left something"
onode_down
did "$entries entries in, compared and out; archive equal to that from $EXT_KIND"
