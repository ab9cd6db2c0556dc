"""The reference names every gauge, and every field of a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from quiesce.leaks.quantities import FAMILIES

ROOT: Final = Path(__file__).resolve().parents[2]
REFERENCE: Final = ROOT / "docs" / "reference"
SCHEMA: Final = json.loads((ROOT / "reports" / "schema" / "report.schema.json").read_text(encoding="utf-8"))


def unnamed(page: str, names: set[str]) -> list[str]:
    """Return which of the names a page of the reference does not have."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    return sorted(name for name in names if f"`{name}`" not in text)


def test_gauges_of_leak_checks_are_named() -> None:
    assert unnamed("gauges.md", set(FAMILIES)) == []


@pytest.mark.parametrize("part", ["result", "finding"])
def test_fields_of_a_report_are_named(part: str) -> None:
    fields = set(SCHEMA["$defs"][part]["properties"])
    assert len(fields) > 10
    assert unnamed("report.md", fields) == []


def test_verdicts_are_named() -> None:
    assert unnamed("report.md", set(SCHEMA["$defs"]["result"]["properties"]["verdict"]["enum"])) == []
