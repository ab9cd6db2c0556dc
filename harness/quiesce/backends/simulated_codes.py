"""Statuses of the simulated runtime in the harness's words."""

from __future__ import annotations

from typing import Final

from quiesce.outcomes import ERROR_CODES, ILLEGAL_STATE, Done, Outcome, OutOfMemory, Rejected

OUT_OF_MEMORY: Final = 2
_CODES: Final = {
    **{number: name for name, number in ERROR_CODES.items() if number is not None},
    903: ILLEGAL_STATE,  # a capture that is ended on another stream than it began on: the vocabulary has no word for it
}


def code_of(status: int) -> str:
    """Return the word for an error."""
    return _CODES.get(status, f"status-{status}")


def outcome_of(status: int) -> Outcome:
    """Return what a call that answered ``status`` came to."""
    if status == 0:
        return Done()
    return OutOfMemory() if status == OUT_OF_MEMORY else Rejected(code_of(status))
