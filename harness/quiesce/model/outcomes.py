"""Outcomes: what a backend answered to one operation, the error codes that it may name, and whose codes they are."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Allocated:
    """A block was made. ``address`` is where; 0 is legal only for a request of zero bytes.

    The addresses of all kinds and devices are of one space, as CUDA's and HIP's are: a backend whose devices number
    theirs alike tells them apart by an offset, here and in what it observes.
    """

    address: int


@dataclass(frozen=True, slots=True)
class Done:
    """The request was performed, or the answer to a query is yes."""


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The request was refused for lack of memory, in the way the backend documents."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The request was refused with an error. ``code`` is one of :data:`ERROR_CODES` or the backend's own word."""

    code: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The backend cannot do this at all; ``reason`` says what it lacks."""

    reason: str = ""


Outcome: TypeAlias = Allocated | Done | OutOfMemory | Rejected | Unsupported

INVALID_VALUE: Final = "invalid-value"
NOT_INITIALIZED: Final = "not-initialized"
ALREADY_INITIALIZED: Final = "already-initialized"
INVALID_HANDLE: Final = "invalid-handle"
ILLEGAL_STATE: Final = "illegal-state"
NOT_READY: Final = "not-ready"
CAPTURE_UNSUPPORTED: Final = "capture-unsupported"
CAPTURE_INVALIDATED: Final = "capture-invalidated"
CAPTURE_MERGE: Final = "capture-merge"
CAPTURE_UNJOINED: Final = "capture-unjoined"
CAPTURE_ISOLATION: Final = "capture-isolation"
CAPTURE_IMPLICIT: Final = "capture-implicit"
CAPTURED_EVENT: Final = "captured-event"
BACKING_ERROR: Final = "backing-error"

ERROR_CODES: Final[dict[str, int | None]] = {
    INVALID_VALUE: 1,
    NOT_INITIALIZED: 3,
    ALREADY_INITIALIZED: None,
    INVALID_HANDLE: 400,
    ILLEGAL_STATE: 401,
    NOT_READY: 600,
    CAPTURE_UNSUPPORTED: 900,
    CAPTURE_INVALIDATED: 901,
    CAPTURE_MERGE: 902,
    CAPTURE_UNJOINED: 904,
    CAPTURE_ISOLATION: 905,
    CAPTURE_IMPLICIT: 906,
    CAPTURED_EVENT: 907,
    BACKING_ERROR: None,
}
"""Error codes by name, with the number that CUDA's and HIP's runtime headers share for it (None: neither has one)."""


def describe(outcome: Outcome) -> str:
    """Say an outcome in the words of case files: ``allocated``, ``done``, ``out of memory``, ``rejected CODE``."""
    match outcome:
        case Allocated():
            return "allocated"  # where differs from run to run
        case Done():
            return "done"
        case OutOfMemory():
            return "out of memory"
        case Rejected(code):
            return f"rejected {code}"
        case Unsupported(reason):
            return f"unsupported ({reason})" if reason else "unsupported"


class Flavour(enum.StrEnum):
    """Whose error codes and rules a simulated device follows."""

    CUDA = "cuda"
    HIP = "hip"
