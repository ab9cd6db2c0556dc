"""Options and ini keys: each works in both places, and each bad value is one clear line."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from .conftest import GOOD, Project


def error_of(result: pytest.RunResult) -> str:
    """Return the one line of a usage error, after which nothing ran."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "passed" not in result.stdout.str()
    (line,) = [line for line in result.errlines if line]
    return line


def ini(project: Project, *lines: str) -> None:
    project.write("tox.ini", "\n".join(["[pytest]", "testpaths = cases", *lines, ""]))


@pytest.mark.parametrize("from_ini", [True, False])
def test_backends_are_chosen(project: Project, from_ini: bool) -> None:
    if from_ini:
        ini(project, "quiesce_backends = host reference")
    arguments = [] if from_ini else ["--quiesce-backend=host", "--quiesce-backend=reference"]
    result = project.run("-v", *arguments)
    result.stdout.fnmatch_lines(["quiesce: 1 case on 2 backends, seed 0", "*::host PASSED*", "*::reference PASSED*"])
    result.stdout.no_fnmatch_line("quiesce: seed *")


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("-n1",)])
def test_without_a_case_the_header_says_which_options_hold(project: Project, workers: tuple[str, ...]) -> None:
    project.write("test_ordinary.py", "def test_backend(backend):\n    pass\n")
    result = project.run_apart(*workers, "--quiesce-backend=host", "--quiesce-seed=7", "test_ordinary.py")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["quiesce: seed 7, backends: host"])
    plain = project.run_apart(*workers, "test_ordinary.py", "-k", "host")
    plain.stdout.no_fnmatch_line("quiesce: seed *")


def test_the_backend_option_wins_over_the_ini_key(project: Project) -> None:
    ini(project, "quiesce_backends = no-such-thing")
    result = project.run("-v", "--quiesce-backend=host", "--quiesce-backend=host")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("from_ini", [True, False])
def test_the_seed_is_said_and_reported(project: Project, from_ini: bool) -> None:
    if from_ini:
        ini(project, "quiesce_seed = 77")
    arguments = [] if from_ini else ["--quiesce-seed=77"]
    result = project.run(*arguments, "--quiesce-backend=host", "--quiesce-report=out")
    result.stdout.fnmatch_lines(["quiesce: 1 case on 1 backend, seed 77", "*; seed 77"])
    assert json.loads((project.path / "out/report.json").read_text())["seed"] == 77


def test_the_seed_option_wins_over_the_ini_key(project: Project) -> None:
    ini(project, "quiesce_seed = 77")
    project.run("--quiesce-seed=0", "--quiesce-backend=host").stdout.fnmatch_lines(
        ["quiesce: 1 case on 1 backend, seed 0"]
    )


@pytest.mark.parametrize(("argument", "folder"), [("-q", "out"), ("--quiesce-report=here", "below/here")])
def test_a_report_folder_is_relative_to_where_it_is_written(
    project: Project, monkeypatch: pytest.MonkeyPatch, argument: str, folder: str
) -> None:
    ini(project, "quiesce_report = out", "quiesce_backends = host")
    monkeypatch.chdir(project.pytester.mkdir("below"))
    project.run("../cases", argument).assert_outcomes(passed=1)
    assert [path.parent for path in project.path.rglob("report.json")] == [project.path / folder]


def test_the_report_option_wins_over_the_ini_key(project: Project) -> None:
    ini(project, "quiesce_report = out", "quiesce_backends = host")
    project.run("--quiesce-report=other").assert_outcomes(passed=1)
    assert (project.path / "other/report.json").is_file()
    assert not (project.path / "out").exists()


