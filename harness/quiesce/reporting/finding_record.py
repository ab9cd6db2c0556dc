"""Findings as JSON values, and back."""

from __future__ import annotations

from typing import Any

from quiesce.model.findings import CallSite, Finding, Frame, Grade, Quotation, RoundReadings
from quiesce.reporting.json_values import (
    RecordError,
    encodable,
    items_of,
    mapping_of,
    number_of,
    number_or_none_of,
    numbers_of,
    rate_of,
    text_of,
)


def finding_record(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON values."""
    record: dict[str, Any] = {
        "allocated_by": encodable(finding.allocated_by),
        "evidence": encodable(finding.evidence),
        "expected": encodable(finding.expected),
        "grade": str(finding.grade),
        "kind": encodable(finding.kind),
        "line": finding.line,
        "observed": encodable(finding.observed),
        "operation_index": finding.operation_index,
        "request": encodable(finding.request),
        "rule": encodable(finding.rule),
    }
    if finding.readings is not None:
        record["readings"] = _readings_record(finding.readings)
    if finding.call_sites:
        record["call_sites"] = [call_site_record(site) for site in finding.call_sites]
    if finding.seen > 1:
        record["seen"] = finding.seen
    if finding.tests:
        record["tests"] = [encodable(test) for test in finding.tests]
    if finding.kept:
        record["kept"] = encodable(finding.kept)
    if finding.quoted:
        record["quoted"] = [_quotation_record(each) for each in finding.quoted]
    return record


def _quotation_record(quotation: Quotation) -> dict[str, Any]:
    return {
        "file": encodable(quotation.file),
        "first": quotation.first,
        "line": quotation.line,
        "lines": [encodable(line) for line in quotation.lines],
    }


def call_site_record(site: CallSite) -> dict[str, Any]:
    """Return a call site as JSON values."""
    return {
        "call": encodable(site.call),
        "frames": [_frame_record(frame) for frame in site.frames],
        "number": site.number,
        "role": encodable(site.role),
    }


def _frame_record(frame: Frame) -> dict[str, Any]:
    return {
        "file": encodable(frame.file),
        "folded": encodable(frame.folded),
        "function": encodable(frame.function),
        "line": frame.line,
        "module": encodable(frame.module),
        "offset": frame.offset,
    }


def _readings_record(readings: RoundReadings) -> dict[str, Any]:
    return {
        "first_round": readings.first_round,
        "gauge": encodable(readings.gauge),
        "grown": list(readings.grown),
        "measured_from": readings.measured_from,
        "per_round": readings.per_round,
        "unit": encodable(readings.unit),
    }


def finding_from(record: object) -> Finding:
    """Return the finding that :func:`finding_record` wrote. Raises :class:`RecordError` for any other shape."""
    fields = mapping_of(record, "a finding")
    return Finding(
        rule=text_of(fields, "rule"),
        expected=text_of(fields, "expected"),
        observed=text_of(fields, "observed"),
        operation_index=number_or_none_of(fields, "operation_index"),
        line=number_or_none_of(fields, "line"),
        request=text_of(fields, "request"),
        allocated_by=text_of(fields, "allocated_by"),
        kind=text_of(fields, "kind"),
        grade=Grade(text_of(fields, "grade")),
        evidence=text_of(fields, "evidence"),
        readings=_readings_from(fields["readings"]) if "readings" in fields else None,
        call_sites=tuple(call_site_from(item) for item in items_of(fields, "call_sites"))
        if "call_sites" in fields
        else (),
        seen=number_of(fields, "seen") if "seen" in fields else 1,
        tests=tuple(map(str, items_of(fields, "tests"))) if "tests" in fields else (),
        kept=text_of(fields, "kept") if "kept" in fields else "",
        quoted=tuple(map(_quotation_from, items_of(fields, "quoted"))) if "quoted" in fields else (),
    )


def _quotation_from(record: object) -> Quotation:
    fields = mapping_of(record, "a quotation")
    lines = tuple(map(str, items_of(fields, "lines")))
    if not lines:
        raise RecordError("'lines' of a quotation is empty")
    return Quotation(text_of(fields, "file"), number_of(fields, "line"), number_of(fields, "first"), lines)


def call_site_from(record: object) -> CallSite:
    """Return the call site that :func:`call_site_record` wrote. Raises :class:`RecordError` for any other shape."""
    fields = mapping_of(record, "a call site")
    frames = tuple(_frame_from(item) for item in items_of(fields, "frames"))
    return CallSite(text_of(fields, "role"), text_of(fields, "call"), number_of(fields, "number"), frames)


def _frame_from(record: object) -> Frame:
    fields = mapping_of(record, "a frame")
    return Frame(
        function=text_of(fields, "function"),
        file=text_of(fields, "file"),
        line=number_of(fields, "line"),
        module=text_of(fields, "module"),
        offset=number_of(fields, "offset"),
        folded=text_of(fields, "folded"),
    )


def _readings_from(record: object) -> RoundReadings:
    fields = mapping_of(record, "the value of 'readings'")
    grown = numbers_of(fields, "grown")
    if not grown:
        raise RecordError("'grown' is not a list of integers with a first one")
    return RoundReadings(
        gauge=text_of(fields, "gauge"),
        unit=text_of(fields, "unit"),
        first_round=number_of(fields, "first_round"),
        grown=grown,
        measured_from=number_of(fields, "measured_from"),
        per_round=rate_of(fields, "per_round"),
    )
