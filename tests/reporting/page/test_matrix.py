from __future__ import annotations

from dataclasses import replace

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.page.matrix import SEVERITY, Cell, make_matrix

BASE = Result("pool/trim", "Trim trims", "pool/trim.case", "host", Verdict.PASSED, operations=3)


def test_cases_meet_backends(report: Report) -> None:
    matrix = make_matrix(report.results, {})
    assert matrix.backends == ("host", "leak-check", "opencl", "reference")
    assert matrix.topics == ("pool", "streams", "tape", "tests")
    squeeze = matrix.rows[0]
    assert (squeeze.topic, squeeze.name) == ("pool", "squeeze_before_oom")
    assert squeeze.upstream == ("NVIDIA/cccl#4222",)
    assert [cell and cell.verdict for cell in squeeze.cells] == [Verdict.NOT_PROMISED, None, None, Verdict.FAILED]


def test_a_cell_says_why() -> None:
    failed = replace(BASE, backend="b", verdict=Verdict.UNSUPPORTED, reason="lacks\npools")
    (row,) = make_matrix([BASE, failed], {0: "finding-1"}).rows
    assert row.cells == (
        Cell(Verdict.UNSUPPORTED, 1, "unsupported: lacks pools", ""),
        Cell(Verdict.PASSED, 1, "", "finding-1"),
    )


def test_the_worst_of_several_results_is_shown() -> None:
    worse = replace(BASE, verdict=Verdict.KNOWN_UPSTREAM, reason="vendor#7")
    (row,) = make_matrix([BASE, worse, BASE], {1: "finding-1"}).rows
    note = "known upstream (the worst of 3 results): vendor#7"
    assert row.cells == (Cell(Verdict.KNOWN_UPSTREAM, 3, note, "finding-1"),)


def test_cases_of_one_name_in_two_files_stay_apart() -> None:
    assert len(make_matrix([BASE, replace(BASE, path="elsewhere.case")], {}).rows) == 2


def test_a_long_command_is_told_by_its_end() -> None:
    command = "command:/a/long/way/to/some/interpreter driver.py --fast"
    matrix = make_matrix([replace(BASE, backend=command)], {})
    assert matrix.backends == (command,)
    assert matrix.headings == ("command:/a/lo…terpreter driver.py --fast",)


def test_every_verdict_has_its_severity() -> None:
    assert set(SEVERITY) == set(Verdict)
