"""The calls of a process that failed, as JSON values, and back."""

from __future__ import annotations

from typing import Any

from quiesce.program_run import FailedCall, FailedCalls
from quiesce.reporting.finding_record import call_site_from, call_site_record
from quiesce.reporting.json_values import encodable, flag_of, items_of, mapping_of, number_of, text_of


def failed_calls_record(calls: FailedCalls) -> dict[str, Any]:
    """Return the calls as JSON values."""
    return {"count": calls.count, "kept": [_record(each) for each in calls.kept]}


def _record(call: FailedCall) -> dict[str, Any]:
    return {
        "code": call.code,
        "count": call.count,
        "error": encodable(call.error),
        "is_injected": call.is_injected,
        "known": encodable(call.known),
        "site": call_site_record(call.site),
        "unnoticed": call.unnoticed,
    }


def failed_calls_from(record: object) -> FailedCalls:
    """Return the calls. Raises :class:`quiesce.reporting.json_values.RecordError` for any other shape."""
    fields = mapping_of(record, "the value of 'failed_calls'")
    return FailedCalls(tuple(_call_from(item) for item in items_of(fields, "kept")), number_of(fields, "count"))


def _call_from(record: object) -> FailedCall:
    fields = mapping_of(record, "a failed call")
    return FailedCall(
        call_site_from(fields.get("site")),
        number_of(fields, "code"),
        text_of(fields, "error"),
        number_of(fields, "count"),
        number_of(fields, "unnoticed"),
        flag_of(fields, "is_injected"),
        text_of(fields, "known"),
    )
