"""The subject of one's own in ``test_upstream_releases.md``, with the driver of ``allocator.md``: short, and run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.model.results import Verdict
from quiesce.subjects.build import build
from quiesce.subjects.parser import read_manifest
from quiesce.subjects.row import rows_of, run_row

Write = Callable[..., Path]

ROOT = Path(__file__).resolve().parents[2]
LINES_MAX = 50


def _blocks(page: str, heading: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(heading)[2]
    return [str(block) for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)]


ALLOCATOR, DRIVER = _blocks("tutorials/allocator.md", "## A driver program in C++", "cpp")
(MANIFEST,) = _blocks("how-to/test_upstream_releases.md", "## Add a subject of your own", "toml")


def test_it_is_short() -> None:
    assert len(DRIVER.splitlines()) + len(MANIFEST.splitlines()) < LINES_MAX


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_it_runs(write_subject: Write) -> None:
    place = f'{ROOT.as_posix()}/fixtures/command/cpp", "-Wall", "-Wextra", "-Werror'
    manifest = MANIFEST.replace("path/to/fixtures/command/cpp", place)
    folder = write_subject(manifest, driver__cpp=DRIVER, my_alloc__h=ALLOCATOR)
    subject = read_manifest(folder / "subject.toml")
    (row,) = rows_of(subject, [], [], all_versions=False)
    result = run_row(row, build(subject, row.release), ["controls/zero*", "pool/double_free*"])
    assert {each.case: each.verdict for each in result.results} == {
        "controls/zero_size_and_one_byte": Verdict.PASSED,
        "pool/double_free_is_refused": Verdict.PASSED,
    }
