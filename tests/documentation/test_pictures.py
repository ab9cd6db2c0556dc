"""The picture of the report is current: a run of the tutorial's program still gives the page that it shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from tests.documentation.pages import ROOT

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

COMMAND = "python docs/pictures/make.py"
BYTES_MAX = 150_000
"""README shows it to everyone who opens the project."""


def _maker() -> ModuleType:
    specification = importlib.util.spec_from_file_location("make_pictures", ROOT / "docs" / "pictures" / "make.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


MAKER = _maker()


def test_the_picture_shows_what_a_run_gives(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="it comes with the extra 'report'")
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    now = MAKER.with_picture(MAKER.described(MAKER.make_page(tmp_path), tmp_path))
    then = MAKER.RECORD.read_text(encoding="utf-8")
    if now != then:
        changed = [f"  now {line}" for line in now.splitlines() if line not in then.splitlines()]
        pytest.fail("\n".join((f"the picture of the report is not current: {COMMAND}", *changed)), pytrace=False)


def test_a_change_of_the_page_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text('<style>a</style><main><h1>1 race at 0x10</h1><section aria-labelledby="held">', encoding="utf-8")
    description = MAKER.described(page, tmp_path)
    for wrote, writes, is_seen in (("1 race", "2 races", True), (">a<", ">b<", True), ("0x10", "0x20", False)):
        changed = tmp_path / "changed.html"
        changed.write_text(page.read_text(encoding="utf-8").replace(wrote, writes), encoding="utf-8")
        assert (MAKER.described(changed, tmp_path) != description) is is_seen


def test_the_picture_is_small() -> None:
    assert MAKER.PICTURE.stat().st_size < BYTES_MAX
