"""Saving what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.cases.parser import parse_text
from quiesce.generation.saving import save

TEXT = "title: A block comes and goes\nkind: control\nneeds: memory\n\na = allocate 1MiB\nfree a\n"


def test_a_save_that_is_cut_short_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = parse_text(TEXT, "found/it.case")
    path = save(case, tmp_path)
    before = path.read_text(encoding="utf-8")

    def fail(self: Path, target: Path) -> Path:
        raise OSError("the machine stops")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="stops"):
        save(replace(case, title="Another title"), tmp_path)
    assert path.read_text(encoding="utf-8") == before
