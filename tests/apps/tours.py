"""Runs the commands of a page of the documents, and compares what they print with the page.

tours.py PAGE FOLDER: the blocks ```sh of the page are run in order by one shell, with -e and
pipefail, in the empty folder FOLDER. A block ```text right behind one of them is all that it
prints, on both channels. Ends with 1 and tells where they differ.

In such a block `...` stands for any text of a line: a size, a time, a number; a line of `...` alone
stands for any lines, or none.
"""
import difflib
import pathlib
import re
import subprocess
import sys

SECONDS = 240


def blocks(page):
    """The blocks of the page that are run: line, commands, and what they print or None."""
    found, fence, between = [], None, True
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if fence is None and line.startswith("```"):
            fence = (line[3:].strip(), number, [])
        elif fence is None:
            between = between or bool(line.strip())
        elif line.startswith("```"):
            kind, start, lines = fence
            if kind == "sh":
                found.append([start, lines, None])
            elif kind == "text" and not between and found:
                found[-1][2] = lines
            between = kind != "sh"
            fence = None
        else:
            fence[2].append(line)
    return found


def is_said(wanted, said):
    """Whether the lines of the page stand for those that were printed."""
    pattern = ""
    for line in wanted:
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in said)) is not None


def main():
    page, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    found = blocks(page)
    if not found:
        sys.exit(f"{page} has no commands")
    place = folder / "place"
    place.mkdir(parents=True)
    script = []
    for at, (_, commands, _) in enumerate(found):
        (folder / f"{at}.sh").write_text("\n".join(commands) + "\n")
        # In the same shell, so that variables, jobs and folders hold from block to block.
        script.append(f'. "{folder}/{at}.sh" >"{folder}/{at}.said" 2>&1')
    (folder / "all.sh").write_text("\n".join(script) + "\n")
    bash = ["bash", "-e", "-o", "pipefail", str(folder / "all.sh")]
    code = subprocess.run(["timeout", "--kill-after=30", str(SECONDS), *bash], cwd=place, stdin=subprocess.DEVNULL).returncode
    compared = 0
    for at, (line, commands, wanted) in enumerate(found):
        file = folder / f"{at}.said"
        if not file.exists():
            break
        said = file.read_text(errors="replace").splitlines()
        is_last = not (folder / f"{at + 1}.said").exists()
        if wanted is not None and not is_said(wanted, said):
            print(f"{page}:{line}: this prints something else:")
            print("\n".join(f"  {one}" for one in difflib.unified_diff(wanted, said, "the page", "printed", lineterm="")))
            code = code or 1
            break
        compared += wanted is not None
        if code and is_last:
            print(f"{page}:{line}: this ends with {code}:")
            print("\n".join(f"  {one}" for one in [*commands, "--", *said]))
    if code:
        sys.exit(1)
    print(f"{page.stem}: {len(found)} blocks of commands, the output of {compared}")


main()
