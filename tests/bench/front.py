"""Writes both tables of docs/benchmarks.md, between their marks, and its charts from the rows of
docs/benchmarks/*.md.

A row is taken by its name, and one that is gone is an error: what the front page says was measured.
"""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    "flash": "raw flash: PostMark, mounts, capacity, wear, the figures of paper 1",
    "postmark": "PostMark on raw flash beside other file systems",
    "flash-scm": "flash with its index in a small memory: the figures of paper 3",
    "scm": "storage-class memory: blocks, files, checkpoints, the tables of paper 2",
    "tier": "a fast and a big disk beside ext2 and xfs: the figures of paper 4",
    "mount": "time of calls and of several programs on a mount",
}
MOUNTS_OF_1G = [
    ("Onode, flash+scm", "flash+scm: to mount, clean, 1G, 90000 small files, buffer=off"),
    ("YAFFS2, checkpoint", "to mount: YAFFS2 with a checkpoint, counts of 128 MiB scaled to 1G with 90000 small files"),
    ("UBI + UBIFS", "to mount: UBI attach + UBIFS mount, clean, counts of 128 MiB scaled to 1G with 90000 small files"),
    ("YAFFS2, scan", "to mount: YAFFS2 scan, counts of 128 MiB scaled to 1G with 90000 small files"),
]
ROWS = [
    ("flash", "a power cut on 8 GiB, 90 % full", "page reads to mount, worst of 24 cuts, 8G, 90 % full"),
    ("flash", "a clean mount of the same", "page reads to mount, clean, 8G, 90 % full"),
    ("flash", "RAM of the device, 8 GiB", "RAM of the device at most, 8G, 1559 segments"),
    ("flash", "eight chips against one, sequential write", "60M sequential write, 8 chips against 1"),
    ("flash", "the longest synced 4 KB rewrite at 90 % full",
     "synced 4 KB rewrites at 90 % full, uniform: the longest takes"),
    ("flash", "most worn segment to the mean, zipf, static levelling",
     "zipf over all files of 32M, 12 % spare: most worn segment to the mean, static"),
    ("flash-scm", "page reads of a clean mount, 1 GiB, 90,000 files",
     "flash+scm: page reads to mount, clean, 1G, 90000 small files, buffer=off"),
    ("flash-scm", "its time", MOUNTS_OF_1G[0][1]),
    ("flash-scm", "memory for it", "flash+scm, small files: everything in its memory"),
    ("flash-scm", "PostMark with syncs that end in the memory", "the same on flash+scm, buffer=on"),
    ("scm", "malloc + free of 64 KiB, faster than libpmemobj",
     "malloc+free pair 64.0 KiB, faster than libpmemobj that flushes"),
    ("scm", "malloc + free of 32 B, time against mimalloc", "malloc+free pair 32 B, time against mimalloc"),
    ("tier", "16 programs, 20,000 files, safe, against ext2 and xfs on the hard disk",
     "PostMark, 20000 files, 16 programs, each change durable: onode, safe, page-mapped SSD and HDD"
     " against the faster of ext2 and xfs, fsync, HDD"),
    ("tier", "one program, 20,000 files, safe, the same",
     "PostMark, 20000 files, each change durable: onode, safe, page-mapped SSD and HDD"
     " against the faster of ext2 and xfs, fsync, HDD"),
    ("tier", "one program, 20,000 files, either, against them on the solid-state disk",
     "PostMark, 20000 files, each change durable: onode, either, page-mapped SSD and HDD"
     " against the faster of ext2 and xfs, fsync, page-mapped SSD"),
]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def number(text):
    return float(re.sub(r"[*,]", "", text).split()[0])


def rows_of(page):
    """Figures of a page by their names: value, bound, met. And how many are to be reached and missed of all that are
    measured, which the page says itself: its tables show a part of them."""
    text = (DOCS / "benchmarks" / f"{page}.md").read_text()
    found, missed, judged = {}, 0, 0
    for line in text.splitlines():
        row = cells(line) if line.startswith("| ") else []
        if len(row) == 4 and row[3] in ("yes", "**no**", "-"):
            found[row[0]] = row[1:]
            judged += row[3] != "-"
            missed += row[3] == "**no**"
    told = re.search(r"(\d+)\s+figures\s+are\s+to\s+be\s+reached,\s+(\d+)\s+are\s+missed", text)
    return (found, int(told[2]), int(told[1])) if told else (found, missed, judged)


def chart(name, title, unit, bars):
    """Horizontal bars, the shorter the better; ours come first and are dark."""
    most = max(value for _, value in bars)
    height = 34 + 26 * len(bars)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height}" font-family="sans-serif" font-size="13">',
           '<rect width="100%" height="100%" fill="white"/>', f'<text x="10" y="20" font-weight="bold">{title}</text>']
    for at, (label, value) in enumerate(bars):
        y, width = 32 + 26 * at, max(2, 420 * value / most)
        fill = "#1b6ca8" if label.startswith("Onode") else "#b8c4ce"
        svg += [f'<text x="10" y="{y + 14}">{label}</text>',
                f'<rect x="170" y="{y}" width="{width:.0f}" height="18" fill="{fill}"/>',
                f'<text x="{178 + width:.0f}" y="{y + 14}">{value:,.0f} {unit}</text>' if value >= 100 else
                f'<text x="{178 + width:.0f}" y="{y + 14}">{value:,.1f} {unit}</text>']
    (DOCS / "benchmarks" / f"{name}.svg").write_text("\n".join(svg + ["</svg>"]) + "\n")


pages = {page: rows_of(page) for page in PAGES}
peers = next(cells(line) for line in (DOCS / "benchmarks" / "postmark.md").read_text().splitlines()
             if line.startswith("| write | **"))
chart("postmark", "PostMark write-intensive on 128 MiB of NAND, each operation durable: page programs", "pages", [
    ("Onode", number(peers[1])), ("yaffs2, tuned", number(peers[3])), ("yaffs2", number(peers[2])),
    ("FatFs + Dhara", number(peers[4])), ("lower bound", number(peers[5]))])
chart("mount", "Clean mount of 1 GiB with 90,000 files, virtual time", "ms",
      [(label, number(pages["flash-scm"][0][row][0])) for label, row in MOUNTS_OF_1G])

def between(text, name, rows):
    """The text with these rows as those of the table between its two marks; all else stays as it is."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, rest = text.split(begin)
    table, after = rest.split(end)
    head = table.splitlines(keepends=True)[:2]
    return before + begin + "".join(head + rows) + end + after


figures = []
for page, what, row in ROWS:
    value, reach, met = pages[page][0][row]
    figures.append(f"| {page} | {what} | {value} | {reach} | {met} |\n")
appendix = []
for page, what in PAGES.items():
    _, missed, judged = pages[page]
    appendix.append(f"| [{page}](benchmarks/{page}.md) | {what} | {judged or '-'} | {missed if judged else '-'} |\n")
text = (DOCS / "benchmarks.md").read_text()
text = between(between(text, "figures", figures), "appendix", appendix)
(DOCS / "benchmarks.md").write_text(text)
