"""Source around a finding: shown only as long as the file is the one that was run."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.findings import Finding
from quiesce.reporting.page.source_lines import SourceLine, source_lines

SOURCE = "def keep():\n    KEPT.append(1)\n\n    return KEPT\n"


def found(allocated_by: str) -> Finding:
    return Finding("rule", "it lives", "it died", allocated_by=allocated_by)


def test_the_line_and_its_neighbours_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    assert source_lines(found("a.py:2: KEPT.append(1)")) == (
        SourceLine(1, "def keep():", False),
        SourceLine(2, "    KEPT.append(1)", True),
        SourceLine(3, "", False),
    )
    assert source_lines(found("a.py:4: return KEPT")) == (SourceLine(3, "", False), SourceLine(4, "return KEPT", True))


@pytest.mark.parametrize(
    "allocated_by",
    ["a.py:2: KEPT.append(2)", "a.py:9: KEPT.append(1)", "b.py:2: KEPT.append(1)", "a.py:2", "C"],
)
def test_what_is_not_what_was_run_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allocated_by: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    assert source_lines(found(allocated_by)) == ()
