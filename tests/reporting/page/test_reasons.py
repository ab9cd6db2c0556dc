from __future__ import annotations

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.page.summary import Reason, reasons


def test_only_results_without_a_verdict_have_reasons(report: Report) -> None:
    assert [(each.backend, each.verdict) for each in reasons(report.results)] == [
        ("host", Verdict.NOT_PROMISED),
        ("host", Verdict.UNSUPPORTED),
        ("opencl", Verdict.INCONCLUSIVE),
    ]


def test_equal_reasons_are_one() -> None:
    results = [Result(case, "T", "", "host", Verdict.UNSUPPORTED, reason="lacks tape") for case in ("b", "a")]
    results.append(Result("c", "T", "", "host", Verdict.UNSUPPORTED))
    assert reasons(results) == (
        Reason("host", Verdict.UNSUPPORTED, "lacks tape", ("a", "b")),
        Reason("host", Verdict.UNSUPPORTED, "no reason was recorded", ("c",)),
    )
