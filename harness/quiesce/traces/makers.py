"""Who made something, in a few words: the line of the program, and its callers where two would look alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from quiesce.findings import Frame

CALLERS_MAX: Final = 8
"""How many callers a line names; those between the first ones and the one that differs are left out."""


def place_of(frames: tuple[Frame, ...]) -> tuple[tuple[str, str], ...]:
    """Return what is the same of all stacks of one place: compilers write one call several times, as in a loop."""
    return tuple(
        (frame.function, frame.place if frame.line or not frame.function else frame.module)
        for frame in frames
        if not frame.folded
    )


def calls_of(frames: tuple[Frame, ...]) -> tuple[tuple[str, str], ...]:
    """Return what is the same of all stacks of the same calls: where no line tells two calls apart, offsets do."""
    return tuple((frame.function, frame.place) for frame in frames if not frame.folded)


def made_at(stacks: Sequence[tuple[Frame, ...]]) -> list[str]:
    """Return ``at train.py:8`` for each stack, the program's own innermost frame; the innermost where none is its own.

    Where several begin with the same frame, callers follow until the texts differ: ``at train.py:8 in load, called at
    train.py:20 in main``. Of a frame without a line it is ``by function (module)``, and empty where there is no frame.
    """
    chains = [_chain(frames) for frames in stacks]
    innermost = [_place(chain[0]) if chain else "" for chain in chains]
    named = [tuple(map(_caller, chain)) for chain in chains]
    alike: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for place, names in zip(innermost, named, strict=True):
        alike[place].add(names)
    return [_text(place, names, alike[place]) for place, names in zip(innermost, named, strict=True)]


def _chain(frames: tuple[Frame, ...]) -> list[Frame]:
    shown = [frame for frame in frames if not frame.folded] or list(frames)
    return [frame for frame in shown if frame.is_own] or shown


def _place(frame: Frame) -> str:
    return f"at {frame.shown_place}" if frame.line else f"by {frame}"


def _caller(frame: Frame) -> str:
    return f"{_place(frame)} in {frame.function}" if frame.line and frame.function else _place(frame)


def _text(place: str, names: tuple[str, ...], alike: set[tuple[str, ...]]) -> str:
    if len(alike) == 1:
        return place
    shared = max(_shared(names, other) for other in alike if other != names)
    callers = [f"called {name}" for name in names[1 : shared + 1]]
    if len(callers) > CALLERS_MAX:
        callers = [*callers[: CALLERS_MAX - 1], "…", callers[-1]]
    return ", ".join([names[0], *callers])


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many innermost frames two stacks have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
