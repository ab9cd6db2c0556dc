"""The first page of the documentation leads to all others; pages about found bugs have a list of their own."""

from __future__ import annotations

from tests.documentation.pages import ROOT


def test_the_first_page_links_every_page() -> None:
    folder = ROOT / "docs"
    index = (folder / "index.md").read_text(encoding="utf-8")
    pages = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.md"))]
    listed = [name for name in pages if name != "index.md" and not name.startswith("found/")]
    assert len(listed) > 20
    assert [name for name in listed if f"]({name})" not in index] == []
