"""The frames of a call stack that a text shows: the program's own, and a note in place of the others.

Where no frame is the program's own, those of packages are shown: they say more than a number of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from quiesce.amounts import counted
from quiesce.findings import SHUTDOWN, Frame


def shown_frames(frames: Sequence[Frame]) -> Iterator[Frame | str]:
    """Yield the frames that are shown, from the innermost one, and a note for neighbours that are not."""
    has_own = any(frame.is_own for frame in frames)
    for is_shown, neighbours in groupby(frames, key=lambda frame: frame.is_own or not (has_own or frame.folded)):
        group = list(neighbours)
        yield from group if is_shown else [_note(group)]


def _note(frames: list[Frame]) -> str:
    names = dict.fromkeys(frame.owner for frame in frames)
    if SHUTDOWN in names:
        return f"{SHUTDOWN} ({counted(len(frames), 'frame')})"
    return f"{counted(len(frames), 'frame')} in {_listed(list(names))}"


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
