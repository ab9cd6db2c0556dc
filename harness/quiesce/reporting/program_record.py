"""What a process of a program did, as JSON values, and back: its memory, its failed calls, who held the memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from quiesce.model.program_run import (
    Conditions,
    Event,
    FailedCall,
    FailedCalls,
    Holder,
    Holding,
    Holdings,
    MemoryHistory,
    MemorySeries,
    ObservedCall,
    OutOfMemory,
    ProgramRun,
    Surroundings,
)
from quiesce.reporting.finding_record import call_site_from, call_site_record
from quiesce.reporting.json_values import (
    RecordError,
    encodable,
    flag_of,
    items_of,
    mapping_of,
    number_of,
    number_or_none_of,
    numbers_of,
    text_of,
)


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


def out_of_memory_record(told: OutOfMemory) -> dict[str, Any]:
    """Return who held what as JSON values."""
    return {
        "cached_bytes": told.cached_bytes,
        "capacity_bytes": told.capacity_bytes,
        "device": told.device,
        "fragmented_bytes": told.fragmented_bytes,
        "free_bytes": told.free_bytes,
        "holders": [_holder_record(holder) for holder in told.holders],
        "holders_count": told.holders_count,
        "is_first": told.is_first,
        "is_injected": told.is_injected,
        "live_bytes": told.live_bytes,
        "live_count": told.live_count,
        "requested_bytes": told.requested_bytes,
        "site": call_site_record(told.site),
        "thing": encodable(told.thing),
    }


def _holder_record(holder: Holder) -> dict[str, Any]:
    return {
        "count": holder.count,
        "site": call_site_record(holder.site),
        "size_bytes": holder.size_bytes,
        "thing": encodable(holder.thing),
    }


def out_of_memory_from(record: object) -> OutOfMemory:
    """Return who held what. Raises :class:`quiesce.reporting.json_values.RecordError` for any other shape."""
    fields = mapping_of(record, "the value of 'out_of_memory'")
    return OutOfMemory(
        thing=text_of(fields, "thing"),
        device=number_of(fields, "device"),
        requested_bytes=number_of(fields, "requested_bytes"),
        is_injected=flag_of(fields, "is_injected"),
        is_first=flag_of(fields, "is_first"),
        capacity_bytes=number_of(fields, "capacity_bytes"),
        live_bytes=number_of(fields, "live_bytes"),
        live_count=number_of(fields, "live_count"),
        cached_bytes=number_of(fields, "cached_bytes"),
        fragmented_bytes=number_of(fields, "fragmented_bytes"),
        free_bytes=number_of(fields, "free_bytes"),
        site=call_site_from(fields.get("site")),
        holders=tuple(_holder_from(item) for item in items_of(fields, "holders")),
        holders_count=number_of(fields, "holders_count"),
    )


def _holder_from(record: object) -> Holder:
    fields = mapping_of(record, "a holder")
    return Holder(
        text_of(fields, "thing"),
        number_of(fields, "count"),
        number_of(fields, "size_bytes"),
        call_site_from(fields.get("site")),
    )


Value = TypeVar("Value")


def program_record(program: ProgramRun) -> dict[str, Any]:
    """Return what a process did as JSON values."""
    record: dict[str, Any] = {
        "conditions": _conditions_record(program.conditions),
        "findings_left_out": [{"count": count, "rule": encodable(rule)} for rule, count in program.findings_left_out],
        "first_call": program.first_call,
        "holdings": _holdings_record(program.holdings),
        "launches": program.launches,
        "memory": _memory_record(program.memory),
        "notes": [encodable(note) for note in program.notes],
        "surroundings": [
            {"calls": [_observed_record(call) for call in each.calls], "finding": each.finding}
            for each in program.surroundings
        ],
    }
    if program.failed_calls.count:
        record["failed_calls"] = failed_calls_record(program.failed_calls)
    if program.out_of_memory is not None:
        record["out_of_memory"] = out_of_memory_record(program.out_of_memory)
    return record


def _conditions_record(conditions: Conditions) -> dict[str, Any]:
    return {
        "at_exit": conditions.at_exit,
        "capacity_bytes": conditions.capacity_bytes,
        "command": encodable(conditions.command),
        "devices": conditions.devices,
        "failures": [encodable(failure) for failure in conditions.failures],
        "flavour": conditions.flavour,
        "recycle": conditions.recycle,
        "schedule": conditions.schedule,
        "seed": conditions.seed,
    }


def _memory_record(memory: MemoryHistory) -> dict[str, Any]:
    return {
        "marks": [_event_record(event) for event in memory.marks],
        "marks_count": memory.marks_count,
        "moments": list(memory.moments),
        "peak_bytes": memory.peak_bytes,
        "peak_call": memory.peak_call,
        "refused": [_event_record(event) for event in memory.refused],
        "refused_count": memory.refused_count,
        "series": [
            {
                "allocations": each.allocations,
                "bytes": list(each.bytes),
                "device": each.device,
                "kind": encodable(each.kind),
                "peak_bytes": each.peak_bytes,
                "stream": each.stream,
            }
            for each in memory.series
        ],
    }


def _event_record(event: Event) -> dict[str, Any]:
    return {"number": event.number, "text": encodable(event.text)}


def _observed_record(call: ObservedCall) -> dict[str, Any]:
    return {
        "call": encodable(call.call),
        "number": call.number,
        "role": encodable(call.role),
        "text": encodable(call.text),
        "thread": call.thread,
    }


def _holdings_record(holdings: Holdings) -> dict[str, Any]:
    return {
        "at_exit": holdings.at_exit,
        "count": holdings.count,
        "kept": [
            {
                "count": each.count,
                "device": each.device,
                "site": call_site_record(each.site),
                "size_bytes": each.size_bytes,
                "state": encodable(each.state),
                "thing": encodable(each.thing),
            }
            for each in holdings.kept
        ],
        "size_bytes": holdings.size_bytes,
    }


def program_from(record: object) -> ProgramRun:
    """Return what :func:`program_record` wrote. Raises :class:`RecordError` for any other shape."""
    fields = mapping_of(record, "the value of 'program'")
    return ProgramRun(
        conditions=_conditions_from(fields.get("conditions")),
        first_call=number_of(fields, "first_call"),
        launches=number_of(fields, "launches"),
        findings_left_out=_each(fields, "findings_left_out", _left_out_from),
        notes=tuple(str(note) for note in items_of(fields, "notes")),
        memory=_memory_from(fields.get("memory")),
        surroundings=_each(fields, "surroundings", _surroundings_from),
        holdings=_holdings_from(fields.get("holdings")),
        out_of_memory=out_of_memory_from(fields["out_of_memory"]) if "out_of_memory" in fields else None,
        failed_calls=failed_calls_from(fields["failed_calls"]) if "failed_calls" in fields else FailedCalls(),
    )


def _left_out_from(fields: Mapping[str, Any]) -> tuple[str, int]:
    return text_of(fields, "rule"), number_of(fields, "count")


def _each(fields: Mapping[str, Any], key: str, make: Callable[[Mapping[str, Any]], Value]) -> tuple[Value, ...]:
    return tuple(make(mapping_of(item, f"an item of '{key}'")) for item in items_of(fields, key))


def _conditions_from(record: object) -> Conditions:
    fields = mapping_of(record, "the value of 'conditions'")
    return Conditions(
        command=text_of(fields, "command"),
        flavour=text_of(fields, "flavour"),
        schedule=text_of(fields, "schedule"),
        seed=number_of(fields, "seed"),
        recycle=text_of(fields, "recycle"),
        at_exit=text_of(fields, "at_exit"),
        devices=number_of(fields, "devices"),
        capacity_bytes=number_of(fields, "capacity_bytes"),
        failures=tuple(str(failure) for failure in items_of(fields, "failures")),
    )


def _memory_from(record: object) -> MemoryHistory:
    fields = mapping_of(record, "the value of 'memory'")
    moments, series = numbers_of(fields, "moments"), _each(fields, "series", _series_from)
    if any(len(each.bytes) != len(moments) for each in series):
        raise RecordError("'series' does not have the bytes of each of 'moments'")
    return MemoryHistory(
        moments=moments,
        series=series,
        peak_bytes=number_of(fields, "peak_bytes"),
        peak_call=number_of(fields, "peak_call"),
        refused=_each(fields, "refused", _event_from),
        refused_count=number_of(fields, "refused_count"),
        marks=_each(fields, "marks", _event_from),
        marks_count=number_of(fields, "marks_count"),
    )


def _series_from(fields: Mapping[str, Any]) -> MemorySeries:
    return MemorySeries(
        kind=text_of(fields, "kind"),
        device=number_or_none_of(fields, "device"),
        stream=number_or_none_of(fields, "stream"),
        bytes=numbers_of(fields, "bytes"),
        peak_bytes=number_of(fields, "peak_bytes"),
        allocations=number_of(fields, "allocations"),
    )


def _event_from(fields: Mapping[str, Any]) -> Event:
    return Event(number_of(fields, "number"), text_of(fields, "text"))


def _surroundings_from(fields: Mapping[str, Any]) -> Surroundings:
    return Surroundings(number_of(fields, "finding"), _each(fields, "calls", _observed_from))


def _observed_from(fields: Mapping[str, Any]) -> ObservedCall:
    return ObservedCall(
        number=number_of(fields, "number"),
        thread=number_of(fields, "thread"),
        call=text_of(fields, "call"),
        text=text_of(fields, "text"),
        role=text_of(fields, "role"),
    )


def _holdings_from(record: object) -> Holdings:
    fields = mapping_of(record, "the value of 'holdings'")
    return Holdings(
        kept=_each(fields, "kept", _holding_from),
        count=number_of(fields, "count"),
        size_bytes=number_of(fields, "size_bytes"),
        at_exit=flag_of(fields, "at_exit"),
    )


def _holding_from(fields: Mapping[str, Any]) -> Holding:
    return Holding(
        state=text_of(fields, "state"),
        thing=text_of(fields, "thing"),
        device=number_of(fields, "device"),
        count=number_of(fields, "count"),
        size_bytes=number_of(fields, "size_bytes"),
        site=call_site_from(fields.get("site")),
    )
