"""Lines of source around a finding: quoted when it is made, and only as long as the file is the one that was run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quiesce.model.findings import Finding, Quotation
from quiesce.simulator.judge.quoting import FILE_BYTES_MAX, quote_file, quote_text, with_allocation_quoted

SOURCE = "def keep():\n    KEPT.append(1)\n\n    return KEPT\n"


def quoted(allocated_by: str) -> tuple[Quotation, ...]:
    return with_allocation_quoted(Finding("rule", "it lives", "it died", allocated_by=allocated_by)).quoted


def test_the_line_and_its_neighbours_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    assert quoted("a.py:2: KEPT.append(1)") == (Quotation("a.py", 2, 1, ("def keep():", "    KEPT.append(1)", "")),)
    assert quoted("a.py:4: return KEPT") == (Quotation("a.py", 4, 3, ("", "return KEPT")),)


@pytest.mark.parametrize(
    "allocated_by",
    ["a.py:2: KEPT.append(2)", "a.py:9: KEPT.append(1)", "b.py:2: KEPT.append(1)", "a.py:2", "C"],
)
def test_what_is_not_what_was_run_is_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allocated_by: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    assert quoted(allocated_by) == ()


def test_what_is_no_file_of_text_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "long").write_bytes(b"a\n" * FILE_BYTES_MAX)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\n\xff\n")
    for name in ("pipe", "folder", "long", "binary", "none", "\0"):
        assert quote_file(f"{tmp_path}/{name}", 1) is None, name
    assert quote_file("/dev/zero", 1) is None


def test_long_lines_and_empty_places_are_bounded() -> None:
    quotation = quote_text("a.cu", 1, "x" * 500)
    assert quotation is not None
    assert quotation.lines == ("x" * 160 + "…",)
    assert quote_text("a.cu", 0, SOURCE) is None
    assert quote_text("a.cu", 1, "") is None
    assert quote_text("a.cu", 2, "\n\n\n") == Quotation("a.cu", 2, 1, ("", "", ""))
