"""Facts that stand in more than one file agree: the version, the addresses, and what an installation brings along."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

yaml = pytest.importorskip("yaml", reason="it comes with the extra 'test'")

ROOT: Final = Path(__file__).resolve().parent.parent
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY: Final = PROJECT["urls"]["Source"]
_HEADING: Final = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<day>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def test_the_changelog_has_this_version_after_what_is_not_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = _HEADING.findall(text)
    assert [line for line in text.splitlines() if line.startswith("## ") and not _HEADING.match(line)] == []
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == PROJECT["version"]
    days = [day for _, day in headings[1:]]
    assert all(days)
    assert days == sorted(days, reverse=True)


def test_the_citation_is_that_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["version"] == PROJECT["version"]
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == REPOSITORY
    assert citation["authors"] == PROJECT["authors"]
    days = dict(_HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    assert citation["date-released"] == days[PROJECT["version"]]


def test_every_address_is_in_one_repository() -> None:
    assert {"Homepage", "Documentation", "Issues", "Changelog"} <= PROJECT["urls"].keys()
    for address in PROJECT["urls"].values():
        assert address.startswith(REPOSITORY)
        inside = re.fullmatch(rf"{re.escape(REPOSITORY)}/(?:blob|tree)/main/(.+)", address)
        assert inside is None or (ROOT / inside[1]).exists()


def test_an_installation_brings_pytest_along_and_nothing_that_slows_it_down() -> None:
    """Hypothesis' own plugin imports all of Hypothesis in each run of pytest, so it comes on request only."""
    names = {re.split(r"[<>=;\[ ]", words)[0] for words in PROJECT["dependencies"]}
    assert names == {"pytest", "pytest-xdist"}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](docs/a.md)", "[a](https://x.y/z/blob/v1/docs/a.md)"),
        ("[a](docs/a.md#b)", "[a](https://x.y/z/blob/v1/docs/a.md#b)"),
        ("![a](docs/a.png)", "![a](https://x.y/z/raw/v1/docs/a.png)"),
        ("[![a](a.svg)](b.md)", "[![a](https://x.y/z/raw/v1/a.svg)](https://x.y/z/blob/v1/b.md)"),
        ("[a](https://b.c/d)", "[a](https://b.c/d)"),
        ("[a](#b)", "[a](#b)"),
    ],
)
def test_links_of_the_readme_lead_to_the_repository(written: str, shown: str) -> None:
    pytest.importorskip("hatchling")
    location = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert location is not None
    assert location.loader is not None
    module = importlib.util.module_from_spec(location)
    location.loader.exec_module(module)
    assert module.absolute(written, "https://x.y/z", "v1") == shown
