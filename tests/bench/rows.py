"""Writes figures anew into a page, between two marks: rows.py [--from TEXT] PAGE NAME REPORT.json...

Only rows whose names stand between the marks are written: a page shows what supports a claim, and the command that
measures prints every row. With --from those before the first whose name begins with TEXT are left out. How many figures
are to be reached and missed, of all rows, is printed; the page says it in its first lines.

The marks are `<!-- NAME: begin -->` and `<!-- NAME: end -->`; reports are what `onode-lab --json ... --figures` prints.
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
rows, failures = [], []
for report in map(json.load, map(open, files)):
    names = [row["name"] for row in report["rows"]]
    start = next((at for at, name_of in enumerate(names) if name_of.startswith(first)), len(names))
    rows += report["rows"][start:]
    failures += report.get("failures", [])
measured = {row["name"]: line(row) for row in rows}
begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
text = open(page).read()
before, rest = text.split(begin)
old, after = rest.split(end)
lines, written = [], 0
for one in old.splitlines(keepends=True):
    known = measured.get(one[2:].split(" | ")[0]) if one.startswith("| ") else None
    lines.append(known or one)
    written += known is not None
open(page, "w").write(before + begin + "".join(lines) + end + after)
judged = [row for row in rows if row["reach"] is not None]
missed = sum(not row["met"] for row in judged)
print(f"{page}: {written} of {len(rows)} rows of '{name}' written; {len(judged)} figures are to be reached, {missed} are missed")
for failure in failures:
    print(f"not measured, because it failed: {failure}")
