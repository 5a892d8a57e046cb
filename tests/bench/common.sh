# Shared by the benchmarks: sourced from the top of the project, after `set -euo pipefail`.

cargo build --release --quiet --bin onode --bin onode-lab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# measure LAB [OPTION...]: runs `onode-lab LAB --figures` and keeps its rows; a figure that is
# missed is told at the end.
measure() {
    target/release/onode-lab --json "$1" --figures "${@:2}" >"$work/$1.json" || status=$?
}

# publish [--from TEXT] PAGE MARK LAB.json...: writes the rows of those into
# docs/benchmarks/PAGE.md, between the two marks, and the front page anew.
publish() {
    local from=()
    if [ "$1" = --from ]; then from=(--from "$2"); shift 2; fi
    local page=$1 mark=$2 names=("${@:3}")
    names=("${names[@]/#/$work/}")
    python3 tests/bench/rows.py "${from[@]}" "docs/benchmarks/$page.md" "$mark" "${names[@]}"
    python3 tests/bench/front.py
}
