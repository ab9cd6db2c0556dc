"""Who held the memory when a request was refused, as JSON values, and back."""

from __future__ import annotations

from typing import Any

from quiesce.program_run import Holder, OutOfMemory
from quiesce.reporting.finding_record import call_site_from, call_site_record
from quiesce.reporting.json_values import encodable, flag_of, items_of, mapping_of, number_of, text_of


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
