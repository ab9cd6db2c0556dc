"""Results as plain JSON values, and back. One shape serves the report and the journal: ``reports/schema``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from quiesce.findings import CallSite, Finding, Frame, Grade, RoundReadings
from quiesce.reporting.counts import BackendCounts, count_by_backend
from quiesce.reporting.ordering import ordered
from quiesce.results import Report, Result, Sample, Verdict

FORMAT: Final = "quiesce-report"
VERSION: Final = 1
"""The version of the shape; it rises when a reader of the old shape would misread the new one."""


TIMELINE_VERDICTS: Final = frozenset({Verdict.FAILED, Verdict.BROKEN_CASE, Verdict.KNOWN_UPSTREAM})
"""The verdicts whose timeline is kept: it is what makes a report large."""


class RecordError(ValueError):
    """A JSON value does not have the shape of a result; the text names the key."""


def result_record(result: Result) -> dict[str, Any]:
    """Return a result as JSON values, with its timeline where the verdict is one of :data:`TIMELINE_VERDICTS`."""
    record: dict[str, Any] = {
        "backend": _encodable(result.backend),
        "case": _encodable(result.case),
        "findings": [_finding_record(finding) for finding in result.findings],
        "operations": result.operations,
        "path": _encodable(result.path),
        "reason": _encodable(result.reason),
        "reproduce": _encodable(result.reproduce),
        "skipped": result.skipped,
        "title": _encodable(result.title),
        "upstream": [_encodable(text) for text in result.upstream],
        "verdict": str(result.verdict),
    }
    if result.attempt > 1:
        record["attempt"] = result.attempt
    if result.verdict in TIMELINE_VERDICTS and result.timeline:
        record["timeline"] = [_sample_record(sample) for sample in result.timeline]
    return record


def _encodable(text: str) -> str:
    r"""Write lone surrogates (undecodable output of a driver) as ``\udc80``: strict JSON readers refuse them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _finding_record(finding: Finding) -> dict[str, Any]:
    record: dict[str, Any] = {
        "allocated_by": _encodable(finding.allocated_by),
        "evidence": _encodable(finding.evidence),
        "expected": _encodable(finding.expected),
        "fault_class": _encodable(finding.fault_class),
        "grade": str(finding.grade),
        "invariant": _encodable(finding.invariant),
        "line": finding.line,
        "observed": _encodable(finding.observed),
        "operation_index": finding.operation_index,
        "request": _encodable(finding.request),
    }
    if finding.readings is not None:
        record["readings"] = _readings_record(finding.readings)
    if finding.call_sites:
        record["call_sites"] = [_call_site_record(site) for site in finding.call_sites]
    return record


def _call_site_record(site: CallSite) -> dict[str, Any]:
    return {
        "call": _encodable(site.call),
        "frames": [_frame_record(frame) for frame in site.frames],
        "observation": site.observation,
        "role": _encodable(site.role),
    }


def _frame_record(frame: Frame) -> dict[str, Any]:
    return {
        "file": _encodable(frame.file),
        "folded": _encodable(frame.folded),
        "function": _encodable(frame.function),
        "line": frame.line,
        "module": _encodable(frame.module),
        "offset": frame.offset,
    }


def _readings_record(readings: RoundReadings) -> dict[str, Any]:
    return {
        "first_round": readings.first_round,
        "gauge": _encodable(readings.gauge),
        "grown": list(readings.grown),
        "measured_from": readings.measured_from,
        "per_round": readings.per_round,
        "unit": _encodable(readings.unit),
    }


def _sample_record(sample: Sample) -> dict[str, Any]:
    return {
        "line": sample.line,
        "live_bytes": sample.live_bytes,
        "operation_index": sample.operation_index,
        "outcome": _encodable(sample.outcome),
        "pinned_bytes": sample.pinned_bytes,
        "request": _encodable(sample.request),
        "reserved_bytes": sample.reserved_bytes,
    }


def counts_record(counts: BackendCounts) -> dict[str, Any]:
    """Return one backend's counts as JSON values; verdicts of two words are joined by ``_``."""
    by_verdict = {verdict.replace(" ", "_"): count for verdict, count in counts.by_verdict.items()}
    return {"backend": _encodable(counts.backend), "executed": counts.executed, "total": counts.total, **by_verdict}


