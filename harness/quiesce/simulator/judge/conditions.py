"""What a program may hold when it exits: a choice that a command makes before it judges anything."""

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
