"""Each page about a bug in released software answers the same questions, in the same order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

FOUND: Final = Path(__file__).resolve().parents[2] / "docs" / "found"
INDEX: Final = FOUND / "README.md"
PAGES: Final = tuple(sorted(path for path in FOUND.glob("*.md") if path != INDEX))
HEADINGS: Final = ("Who is affected", "What happens", "Work-around", "Upstream report", "Reproduce it")


def sections(path: Path) -> dict[str, str]:
    """Return the text below each heading of a page."""
    _, *parts = re.split(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], (text.strip("\n") for text in parts[1::2]), strict=True))


def test_there_are_pages() -> None:
    assert len(PAGES) > 10


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_has_the_headings_and_something_below_each(path: Path) -> None:
    found = sections(path)
    assert tuple(found) == HEADINGS
    assert [heading for heading, text in found.items() if not text] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_report_is_linked_or_said_to_be_missing(path: Path) -> None:
    report = sections(path)["Upstream report"]
    assert "](https://github.com/" in report or "No report" in report


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_reproduction_has_something_to_run(path: Path) -> None:
    assert re.search(r"^    quiesce |`quiesce exec |^```python$", sections(path)["Reproduce it"], re.MULTILINE)


def test_index_lists_every_page_once() -> None:
    linked = re.findall(r"\]\((\w+\.md)\)", INDEX.read_text(encoding="utf-8"))
    assert sorted(linked) == [path.name for path in PAGES]