def report_record(report: Report) -> dict[str, Any]:
    """Return a report as JSON values: results ordered by backend and case, whatever order they came in."""
    return {
        "backends": [counts_record(counts) for counts in count_by_backend(report.results)],
        "format": FORMAT,
        "results": [result_record(result) for result in ordered(report.results)],
        "run": {_encodable(key): _encodable(value) for key, value in report.run.items()},
        "seed": report.seed,
        "version": VERSION,
    }


def result_from_record(record: object) -> Result:
    """Return the result that :func:`result_record` wrote. Raises :class:`RecordError` for any other shape."""
    fields = _mapping(record, "a result")
    try:
        return Result(
            case=_text(fields, "case"),
            title=_text(fields, "title"),
            path=_text(fields, "path"),
            backend=_text(fields, "backend"),
            verdict=Verdict(_text(fields, "verdict")),
            reason=_text(fields, "reason"),
            findings=tuple(_finding_from(item) for item in _items(fields, "findings")),
            operations=_number(fields, "operations"),
            skipped=_number(fields, "skipped"),
            upstream=tuple(str(item) for item in _items(fields, "upstream")),
            reproduce=_text(fields, "reproduce"),
            attempt=_number(fields, "attempt") if "attempt" in fields else 1,
            timeline=tuple(_sample_from(item) for item in _items(fields, "timeline")) if "timeline" in fields else (),
        )
    except ValueError as error:
        raise RecordError(str(error)) from None


def _finding_from(record: object) -> Finding:
    fields = _mapping(record, "a finding")
    return Finding(
        invariant=_text(fields, "invariant"),
        expected=_text(fields, "expected"),
        observed=_text(fields, "observed"),
        operation_index=_number_or_none(fields, "operation_index"),
        line=_number_or_none(fields, "line"),
        request=_text(fields, "request"),
        allocated_by=_text(fields, "allocated_by"),
        fault_class=_text(fields, "fault_class"),
        grade=Grade(_text(fields, "grade")),
        evidence=_text(fields, "evidence"),
        readings=_readings_from(fields["readings"]) if "readings" in fields else None,
        call_sites=tuple(_call_site_from(item) for item in _items(fields, "call_sites"))
        if "call_sites" in fields
        else (),
    )


def _call_site_from(record: object) -> CallSite:
    fields = _mapping(record, "a call site")
    frames = tuple(_frame_from(item) for item in _items(fields, "frames"))
    return CallSite(_text(fields, "role"), _text(fields, "call"), _number(fields, "observation"), frames)


def _frame_from(record: object) -> Frame:
    fields = _mapping(record, "a frame")
    return Frame(
        function=_text(fields, "function"),
        file=_text(fields, "file"),
        line=_number(fields, "line"),
        module=_text(fields, "module"),
        offset=_number(fields, "offset"),
        folded=_text(fields, "folded"),
    )


def _readings_from(record: object) -> RoundReadings:
    fields = _mapping(record, "the value of 'readings'")
    grown = _items(fields, "grown")
    if not grown or not all(isinstance(item, int) and not isinstance(item, bool) for item in grown):
        raise RecordError("'grown' is not a list of integers with a first one")
    return RoundReadings(
        gauge=_text(fields, "gauge"),
        unit=_text(fields, "unit"),
        first_round=_number(fields, "first_round"),
        grown=tuple(grown),
        measured_from=_number(fields, "measured_from"),
        per_round=_rate(fields, "per_round"),
    )


def _sample_from(record: object) -> Sample:
    fields = _mapping(record, "a sample")
    return Sample(
        operation_index=_number(fields, "operation_index"),
        request=_text(fields, "request"),
        outcome=_text(fields, "outcome"),
        line=_number_or_none(fields, "line"),
        live_bytes=_number_or_none(fields, "live_bytes"),
        reserved_bytes=_number_or_none(fields, "reserved_bytes"),
        pinned_bytes=_number_or_none(fields, "pinned_bytes"),
    )


def _mapping(value: object, meaning: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(f"{meaning} is a JSON object, not {type(value).__name__}")
    return value


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise RecordError(f"'{key}' is not a string")
    return value


def _number(fields: Mapping[str, Any], key: str) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError(f"'{key}' is not an integer")
    return value


def _rate(fields: Mapping[str, Any], key: str) -> float:
    value = fields.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise RecordError(f"'{key}' is not a finite number")
    return value


def _number_or_none(fields: Mapping[str, Any], key: str) -> int | None:
    return None if fields.get(key) is None else _number(fields, key)


def _items(fields: Mapping[str, Any], key: str) -> list[Any]:
    value = fields.get(key)
    if not isinstance(value, list):
        raise RecordError(f"'{key}' is not a list")
    return value
