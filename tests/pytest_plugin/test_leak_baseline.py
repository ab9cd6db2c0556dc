"""Known leaks in a run: written on request only, used, expired, and not needed any more."""

from __future__ import annotations

import json
from datetime import date
from typing import Final

import pytest

from quiesce.pytest_plugin import leak_baseline

from .conftest import Project
from .test_options import error_of

SUITE: Final = """
KEPT = []
def test_keeps(leak_check):
    leak_check.gauge("cache", lambda: 3000 * len(KEPT))
    KEPT.append(1)
def test_clean(): pass
"""
PATIENT: Final = "--quiesce-leak-seconds=120"
"""So that a busy machine changes no verdict."""
TOO: Final = """
def test_too(leak_check):
    leak_check.gauge("rows", lambda: len(KEPT), unit="rows")
    KEPT.append(1)
"""
CHECKED: Final = ("test_it.py", "--quiesce-leak", "--quiesce-leak-rounds=12", "--quiesce-leak-gauges=threads", PATIENT)
OPTIONS: Final = (*CHECKED, "--quiesce-leak-baseline=known.toml")
WRITE: Final = "--quiesce-leak-write-baseline"


def entry(name: str = "test_keeps", **values: object) -> str:
    given = {"test": f"test_it.py::{name}", "gauge": "cache", "up_to": "4 KiB", "reason": "issue 7", **values}
    lines = [f"{key} = {value if isinstance(value, date) else json.dumps(value)}" for key, value in given.items()]
    return "\n".join(["[[leak]]", *lines, ""])


@pytest.mark.long
def test_leaks_are_written_on_request_and_known_from_then_on(project: Project) -> None:
    project.write("test_it.py", SUITE)
    written = project.run(*OPTIONS, WRITE)
    written.assert_outcomes(passed=2)
    written.stdout.fnmatch_lines(["*known.toml: 1 known leak written; give each its reason before you commit it"])
    text = (project.path / "known.toml").read_text(encoding="utf-8")
    assert 'test = "test_it.py::test_keeps"\ngauge = "cache"\nup_to = "3750 B' in text
    again = project.run(*OPTIONS, "--quiesce-report=out")
    again.assert_outcomes(passed=2)
    again.stdout.fnmatch_lines(["2 tests checked for leaks: 1 clean, 1 leaks as expected; * s"])
    again.stdout.fnmatch_lines(["known.toml: test_it.py::test_keeps (cache, python *) has no reason yet"])
    assert (project.path / "known.toml").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--quiesce-strict",), 1)])
@pytest.mark.parametrize("reason", ["TODO", "todo: ", "recorded; say why it is accepted"])
def test_the_reason_of_each_entry_is_asked_for(
    project: Project, reason: str, arguments: tuple[str, ...], code: int
) -> None:
    project.write("test_it.py", "def test_it(): pass\n")
    entries = [entry("test_a").replace("test_it", "other"), entry("test_b", reason=reason).replace("test_it", "other")]
    project.write("known.toml", "\n".join(entries))
    result = project.run("test_it.py", "--quiesce-leak-baseline=known.toml", *arguments)
    assert result.ret == code
    told = "write why the leak is accepted in its reason"
    result.stdout.fnmatch_lines(
        [
            "*known.toml: other.py::test_b (cache) has no reason yet",
            f"the run fails: --quiesce-strict, and {told}" if arguments else told,
        ],
        consecutive=True,
    )
    assert "test_a" not in str(result.stdout)


def test_what_is_wrong_with_an_entry_is_said_with_its_line(project: Project) -> None:
    project.write("test_it.py", "def test_it(): pass\n")
    project.write("known.toml", f"# known\n\n{entry()}\n{entry('test_b', up_to='2 MB')}")
    line = error_of(project.run("test_it.py", "--quiesce-leak-baseline=known.toml"))
    assert line.endswith("known.toml: line 9, entry 2 (test_it.py::test_b): up_to is '2 MB'; write 2 MiB")


