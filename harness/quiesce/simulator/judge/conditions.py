"""What a run may ask of the judge: choices that a command makes before its program begins, which waits for this."""

from __future__ import annotations

import enum


class AtExit(enum.StrEnum):
    """Which of the things that live when the program exits are findings."""

    LOST = "lost"
    """Those that nobody could have given back any more: their addresses stand nowhere in the program's memory."""
    ALL = "all"
    """All of them."""
    NONE = "none"
    """None of them."""


class ApiErrors(enum.StrEnum):
    """What comes of refused work whose error nobody looked at."""

    TELL = "tell"
    INCONCLUSIVE = "inconclusive"
    FINDING = "finding"
