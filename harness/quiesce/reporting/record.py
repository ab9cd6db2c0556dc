"""Results as plain JSON values, and back. One shape serves the report and the journal: ``reports/schema``.

The JSON report is one file, deterministic: equal results give equal bytes, apart from the ``run`` object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from quiesce.files import write_atomically
from quiesce.model.results import Report, Result, Sample, Verdict
from quiesce.reporting.finding_record import finding_from, finding_record
from quiesce.reporting.json_values import (
    RecordError,
    encodable,
    items_of,
    mapping_of,
    number_of,
    number_or_none_of,
    text_of,
)
from quiesce.reporting.program_record import program_from, program_record
from quiesce.reporting.result_lists import BackendCounts, count_by_backend, ordered

FORMAT: Final = "quiesce-report"
VERSION: Final = 1
"""The version of the shape; it rises when a reader of the old shape would misread the new one."""


TIMELINE_VERDICTS: Final = frozenset({Verdict.FAILED, Verdict.BROKEN_CASE, Verdict.KNOWN_UPSTREAM})
"""The verdicts whose timeline is kept: it is what makes a report large."""


def result_record(result: Result) -> dict[str, Any]:
    """Return a result as JSON values, with its timeline where the verdict is one of :data:`TIMELINE_VERDICTS`."""
    record: dict[str, Any] = {
        "backend": encodable(result.backend),
        "case": encodable(result.case),
        "findings": [finding_record(finding) for finding in result.findings],
        "operations": result.operations,
        "path": encodable(result.path),
        "reason": encodable(result.reason),
        "reproduce": encodable(result.reproduce),
        "skipped": result.skipped,
        "title": encodable(result.title),
        "upstream": [encodable(text) for text in result.upstream],
        "verdict": str(result.verdict),
    }
    if result.attempt > 1:
        record["attempt"] = result.attempt
    if result.must_conclude:
        record["must_conclude"] = True
    if result.caught:
        record["caught"] = encodable(result.caught)
    if result.rounds:
        record["rounds"] = result.rounds
    if result.not_checked:
        record["not_checked"] = [encodable(text) for text in result.not_checked]
    if result.verdict in TIMELINE_VERDICTS and result.timeline:
        record["timeline"] = [_sample_record(sample) for sample in result.timeline]
    if result.program is not None:
        record["program"] = program_record(result.program)
    return record


def _sample_record(sample: Sample) -> dict[str, Any]:
    return {
        "line": sample.line,
        "live_bytes": sample.live_bytes,
        "operation_index": sample.operation_index,
        "outcome": encodable(sample.outcome),
        "pinned_bytes": sample.pinned_bytes,
        "request": encodable(sample.request),
        "reserved_bytes": sample.reserved_bytes,
    }


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
    fields = mapping_of(record, "a result")
    try:
        return Result(
            case=text_of(fields, "case"),
            title=text_of(fields, "title"),
            path=text_of(fields, "path"),
            backend=text_of(fields, "backend"),
            verdict=Verdict(text_of(fields, "verdict")),
            reason=text_of(fields, "reason"),
            findings=tuple(finding_from(item) for item in items_of(fields, "findings")),
            operations=number_of(fields, "operations"),
            skipped=number_of(fields, "skipped"),
            upstream=tuple(str(item) for item in items_of(fields, "upstream")),
            reproduce=text_of(fields, "reproduce"),
            attempt=number_of(fields, "attempt") if "attempt" in fields else 1,
            must_conclude=fields.get("must_conclude") is True,
            caught=text_of(fields, "caught") if "caught" in fields else "",
            rounds=number_of(fields, "rounds") if "rounds" in fields else 0,
            not_checked=tuple(map(str, items_of(fields, "not_checked"))) if "not_checked" in fields else (),
            timeline=tuple(_sample_from(item) for item in items_of(fields, "timeline")) if "timeline" in fields else (),
            program=program_from(fields["program"]) if "program" in fields else None,
        )
    except ValueError as error:
        raise RecordError(str(error)) from None


def _sample_from(record: object) -> Sample:
    fields = mapping_of(record, "a sample")
    return Sample(
        operation_index=number_of(fields, "operation_index"),
        request=text_of(fields, "request"),
        outcome=text_of(fields, "outcome"),
        line=number_or_none_of(fields, "line"),
        live_bytes=number_or_none_of(fields, "live_bytes"),
        reserved_bytes=number_or_none_of(fields, "reserved_bytes"),
        pinned_bytes=number_or_none_of(fields, "pinned_bytes"),
    )


def render_json(report: Report) -> str:
    """Return the report as JSON text in ASCII, so that no terminal or code page can misread it."""
    return json.dumps(report_record(report), indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def write_json(report: Report, path: Path) -> None:
    """Write the report to ``path`` atomically. Raises :class:`OSError`."""
    write_atomically(path, render_json(report))
