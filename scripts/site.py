"""What mdBook does not do for the site (docs/book.toml, scripts/site).

As its preprocessor it brings the pages of SUMMARY.md that lie outside of docs/ into the book, and
turns links to them. A link to a file that is no page of the book, such as a source, becomes its
text: the book has no such file. On a code host the same links lead where they say.

site.py check FOLDER: every link within the built site leads to a file, and to a place in it, that
is there. Ends with 1 and names those that do not.
"""
import html.parser
import json
import pathlib
import posixpath
import re
import sys
import urllib.parse

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def chapters(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def preprocess():
    context, book = json.load(sys.stdin)
    source = pathlib.Path(context["root"]) / context["config"]["book"].get("src", "src")
    pages = [chapter for chapter in chapters(book.get("items") or book.get("sections")) if chapter["path"]]
    # A page beside docs/ comes to the top of the book; mdBook has made README.md index.md before.
    homes = {chapter["source_path"]: chapter["path"].removeprefix("../") for chapter in pages}

    for chapter in pages:
        old = chapter["source_path"]
        new = homes[old]

        def turned(match):
            mark, text, target = match.groups()
            path, _, place = target.partition("#")
            if not path or "://" in target:
                return match[0]
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(old), path))
            if wanted == "../docs":
                wanted = "../README.md"
            wanted = wanted.removeprefix("../docs/")
            if wanted in homes:
                wanted = homes[wanted]
            elif wanted.startswith("..") or wanted.endswith(".md") or not (source / wanted).is_file():
                return text
            path = posixpath.relpath(wanted, posixpath.dirname(new) or ".")
            return f"{mark}[{text}]({path}{'#' if place else ''}{place})"

        # What stands in fences is no link.
        parts = re.split(r"(^```.*?^```)", chapter["content"], flags=re.S | re.M)
        chapter["content"] = "".join(part if at % 2 else LINK.sub(turned, part) for at, part in enumerate(parts))
        chapter["path"] = new
    json.dump(book, sys.stdout)


class Page(html.parser.HTMLParser):
    """The places of a page and its links."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def check(folder):
    pages = {page: Page(page.read_text()) for page in folder.rglob("*.html")}
    count, broken = 0, set()
    for page, found in pages.items():
        # Its links count from wherever the page that is missing was looked for.
        if page.name == "404.html":
            continue
        for link in found.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = page
            if parts.path:
                target = pathlib.Path(posixpath.normpath(page.parent / urllib.parse.unquote(parts.path)))
                target = target / "index.html" if target.is_dir() else target
            place = urllib.parse.unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].places):
                broken.add(f"{page.relative_to(folder)} links to {link}")
    for line in sorted(broken):
        print(line)
    print(f"{len(pages)} pages, {count} links, {len(broken)} broken")
    return bool(broken) or not count


if sys.argv[1:2] == ["check"]:
    sys.exit(check(pathlib.Path(sys.argv[2])))
elif sys.argv[1:2] == ["supports"]:
    sys.exit(0)
else:
    preprocess()
