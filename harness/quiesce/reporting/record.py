"""Results as plain JSON values, and back. One shape serves the report and the journal: ``reports/schema``.

The JSON report is one file, deterministic: equal results give equal bytes, apart from the ``run`` object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from quiesce.files import write_atomically
from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.json_values import encodable, record_of, value_from
from quiesce.reporting.result_lists import BackendCounts, count_by_backend, ordered

FORMAT: Final = "quiesce-report"
VERSION: Final = 1
"""The version of the shape; it rises when a reader of the old shape would misread the new one."""


TIMELINE_VERDICTS: Final = frozenset({Verdict.FAILED, Verdict.BROKEN_CASE, Verdict.KNOWN_UPSTREAM})
"""The verdicts whose timeline is kept: it is what makes a report large."""


def result_record(result: Result) -> dict[str, Any]:
    """Return a result as JSON values, with its timeline where the verdict is one of :data:`TIMELINE_VERDICTS`."""
    return record_of(result if result.verdict in TIMELINE_VERDICTS else replace(result, timeline=()))


def counts_record(counts: BackendCounts) -> dict[str, Any]:
    """Return one backend's counts as JSON values; verdicts of two words are joined by ``_``."""
    by_verdict = {verdict.replace(" ", "_"): count for verdict, count in counts.by_verdict.items()}
    return {"backend": encodable(counts.backend), "executed": counts.executed, "total": counts.total, **by_verdict}


def run_values(run: Mapping[str, str]) -> dict[str, str]:
    """Return what a report says of its run as JSON values."""
    return {encodable(key): encodable(value) for key, value in run.items()}


def report_record(report: Report) -> dict[str, Any]:
    """Return a report as JSON values: results ordered by backend and case, whatever order they came in."""
    return {
        "backends": [counts_record(counts) for counts in count_by_backend(report.results)],
        "format": FORMAT,
        "results": [result_record(result) for result in ordered(report.results)],
        "run": run_values(report.run),
        "seed": report.seed,
        "version": VERSION,
    }


def result_from_record(record: object) -> Result:
    """Return the result that :func:`result_record` wrote. Raises :class:`RecordError` for any other shape."""
    return value_from(Result, record)


def render_json(report: Report) -> str:
    """Return the report as JSON text in ASCII, so that no terminal or code page can misread it."""
    return json.dumps(report_record(report), indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def write_json(report: Report, path: Path) -> None:
    """Write the report to ``path`` atomically. Raises :class:`OSError`."""
    write_atomically(path, render_json(report))
