#!/usr/bin/env bash
# rsync -a --checksum of a tree; the second run transfers nothing; the tree equals the source.
. "$(dirname "$0")/common.sh"
need rsync=rsync
mkdir "$WORK/tree"
cp -a "$REPOSITORY/crates" "$REPOSITORY/docs" "$WORK/tree/"
ln -s crates "$WORK/tree/link"
head -c 5000000 /dev/urandom >"$WORK/tree/random"
ln "$WORK/tree/random" "$WORK/tree/random-too"
# rsync leaves the time of a link that is as old to the second.
touch -h -d 2001-02-03 "$WORK/tree/link"

onode_up 1G
ext4_up 1024
for place in "$MNT" "$EXT"; do
    rsync -aHAX --checksum "$WORK/tree/" "$place/tree/"
    again=$(rsync -aHAX --checksum --itemize-changes "$WORK/tree/" "$place/tree/")
    [ -z "$again" ] || fail "the second run transfers: $again"
done
same_trees "$MNT/tree" "$EXT/tree" --times
onode_down
onode_up
again=$(rsync -aHAX --checksum --itemize-changes --delete "$WORK/tree/" "$MNT/tree/")
[ -z "$again" ] || fail "after a new mount it transfers: $again"
files=$(find "$MNT/tree" -type f | wc -l)
onode_down
did "$files files; nothing left to transfer; same tree as on $EXT_KIND"
