"""What rules that a program broke are called in a headline, and sizes and kinds of memory in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quiesce.kinds import Kind
from quiesce.oracle.rules.closing import GROWTH, HANDLES_GONE, NOTHING_LEFT
from quiesce.program_rules import (
    AFTER_UNCHANGED,
    COPIED_DIRECTLY,
    FREED_ONCE,
    INSIDE,
    LIVE_HANDLES,
    NOT_USED_FREED,
    ORDERED,
    OWN_FREED,
)
from quiesce.reporting.page.excerpt import shorten

_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    FREED_ONCE: (Kind.DOUBLE_FREE, "double frees"),
    OWN_FREED: (Kind.INVALID_FREE, "invalid frees"),
    NOT_USED_FREED: (Kind.USE_AFTER_FREE, "uses after free"),
    INSIDE: (Kind.OUT_OF_BOUNDS, "out-of-bounds uses"),
    AFTER_UNCHANGED: (Kind.OVERFLOW, "buffer overflows"),
    LIVE_HANDLES: (Kind.DEAD_HANDLE, "uses of destroyed handles"),
    COPIED_DIRECTLY: (Kind.NEEDLESS_COPY, "needless copies of pinned memory"),
    ORDERED: (Kind.RACE, "races"),
    NOTHING_LEFT: (Kind.MEMORY_LEAK, "memory leaks"),
    HANDLES_GONE: (Kind.HANDLE_LEAK, "handle leaks"),
    GROWTH: ("growth between marks", "growths between marks"),
    "a_repeated_test_leaves_nothing_behind": ("leaking test", "leaking tests"),
    "a_test_keeps_to_its_peak": ("test with too high a peak", "tests with too high a peak"),
    "waits_name_live_streams": (Kind.DEAD_STREAM, "waits for destroyed streams"),
}


def title_of(rule: str, count: int = 1) -> str:
    """Return what is said of a broken rule in a headline: ``race``; the rule's own name where it has no other."""
    one, many = _TITLES.get(rule, (shorten(rule), shorten(rule)))
    return one if count == 1 else many


def heading_of(rule: str) -> str:
    """Return :func:`title_of` with a capital letter, unless it is the rule's own name."""
    title = title_of(rule)
    return title if title == shorten(rule) else title[:1].upper() + title[1:]


def kind_of(kind: str, device: int | None, stream: int | None, *, devices: int) -> str:
    """Return ``device memory of device 1, stream 3``; the device is left out where there is only one."""
    name = {"pinned": "pinned host", "registered": "registered host"}.get(kind, shorten(kind))
    where = f" of device {device}" if device is not None and devices > 1 and "host" not in name else ""
    order = "" if stream is None else f", stream {stream}" if stream else ", default stream"
    return f"{name} memory{where}{order}"
