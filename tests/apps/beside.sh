#!/usr/bin/env bash
# Flash with its index in a memory beside it under the same programs; a volume is checked and
# mounted with both.
. "$(dirname "$0")/common.sh"
here=$(cd "$(dirname "$0")" && pwd)
export ONODE_DEVICE=flash+scm FSX_OPS=${FSX_OPS:-5000} KILLS=${KILLS:-5}
lines=()
for one in fsx git sqlite kill9; do
    code=0
    bash "$here/$one.sh" >"$WORK/$one.log" 2>&1 || code=$?
    lines+=("$(tail -n 1 "$WORK/$one.log")")
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || { cat "$WORK/$one.log"; fail "$one ended with $code"; }
done
printf '  %s\n' "${lines[@]}"
did "${#lines[@]} programs on flash beside a memory"
