"""The site that Sphinx makes of the pages: its links lead to pages, and its menu has the order of the first page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from tests.documentation.pages import ROOT

pytest.importorskip("sphinx", reason="it comes with the extra 'docs'; tox's environment 'docs' runs this")
pytestmark = pytest.mark.long

INDEX: Final = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


class _Reader(HTMLParser):
    """Keeps the links of a page, those of its menu, and its text outside code."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.menu: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("pre", "code", "script", "style"):
            self._open.append(tag)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
            if values.get("class") == "reference internal" and "#" not in str(values["href"]):
                self.menu.append(str(values["href"]))

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site: one that was built, or a new one."""
    if built := os.environ.get("QUIESCE_SITE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("site")
    words = ("-q", "-d", folder / "doctrees", ROOT / "docs", folder / "html")
    subprocess.run([sys.executable, "-m", "sphinx", *map(str, words)], check=True)
    return folder / "html"


def pages(site: Path) -> Iterator[tuple[str, _Reader]]:
    """Yield each page, read."""
    for path in sorted(site.rglob("*.html")):
        reader = _Reader()
        reader.feed(path.read_text(encoding="utf-8"))
        yield path.relative_to(site).as_posix(), reader


def test_no_page_leads_to_markdown(site: Path) -> None:
    markdown = re.compile(r"\.md(\.txt)?(#|\Z)")
    assert [f"{name}: {link}" for name, page in pages(site) for link in page.links if markdown.search(link)] == []


def test_every_link_became_one(site: Path) -> None:
    read = dict(pages(site))
    assert len(read) > 50
    assert [name for name, page in read.items() if "](" in "".join(page.text)] == []
    assert "https://github.com/" in " ".join(read["index.html"].links)


def test_every_page_that_a_link_names_is_there(site: Path) -> None:
    gone = []
    for name, page in pages(site):
        for link in page.links:
            target = link.partition("#")[0]
            if target and "://" not in target and not (site / name).parent.joinpath(target).exists():
                gone.append(f"{name}: {link}")
    assert gone == []


def test_the_menu_has_the_order_of_the_first_page(site: Path) -> None:
    wanted = [name.removesuffix(".md") for name in re.findall(r"\]\(([\w/-]+\.md)\)", INDEX)]
    reader = _Reader()
    page = (site / "index.html").read_text(encoding="utf-8")
    reader.feed(page.partition('<div class="sidebar-tree">')[2].partition("</div>")[0])
    menu = [link.removesuffix(".html") for link in reader.menu]
    assert len(wanted) > 30
    assert [name for name in menu if not name.startswith("found/") or name == "found/README"] == wanted
