#!/usr/bin/env bash
# Many programs on one mount that four threads serve: fsx on files of its own, storms of renames,
# links and removals in shared directories, readers that verify whatever they find; then a check.
# SECONDS_EACH is the time on each device (8, long 600).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need python3=python3-minimal
need_tool fsx 0.3.2
each=${SECONDS_EACH:-$(is_long && echo 600 || echo 8)}
threads=${THREADS:-4}
said=()

cat >"$WORK/fsx.toml" <<'T'
flen = 524288
[opsize]
max = 65536
[weights]
truncate = 1
punch_hole = 1
posix_fallocate = 1
fsync = 0.2
T

# runs_fsx SEED repeats fsx with new seeds until the time is over; it ends with the first failure.
runs_fsx() {
    local seed=$1 end=$((SECONDS + each))
    while [ "$SECONDS" -lt "$end" ]; do
        timeout 120 "$ONODE_TOOLS/bin/fsx" -q -f "$WORK/fsx.toml" -N 2000 -S "$seed" -P "$WORK" "$MNT/fsx$1" >"$WORK/fsx$1.log" 2>&1 ||
            { tail -n 5 "$WORK/fsx$1.log"; echo "fsx -N 2000 -S $seed"; return 1; }
        seed=$((seed + 100))
    done
}

for kind in flash scm tier; do
    use "$kind"
    make 256M
    up -o "threads=$threads"
    pids=()
    for seed in 1 2; do runs_fsx "$seed" >"$WORK/error-fsx$seed" 2>&1 & pids+=($!); done
    for number in 1 2 3; do
        python3 "$REPOSITORY/tests/trials/many-at-once.py" "$MNT" storm "$number" "$each" >"$WORK/steps$number" 2>"$WORK/error-storm$number" &
        pids+=($!)
    done
    for number in 4 5; do
        python3 "$REPOSITORY/tests/trials/many-at-once.py" "$MNT" read "$number" "$each" >"$WORK/steps$number" 2>"$WORK/error-read$number" &
        pids+=($!)
    done
    ended=0
    for pid in "${pids[@]}"; do wait "$pid" || ended=1; done
    [ "$ended" = 0 ] || { tail -n 5 "$WORK"/error-*; fail "$kind with $threads threads"; }
    down_well
    sound
    up -o "threads=$threads"
    python3 "$REPOSITORY/tests/trials/many-at-once.py" "$MNT" verify 0 0 >"$WORK/verified" || fail "$kind: content after a new mount"
    down_well
    said+=("$kind: $(cat "$WORK"/steps? | awk '{ sum += $1 } END { print sum }') steps, $(cat "$WORK/verified") files")
done
did "$threads threads, $each s on each: $(IFS=';'; echo "${said[*]}")"