@pytest.mark.long
def test_a_leak_beyond_what_is_known_fails_and_writes_nothing(project: Project) -> None:
    project.write("test_it.py", SUITE)
    path = project.write("known.toml", entry(up_to="1 KiB"))
    result = project.run(*OPTIONS)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["    this leak is known up to 1,024 bytes (1 KiB) per round: issue 7; it has grown beyond that"]
    )
    assert path.read_text(encoding="utf-8") == entry(up_to="1 KiB")
    project.run(*OPTIONS, WRITE).assert_outcomes(passed=2)
    raised = path.read_text(encoding="utf-8")
    assert raised.count("[[leak]]") == raised.count('reason = "issue 7"') == raised.count('up_to = "3') == 1


@pytest.mark.long
@pytest.mark.parametrize(("day", "failed"), [(date(2027, 1, 31), 0), (date(2027, 2, 1), 1)])
def test_an_entry_expires_after_its_day(
    project: Project, monkeypatch: pytest.MonkeyPatch, day: date, failed: int
) -> None:
    monkeypatch.setattr(leak_baseline, "today", lambda: day)
    project.write("test_it.py", SUITE)
    project.write("known.toml", entry(expires=date(2027, 1, 31)))
    result = project.run(*OPTIONS)
    result.assert_outcomes(passed=2 - failed, failed=failed)
    if failed:
        says = "    this leak was known until 2027-01-31, which is over: issue 7; fix the leak, or give the entry a *"
        result.stdout.fnmatch_lines([says])


def test_entries_that_are_not_needed_fail_the_run(project: Project) -> None:
    project.write("test_it.py", "def test_clean(): pass\n")
    path = project.write("known.toml", entry("test_clean") + entry("test_gone") + entry("other", test="other.py::test"))
    result = project.run(*OPTIONS)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*known.toml: test_it.py::test_clean (cache) is not needed: the test no longer leaks so",
            "*known.toml: test_it.py::test_gone (cache) is not needed: there is no such test",
            f"the run fails: remove these entries, or write the file with {WRITE}",
        ]
    )
    result.stdout.no_fnmatch_line("*other.py::test*")
    assert project.run(*OPTIONS, WRITE).ret == 0
    assert path.read_text(encoding="utf-8").count("[[leak]]") == 1, "that of a file which was not run"


@pytest.mark.parametrize("chosen", [("-k", "clean"), ("--deselect", "test_it.py::test_keeps")])
def test_what_was_not_run_may_be_needed(project: Project, chosen: tuple[str, ...]) -> None:
    project.write("test_it.py", SUITE)
    project.write("known.toml", entry())
    assert project.run(*OPTIONS, *chosen).ret == 0


@pytest.mark.long
def test_the_entries_of_workers_meet_in_one_file(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write("test_it.py", SUITE + TOO)
    project.write("known.toml", entry(up_to="1 GiB") + entry("test_clean"))
    written = project.run_apart(*OPTIONS, WRITE, "-n", "2")
    written.assert_outcomes(passed=3)
    text = (project.path / "known.toml").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith(("test", 'up_to = "1 GiB'))] == [
        'test = "test_it.py::test_keeps"',
        'up_to = "1 GiB"',
        'test = "test_it.py::test_too"',
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            (WRITE,),
            "ERROR: --quiesce-leak-write-baseline: which file? Write --quiesce-leak-baseline=known_leaks.toml *",
        ),
        (("--quiesce-leak-baseline=",), "ERROR: --quiesce-leak-baseline names no file; write one, such as known_*"),
        (("--quiesce-leak-baseline=no",), "ERROR: --quiesce-leak-baseline: there is no file '*no'; --quiesce-leak-w*"),
        (("-o", "quiesce_leak_baseline=test_it.py"), "ERROR: ini key quiesce_leak_baseline: *test_it.py: it is not *"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(project: Project, arguments: tuple[str, ...], line: str) -> None:
    project.write("test_it.py", SUITE)
    pytest.LineMatcher([error_of(project.run("test_it.py", *arguments))]).fnmatch_lines([line])
