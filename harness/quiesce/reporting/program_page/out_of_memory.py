"""Who held the memory when a request first ran out of memory."""

from __future__ import annotations

from dataclasses import dataclass

from quiesce.amounts import bytes_in_words, counted
from quiesce.program_run import Holder, OutOfMemory
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.program_page.places import Site, make_site, short_place


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the capacity. ``kind`` decides its colour."""

    kind: str
    name: str
    size: str
    percent: float


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A place that held some of it; ``share`` is its part of the capacity, in percent."""

    what: str
    size: str
    share: float
    place: str
    site: Site


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """What was refused, what there was, and who held it."""

    sentence: str
    asked_by: Site
    parts: tuple[Part, ...]
    holders: tuple[HolderRow, ...]
    left_out: int


def make_exhaustion(refused: OutOfMemory) -> Exhaustion:
    """Return the words for a refusal."""
    total = max(1, refused.capacity_bytes)
    parts = (
        ("live", f"live in {counted(refused.live_count, 'block')}", refused.live_bytes),
        ("cached", "cached in pools of the runtime", refused.cached_bytes),
        ("fragmented", "taken by rounding", refused.fragmented_bytes),
        ("free", "free", refused.free_bytes),
    )
    return Exhaustion(
        sentence=_sentence(refused),
        asked_by=make_site(refused.site),
        parts=tuple(Part(kind, name, bytes_in_words(size), _percent(size, total)) for kind, name, size in parts),
        holders=tuple(_row(holder, total) for holder in refused.holders),
        left_out=refused.holders_count - len(refused.holders),
    )


def _sentence(refused: OutOfMemory) -> str:
    asked = (
        f"{shorten(refused.site.call)} asked for {bytes_in_words(refused.requested_bytes)} of {shorten(refused.thing)}"
    )
    where = f"{asked} on device {refused.device}, at call {refused.site.number:,}"
    if refused.is_injected:
        return f"{where}. --fail caused this refusal. The capacity is {bytes_in_words(refused.capacity_bytes)}."
    first = "the first refusal" if refused.is_first else "the first refusal that was kept"
    return f"{where}, and was refused ({first}). The capacity is {bytes_in_words(refused.capacity_bytes)}."


def _percent(size_bytes: int, total: int) -> float:
    return round(min(100.0, max(0.0, 100 * size_bytes / total)), 2)


def _row(holder: Holder, total: int) -> HolderRow:
    return HolderRow(
        what=f"{counted(holder.count, 'block')} of {shorten(holder.thing)}",
        size=bytes_in_words(holder.size_bytes),
        share=_percent(holder.size_bytes, total),
        place=short_place(holder.site),
        site=make_site(holder.site),
    )
