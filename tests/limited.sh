# Shared by the runners of tests: a test that hangs is ended, and what its processes waited for is
# told.
# shellcheck shell=bash

# limited SECONDS NAME COMMAND... runs a test; 124 if it takes longer than that.
limited() {
    local seconds=$1 name=$2 test limit code=0
    shift 2
    # It ends the whole group, servers included.
    timeout --kill-after=30 $((seconds + 300)) "$@" &
    test=$!
    sleep "$seconds" &
    limit=$!
    # It has a group of its own, which nobody's Ctrl-C reaches.
    trap 'kill -TERM "$test" "$limit" 2>/dev/null; exit 130' INT TERM
    wait -n "$test" "$limit" || code=$?
    trap - INT TERM
    if kill -0 "$limit" 2>/dev/null; then
        kill "$limit"
        wait "$limit" 2>/dev/null || true
        return "$code"
    fi
    echo "--- $name takes longer than $seconds s; its processes:"
    tell_processes "$name"
    # What waits for the mount can be ended once that answers with an error.
    grep -oE " [^ ]*/onode-$name\.[^ ]* fuse\.onode " /proc/mounts | cut -d' ' -f2 | xargs -r -n 1 umount -f -l
    kill -TERM "$test"
    wait "$test" 2>/dev/null || true
    return 124
}

# tell_processes NAME prints where the threads of a test's processes are, a line each; of servers
# also what they said.
tell_processes() {
    local process thread calls
    for process in $(pgrep -f "/onode-$1\."); do
        echo "$process: $(tr '\0' ' ' <"/proc/$process/cmdline" | cut -c1-150)"
        if command -v gdb >/dev/null && [[ $(readlink "/proc/$process/exe") = *onode ]]; then
            # Each call with its file and line, without what it is generic over.
            timeout 60 gdb -batch -p "$process" -ex 'thread apply all backtrace 25' 2>/dev/null | awk '
                /^Thread/ { match($0, /"[^"]*"/); printf "\n  %s", substr($0, RSTART, RLENGTH) }
                /^#/ {
                    place = match($0, / at [^ ]*$/) ? substr($0, RSTART + 4) : ""
                    sub(/.*\//, "", place)
                    sub(/^#[0-9]+ +(0x[0-9a-f]+ in )?/, ""); sub(/ ?[(<].*/, "")
                    printf " %s%s", $0, place == "" ? "" : "@" place
                }
                END { print "" }' | grep . | cut -c1-700
            continue
        fi
        for thread in "/proc/$process/task"/*; do
            calls=$(cut -d' ' -f1-3 "$thread/stack" 2>/dev/null | head -n 8 | sed 's/\[<0>\] //; s/+.*//' | tr '\n' ' ')
            echo "  $(cat "$thread/comm"): ${calls:-$(cat "$thread/wchan")}"
        done
    done
    tail -qn 5 "${TMPDIR:-/tmp}/onode-$1".*/{onode.log,answer} 2>/dev/null
}
