"""Writes rows of figures into a page, between two marks: rows.py [--from TEXT | --update] PAGE NAME REPORT.json...

With --from those before the first whose name begins with TEXT are left out. With --update rows that are there are
replaced, those of a name that is not there come behind the last one replaced, and all others stay.

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


def update(lines, new):
    """The rows `lines` with those of `new` in place of the ones of the same name."""
    at = len(lines)
    for one in new:
        same = [number for number, old in enumerate(lines) if old.split(" | ")[0] == one.split(" | ")[0]]
        if same:
            at = same[0]
            lines[at] = one
        else:
            lines.insert(at + 1, one)
            at += 1
    return lines


arguments = sys.argv[1:]
updates = arguments[0] == "--update"
arguments = arguments[updates:]
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
old, after = rest.split(end)
if updates:
    lines = update(old.strip("\n").splitlines(keepends=True), lines[2:])
    lines[-1] = lines[-1].rstrip("\n") + "\n"
open(page, "w").write(before + begin + "\n" + "".join(lines) + "\n" + end + after)
