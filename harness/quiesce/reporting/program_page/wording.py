"""Frames, rules, sizes and kinds of memory in a page's words; plumbing in a call stack is counted in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from quiesce.allocators.oracle import GROWTH, HANDLES_GONE, NOTHING_LEFT
from quiesce.model.findings import CallSite, Frame
from quiesce.model.program_rules import (
    AFTER_UNCHANGED,
    COPIED_DIRECTLY,
    FREED_ONCE,
    INSIDE,
    LIVE_HANDLES,
    NOT_USED_FREED,
    ORDERED,
    OWN_FREED,
)
from quiesce.model.rules import Kind
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.text import shown_frames

FRAMES_SHOWN_MAX: Final = 40
"""Frames of one call that are shown, from the innermost one; report.json has all."""


@dataclass(frozen=True, slots=True)
class FrameLine:
    """A frame. ``where`` is short, ``full`` the whole path; of plumbing, ``function`` says what was left out.

    ``is_place`` marks the innermost frame of the program's own, which is where a reader begins.
    """

    function: str
    where: str
    full: str
    is_folded: bool = False
    is_own: bool = False
    is_place: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """A call that a finding is about. ``more`` counts frames that are not shown."""

    role: str
    call: str
    number: int
    frames: tuple[FrameLine, ...]
    more: int


def make_site(site: CallSite) -> Site:
    """Return a call with its frames, neighbours that are somebody's plumbing as one line."""
    frames = list(_lines(site.frames))
    place = next((position for position, frame in enumerate(frames) if frame.is_own), None)
    if place is not None:
        frames[place] = replace(frames[place], is_place=True)
    role = shorten(site.role)
    return Site(
        role=role[:1].upper() + role[1:],
        call=shorten(site.call),
        number=site.number,
        frames=tuple(frames[:FRAMES_SHOWN_MAX]),
        more=max(0, len(frames) - FRAMES_SHOWN_MAX),
    )


def frame_line(frame: Frame) -> FrameLine:
    """Return one frame: its function, and where its source lies as texts name it, or its module without folders."""
    full, short = shorten(frame.place), shorten(frame.shown_place)
    if not frame.file:
        short = short.replace("\\", "/").rpartition("/")[2]
    function = shorten(frame.function)
    return FrameLine(function or short or "code without a file", short if function else "", full, is_own=frame.is_own)


def _lines(frames: tuple[Frame, ...]) -> Iterator[FrameLine]:
    for each in shown_frames(frames):
        yield FrameLine(shorten(each), "", "", is_folded=True) if isinstance(each, str) else frame_line(each)


def short_place(site: CallSite) -> str:
    """Return ``train.py:8 in step``, the innermost frame of the program's own or else of any, '' without a stack."""
    shown = site.shown
    if not shown:
        return ""
    line = frame_line(next((frame for frame in shown if frame.is_own), shown[0]))
    return f"{line.where} in {line.function}" if line.where else line.function


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
    "a_leak_check_comes_to_a_verdict": ("test without a verdict", "tests without a verdict"),
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
