"""What a person who interrupts a command is told: where it was, for a backend may hang, and how to go on."""

from __future__ import annotations

from typing import Final

HINT: Final = "if a backend hangs, --backend served:NAME ends it and names the request"


def describe_interruption(interruption: KeyboardInterrupt) -> str:
    """Return where the run was interrupted, for a line that ends in it; empty where no backend was asked for anything.

    Lockstep notes the request that it waited for on the exception.
    """
    notes = getattr(interruption, "__notes__", ())
    return f"; {notes[0]}; {HINT}" if notes else ""
