"""Writes rows of figures into a page, between two marks: rows.py [--from TEXT] PAGE NAME REPORT.json...

With --from those before the first whose name begins with TEXT are left out.

The marks are `<!-- NAME: begin -->` and `<!-- NAME: end -->`; reports are what `onode --json lab ... --figures` prints.
"""

import json
import sys


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


arguments = sys.argv[1:]
first = arguments[1] if arguments[0] == "--from" else ""
page, name, *files = arguments[2:] if first else arguments
lines = ["| figure | value | to reach | met |\n", "|---|---|---|---|\n"]
failures = []
for report in map(json.load, map(open, files)):
    names = [row["name"] for row in report["rows"]]
    start = next((at for at, name_of in enumerate(names) if name_of.startswith(first)), len(names))
    lines += [line(row) for row in report["rows"][start:]]
    failures += report.get("failures", [])
if failures:
    lines += ["\nNot measured, because it failed:\n\n"] + [f"- {failure}\n" for failure in failures]
notes = [note for report in map(json.load, map(open, files)) for note in report.get("notes", [])]
if notes:
    lines += ["\n"] + [f"- {note}\n" for note in notes]
begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
text = open(page).read()
before, rest = text.split(begin)
_, after = rest.split(end)
open(page, "w").write(before + begin + "\n" + "".join(lines) + "\n" + end + after)