def test_ini_keys_reach_the_workers(project: Project) -> None:
    result = project.run_apart("-n", "1", "-o", "quiesce_backends=host", "-o", "quiesce_seed=9", "-v")
    result.stdout.fnmatch_lines(["*PASSED cases/pool/good.case::host*", "*; seed 9"])
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        (
            "--quiesce-seed=-1",
            "ERROR: --quiesce-seed: '-1' is not a seed; write a whole number from 0 to 18446744073709551615",
        ),
        (
            "--quiesce-seed=18446744073709551616",
            "ERROR: --quiesce-seed: '18446744073709551616' is not a seed; "
            "write a whole number from 0 to 18446744073709551615",
        ),
        (
            "--override-ini=quiesce_seed=x",
            "ERROR: ini key quiesce_seed: 'x' is not a seed; write a whole number from 0 to 18446744073709551615",
        ),
        (
            "--quiesce-report=",
            "ERROR: --quiesce-report names no folder; write one, such as reports/out",
        ),
        (
            "--quiesce-report=tox.ini",
            "ERROR: --quiesce-report: no report can be written to '*tox.ini': it is a file; name another folder",
        ),
        (
            "--quiesce-report=tox.ini/below",
            "ERROR: --quiesce-report: no report can be written to '*below': *; name another folder",
        ),
        (
            f"--quiesce-report={300 * 'x'}",
            "ERROR: --quiesce-report: no report can be written to '*xxx': *; name another folder",
        ),
        (
            "--override-ini=quiesce_report=tox.ini",
            "ERROR: ini key quiesce_report: no report can be written to '*tox.ini': it is a file; name another folder",
        ),
        (
            "--override-ini=quiesce_corpus=perhaps",
            "ERROR: ini key 'quiesce_corpus' cannot be read: *perhaps*; write quiesce_corpus = true or false",
        ),
        (
            "--quiesce-backend=",
            "ERROR: --quiesce-backend names no backend, so nothing could run; "
            "write one, such as --quiesce-backend=reference",
        ),
        (
            "--override-ini=quiesce_backends=",
            "ERROR: ini key quiesce_backends names no backend, so nothing could run; "
            "write one, such as quiesce_backends = reference",
        ),
        (
            "--quiesce-backend=absent",
            "ERROR: --quiesce-backend: backend 'absent' cannot work here: there is no such device; buy one",
        ),
        (
            "--override-ini=quiesce_backends=host absent",
            "ERROR: ini key quiesce_backends: backend 'absent' cannot work here: there is no such device; buy one",
        ),
        (
            "--quiesce-backend=confused",
            "ERROR: --quiesce-backend: backend 'confused' cannot work here: it raised ValueError: a b; *",
        ),
        (
            "--quiesce-backend=hots",
            "ERROR: --quiesce-backend: unknown backend 'hots', perhaps 'host'; write one of *",
        ),
        (
            "--quiesce-backend=reference:pool.no_sqeeze",
            "ERROR: --quiesce-backend: unknown fault 'pool.no_sqeeze', perhaps 'pool.no_squeeze'; "
            "write one of those that 'quiesce prove' lists",
        ),
        (
            "--quiesce-backend=reference:",
            "ERROR: --quiesce-backend: 'reference:' names no argument; write reference:FAULT, such as *",
        ),
        (
            "--quiesce-backend=command:./no_such_driver",
            "ERROR: --quiesce-backend: backend 'command:./no_such_driver' cannot work here: * cannot be started *",
        ),
        (
            "--quiesce-seed=",
            "ERROR: --quiesce-seed: '' is not a seed; write a whole number from 0 to 18446744073709551615",
        ),
        (
            "--override-ini=quiesce_worker_devices=two",
            "ERROR: ini key quiesce_worker_devices: 'two' is not a choice; write one or all",
        ),
        (
            "--override-ini=quiesce_report=",
            "ERROR: ini key quiesce_report names no folder; write one, such as reports/out",
        ),
        (
            "--quiesce-leak-rounds=few",
            "ERROR: --quiesce-leak-rounds: rounds is 'few'; write a whole number *",
        ),
        (
            "--quiesce-leak-gauges=heaps",
            "ERROR: --quiesce-leak-gauges: there is no gauge 'heaps'; did you mean 'c-heap'? Write some of *",
        ),
    ],
)
def test_a_bad_value_is_one_clear_line_before_any_test(project: Project, argument: str, line: str) -> None:
    ini(project)
    pytest.LineMatcher([error_of(project.run(argument))]).fnmatch_lines([line.replace("[", "[[]")])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--quiesce-backend=absent"],
            "ERROR: --quiesce-backend: backend 'absent' cannot work here: there is no such device; buy one",
        ),
        (
            ["--quiesce-report=tox.ini/below", "--quiesce-backend=host"],
            "ERROR: --quiesce-report: no report can be written to '*below': *; name another folder",
        ),
        (["-o", "quiesce_worker_devices=two"], "ERROR: ini key quiesce_worker_devices: 'two' is not a choice; *"),
    ],
)
def test_a_bad_value_ends_a_distributed_run_before_any_test(project: Project, arguments: list[str], line: str) -> None:
    pytest.LineMatcher([error_of(project.run_apart("-n", "2", *arguments))]).fnmatch_lines([line])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_ends_the_run(project: Project) -> None:
    folder = project.pytester.mkdir("sealed")
    folder.chmod(0o500)
    line = error_of(project.run("--quiesce-report=sealed", "--quiesce-backend=host"))
    assert line.startswith("ERROR: --quiesce-report: no report can be written to ")


def test_a_report_below_a_folder_that_may_not_be_entered_ends_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Path.stat

    def refused(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.parent.name == "sealed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return really(path, follow_symlinks=follow_symlinks)

    def made(path: Path, *arguments: object, **keywords: object) -> None:
        refused(path)

    monkeypatch.setattr(Path, "stat", refused)
    monkeypatch.setattr(Path, "mkdir", made)
    line = error_of(project.run("--quiesce-report=sealed/out", "--quiesce-backend=host"))
    expected = "ERROR: --quiesce-report: no report can be written to '*out': Permission denied; name another folder"
    pytest.LineMatcher([line]).fnmatch_lines([expected])


def test_a_backend_that_is_asked_for_twice_runs_once(project: Project) -> None:
    ini(project, "quiesce_backends = host host")
    project.run().assert_outcomes(passed=1)


@pytest.mark.long
def test_a_run_of_leak_checks_leaves_no_backend_out(project: Project) -> None:
    project.write("test_it.py", "import pytest\n\n@pytest.mark.leak\ndef test_it(): pass\n")
    result = project.run("test_it.py", "--quiesce-report=out")
    result.assert_outcomes(passed=1)
    assert "absent" not in result.stdout.str()
    assert "Left out" not in (project.path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_backends_nobody_asked_for_that_cannot_work_are_named(project: Project, workers: str) -> None:
    project.write("cases/pool/more.case", GOOD)
    result = project.run_apart("-n", workers, "-k", "host or reference")
    result.stdout.fnmatch_lines(
        [
            "  cannot work here: absent*confused*(see quiesce doctor)",
        ]
    )
    result.assert_outcomes(passed=4, deselected=0 if workers == "2" else result.parseoutcomes()["deselected"])
