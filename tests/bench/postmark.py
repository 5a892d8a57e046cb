"""Writes the tables of PostMark into a page, between their marks: postmark.py PAGE FOLDER, where FOLDER holds the
reports of `onode-lab --json replay`, STREAM-DURABILITY.json each.
"""

import json
import sys

# What the figures of `onode-lab replay --figures` are to reach.
REACH = {
    ("write", "op"): 146_000, ("write", "natural"): 74_000, ("write", "lazy"): 8_400,
    ("read", "op"): 238_000, ("read", "natural"): 125_000, ("read", "lazy"): 18_800,
    ("table2", "op"): 100_000, ("table2", "natural"): 57_000, ("table2", "lazy"): 6_800,
}
# yaffs2, yaffs2 tuned, FatFs on Dhara; the lower bounds for synced operations and for 1 MiB at a
# time.
PEERS = {
    "write": ("286,488 (376 KB)", "242,942 (376 KB)", "1,229,168 (6 KB)", "133,291", "67,173"),
    "read": ("476,874 (376 KB)", "382,866 (376 KB)", "1,757,856 (6 KB)", "216,279", "113,409"),
    "table2": ("202,359 (616 KB)", "165,686 (616 KB)", "780,256 (6 KB)", "91,033", "51,826"),
}
PAGE_BYTES = 2048

page, folder = sys.argv[1:]
reports = {key: json.load(open(f"{folder}/{key[0]}-{key[1]}.json")) for key in REACH}


def programs(key, tag):
    return f"{reports[key]['by_tag'].get(tag, {}).get('programs', 0):,}"


def ram(key):
    return f"{reports[key]['ram_peak_bytes'] // 1024} KiB"


def all_rows():
    yield "| stream | durability | programs | to reach | met | page reads | erases | bytes programmed / written | virtual s | RAM |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for key, reach in REACH.items():
        report, nand = reports[key], reports[key]["nand"]
        met = "yes" if nand["programs"] <= reach else "**no**"
        amplification = nand["programs"] * PAGE_BYTES / report["user_bytes_written"]
        yield (f"| {key[0]} | {key[1]} | {nand['programs']:,} | {reach:,} | {met} | {nand['reads']:,} | {nand['erases']:,} "
               f"| {amplification:.2f} | {report['virtual_s']:.1f} | {ram(key)} |")


def purposes():
    yield "| stream | durability | data | journal | index | summary | superblocks |"
    yield "|---|---|---|---|---|---|---|"
    for key in REACH:
        tags = " | ".join(programs(key, tag) for tag in ("data", "journal", "index", "summary", "anchor"))
        yield f"| {key[0]} | {key[1]} | {tags} |"


def beside_peers():
    yield "| stream | Onode `op` | yaffs2 | yaffs2 tuned | FatFs + Dhara | lower bound, synced | Onode `natural` | lower bound, 1 MiB |"
    yield "|---|---|---|---|---|---|---|---|"
    for stream, (yaffs, tuned, dhara, synced, gathered) in PEERS.items():
        ours = [f"**{reports[key]['nand']['programs']:,}** ({ram(key)})" for key in ((stream, "op"), (stream, "natural"))]
        yield f"| {stream} | {ours[0]} | {yaffs} | {tuned} | {dhara} | {synced} | {ours[1]} | {gathered} |"


text = open(page).read()
for name, rows in (("postmark", all_rows), ("postmark purposes", purposes), ("postmark peers", beside_peers)):
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, rest = text.split(begin)
    text = before + begin + "\n" + "\n".join(rows()) + "\n\n" + end + rest.split(end)[1]
open(page, "w").write(text)
