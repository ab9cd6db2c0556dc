"""Frames of a call stack in clean words: what a reader looks for, and plumbing counted in one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from quiesce.findings import CallSite, Frame
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.stack_lines import shown_frames

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
