#!/usr/bin/env bash
# Measures every figure of the flash device and writes the rows into docs/benchmarks.md, between its two
# marks. Takes some minutes. TRACES is a folder with the PostMark streams; without it the built-in
# generator makes similar ones.
#
#   tests/bench/figures.sh [TRACES]
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --quiet --bin onode
onode=target/release/onode
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
"$onode" --json lab replay --figures ${1:+--traces "$1"} >"$work/replay.json" || status=$?
"$onode" --json lab policy --figures >"$work/policy.json" || status=$?

python3 - "$work/replay.json" "$work/policy.json" docs/benchmarks.md <<'EOF'
import json, sys

BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"


def number(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def line(row):
    if row["reach"] is None:
        reach = met = "-"
    else:
        # Rows without a bound are at most, except speeds.
        bound = row.get("bound") or ("at least" if row["name"].startswith("speed") else "at most")
        reach = f"{bound} {number(row['reach'])}"
        met = "yes" if row["met"] else "**no**"
    return f"| {row['name']} | {number(row['value'])} {row['unit']} | {reach} | {met} |\n"


lines = ["| figure | value | to reach | met |\n", "|---|---|---|---|\n"]
failures = []
for name in sys.argv[1:3]:
    report = json.load(open(name))
    lines += [line(row) for row in report["rows"]]
    failures += report.get("failures", [])
if failures:
    lines += ["\nNot measured, because it failed:\n\n"] + [f"- {failure}\n" for failure in failures]
text = open(sys.argv[3]).read()
before, rest = text.split(BEGIN)
_, after = rest.split(END)
open(sys.argv[3], "w").write(before + BEGIN + "\n" + "".join(lines) + "\n" + END + after)
EOF
exit "$status"
