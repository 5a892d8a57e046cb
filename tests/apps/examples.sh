#!/usr/bin/env bash
# The applications of paper 2, original and adapted: both make the same of the same files.
. "$(dirname "$0")/common.sh"
command -v cc >/dev/null || skip "there is no C compiler"
export ONODE
"$REPOSITORY/examples/memory/run" >"$WORK/examples.log" 2>&1 || { cat "$WORK/examples.log"; fail "examples/memory/run"; }
sed 's/^/  /' "$WORK/examples.log"
did "the applications of paper 2, as they are and adapted"
