from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.record import result_from_record, result_record
from quiesce.reporting.terminal import render_summary
from quiesce.reporting.text import COLOURED

GOLDEN = """\
cases/pool/squeeze_before_oom.case:14: operation 3 on 'reference': b = allocate 100663296
  rule:      request_fits_but_out_of_memory
  expected:  allocated: 134217728 of 134217728 bytes are free or cached
  observed:  out of memory
  allocated: operation 1 (line 11): a = allocate 67108864
  reproduce: quiesce run cases/pool/squeeze_before_oom.case --backend reference

cases/tape/diamond.case: broken case on 'reference': the fault 'tape.leaks' did not turn it red

backend    executed  passed  failed  broken  unsupported  not promised  known  inconclusive
host              0       0       0       0            1             1      0             0
opencl            2       0       0       0            0             0      1             1
reference         3       1       1       1            0             0      0             0
1 of 5 cases failed on reference; 1 of 5 cases is broken; 1 failure known upstream on opencl; 1 inconclusive on opencl
1 test checked for leaks: 1 leaks as expected
"""


def test_summary_reads_as_the_golden_text(report: Report) -> None:
    assert render_summary(report.results) == GOLDEN


def test_summary_does_not_depend_on_order(report: Report) -> None:
    assert render_summary(reversed(report.results)) == render_summary(report.results)


def test_a_backend_on_which_nothing_ran_is_loud_where_it_was_named(report: Report) -> None:
    text = render_summary(report.results, named=["host", "opencl"])
    assert text.count("NOTHING WAS EXECUTED") == 1
    assert (
        "NOTHING WAS EXECUTED on 'host': 1 unsupported, 1 not promised. This is not a pass. Most common: no promise of "
        "reclaims-before-oom (1 case); it lacks tape (1 case).\n"
    ) in text


def test_a_backend_without_any_result_is_shown_as_empty(failing: Result) -> None:
    passed = replace(failing, verdict=Verdict.PASSED, findings=())
    text = render_summary([passed], backends=["reference", "host"], named=["host"])
    assert "NOTHING WAS EXECUTED on 'host': 0 unsupported, 0 not promised. This is not a pass." in text
    assert text.endswith("1 case passed on reference\n")
    assert "NOTHING" not in render_summary([passed], backends=["reference", "host"])


@pytest.mark.parametrize("verdict", [Verdict.UNSUPPORTED, Verdict.NOT_PROMISED])
def test_nothing_executed_is_never_green(verdict: Verdict, failing: Result) -> None:
    text = render_summary([replace(failing, verdict=verdict, findings=())], palette=COLOURED)
    assert text.endswith("\x1b[1m\x1b[31mnothing was executed: no verdict\x1b[0m\n")
    assert COLOURED.good not in text


def test_what_leaves_the_run_without_a_verdict_is_shown_and_never_green(unresolved: Result) -> None:
    text = render_summary([unresolved], palette=COLOURED)
    assert "./client.case: inconclusive on 'cuda:12': nothing was tested" in text
    assert text.endswith("\x1b[1m\x1b[31m1 result from 1 backend: 1 inconclusive\x1b[0m\n")
    assert COLOURED.good not in text
    harmless = render_summary([replace(unresolved, must_conclude=False)])
    assert "nothing was tested" not in harmless
    assert harmless.endswith("1 inconclusive on cuda:12\n")


def test_a_table_of_programs_has_no_columns_that_only_cases_fill(unresolved: Result, failing: Result) -> None:
    header = render_summary([unresolved]).splitlines()[2]
    assert header.split() == ["backend", "executed", "passed", "failed", "inconclusive"]
    known = replace(unresolved, case="other", verdict=Verdict.KNOWN_UPSTREAM)
    assert "failed  known  inconclusive" in render_summary([unresolved, known])
    assert "not promised" in render_summary([unresolved, failing])
    assert "not promised" in render_summary([], backends=["host"])


def test_what_a_pass_does_not_cover_stands_below_the_last_line(unresolved: Result) -> None:
    kernels = "2 kernels were launched; what they read and wrote was not checked"
    passed = replace(unresolved, verdict=Verdict.PASSED, reason="", must_conclude=False, not_checked=(kernels,))
    text = render_summary([passed, replace(passed, case="another process")])
    assert text.endswith(f"\nbut {kernels}\n")
    assert text.count("kernels") == 1
    assert result_from_record(result_record(passed)) == passed
    assert "but" not in render_summary([replace(passed, verdict=Verdict.FAILED)])


def test_a_clean_run_is_green(failing: Result) -> None:
    text = render_summary([replace(failing, verdict=Verdict.PASSED, findings=())], palette=COLOURED)
    assert COLOURED.good in text
    assert COLOURED.bad not in text


def test_hostile_names_cannot_reach_the_terminal(failing: Result) -> None:
    hostile = replace(failing, backend="\x1b[2Jhost\n", case="\x07c", path="\x1bcp", reproduce="\x9b")
    text = render_summary([hostile])
    assert not set(text) & {"\x1b", "\x07", "\x9b"}
