#!/usr/bin/env bash
# git: clone, fsck, repack, status and a commit on the mount; the same on ext4; equal trees.
. "$(dirname "$0")/common.sh"
need git=git

# A repository of some hundred commits, made from seeds so that it is the same everywhere.
source=$WORK/source
export GIT_AUTHOR_NAME=Test GIT_AUTHOR_EMAIL=test@example.invalid GIT_COMMITTER_NAME=Test
export GIT_COMMITTER_EMAIL=test@example.invalid GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git init -q -b main "$source"
make_history() {
    local n file
    for n in $(seq 1 300); do
        file=f$((n % 37))/g$((n * 7 % 53))
        printf 'commit refs/heads/main\ncommitter Test <test@example.invalid> %d +0000\ndata 7\nchange\n\n' $((1700000000 + n))
        printf 'M 100644 inline %s\ndata <<END\n' "$file"
        seq -s "$n " 1 $((n * 3))
        printf 'END\n\n'
        printf 'M 120000 inline link%d\ndata <<END\n%s\nEND\n\n' $((n % 5)) "$file"
    done
}
make_history | git -C "$source" fast-import --quiet
git -C "$source" config core.fsync none

work_on() {
    local here=$1/clone
    git clone -q --no-hardlinks --no-local "file://$source" "$here"
    git -C "$here" fsck --full --strict --no-progress >"$WORK/fsck.log" 2>&1 || { cat "$WORK/fsck.log"; fail "git fsck on $1"; }
    git -C "$here" repack -adq
    git -C "$here" fsck --full --no-progress >"$WORK/fsck.log" 2>&1 || { cat "$WORK/fsck.log"; fail "git fsck after repack"; }
    [ -z "$(git -C "$here" status --porcelain)" ] || fail "git status is not clean on $1"
    seq 1 1000 >"$here/new file"
    chmod 755 "$here/new file"
    git -C "$here" add -A
    GIT_AUTHOR_DATE='1800000000 +0000' GIT_COMMITTER_DATE='1800000000 +0000' git -C "$here" commit -qm 'One more'
    git -C "$here" gc --quiet --prune=now
}

onode_up 1G
ext4_up 1024
work_on "$MNT"
work_on "$EXT"
[ "$(git -C "$MNT/clone" rev-parse HEAD)" = "$(git -C "$EXT/clone" rev-parse HEAD)" ] || fail "heads differ"
same_work() { diff -r --no-dereference --exclude=.git "$1" "$2" >"$WORK/diff.log" || { head "$WORK/diff.log"; fail "trees differ"; }; }
same_work "$MNT/clone" "$EXT/clone"
commits=$(git -C "$MNT/clone" rev-list --count HEAD)
onode_down
onode_up
same_work "$MNT/clone" "$EXT/clone"
git -C "$MNT/clone" fsck --full --no-progress >/dev/null 2>&1 || fail "git fsck after a new mount"
onode_down
did "$commits commits cloned, checked, repacked and committed to; same as on $EXT_KIND"
