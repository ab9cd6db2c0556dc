"""Whose memory it is."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from quiesce.leaks.owners import Owners, frame_text

STDLIB = (str(Path(sysconfig.get_paths()["stdlib"]) / "json" / "decoder.py"), 10)
INSTALLED = (str(Path(sysconfig.get_paths()["purelib"]) / "library" / "cache.py"), 20)
RUNNER = (str(Path(sysconfig.get_paths()["purelib"]) / "_pytest" / "python.py"), 30)
TEST = ("/project/test_it.py", 40)
FROZEN = ("<frozen importlib._bootstrap>", 5)

OWNERS = Owners([str(Path(sysconfig.get_paths()["purelib"]) / "_pytest")])


def test_the_standard_library_only_does_what_it_is_asked() -> None:
    assert OWNERS.owner([STDLIB, TEST, RUNNER]) == TEST
    assert OWNERS.owner([FROZEN, STDLIB, TEST]) == TEST
    assert OWNERS.owner([STDLIB, RUNNER, TEST]) is None


@pytest.mark.parametrize("name", ["<string>", "<sqlalchemy generated __init__ of Row>", "<unknown>"])
def test_code_made_at_run_time_only_does_what_it_is_asked(name: str) -> None:
    generated = (name, 1)
    assert OWNERS.owner([generated, STDLIB, TEST, RUNNER]) == TEST
    assert OWNERS.owner([generated, INSTALLED, RUNNER]) == INSTALLED
    assert OWNERS.owner([generated, RUNNER, TEST]) is None
    assert OWNERS.owner([generated, generated]) == generated


@pytest.mark.parametrize("name", ["<doctest guide.txt[0]>", "<stdin>", "<console>", "<ipython-input-3-5f1b>"])
def test_code_that_is_written_without_a_file_is_tested(name: str) -> None:
    assert OWNERS.owner([(name, 1), STDLIB, RUNNER]) == (name, 1)


def test_what_runs_the_tests_keeps_for_itself() -> None:
    assert OWNERS.owner([RUNNER, TEST]) is None


def test_an_installed_library_is_named_by_its_caller_or_else_by_itself() -> None:
    assert OWNERS.owner([INSTALLED, STDLIB, TEST, RUNNER]) == TEST
    assert OWNERS.owner([STDLIB, INSTALLED, RUNNER]) == INSTALLED


def test_a_trace_that_ends_too_early_is_the_tested_codes() -> None:
    assert OWNERS.owner([STDLIB, STDLIB]) == STDLIB


def test_a_folder_owns_what_is_below_it_and_no_namesake() -> None:
    owners = Owners(["/project/tools"])
    assert not owners.is_tested("/project/tools/run.py")
    assert owners.is_tested("/project/tools_of_ours/run.py")


def test_a_frame_is_shown_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("first\n    second\n")
    assert frame_text((str(file), 2)) == f"{file}:2: second"
    assert frame_text((str(file), 9)) == f"{file}:9"
