"""The reader of a log of refusals: who asked for a device and got none. ``native/ledger/refusals.h`` writes it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quiesce.simulator.damage import refusing_damage


class RefusalKind(enum.StrEnum):
    """Why a call was refused."""

    NOT_SIMULATED = "not simulated"
    """The function exists by name only."""
    FAILED = "failed"
    """The call failed, and nothing had been made before."""
    ARMED = "armed"
    """The run asked for that failure (``--fail``)."""
    FORKED = "forked"
    """The process is a child of ``fork()``, which inherits no device."""
    NOT_STARTED = "not started"
    """The simulated machine can't start in the process, which ends; the caller is a sentence that says why."""
    NOT_INSTALLED = "not installed"
    """NVIDIA's compiler was asked for and is not installed; the function is a sentence that says what to install."""
    MISSING = "missing"
    """No function was called: one was looked for that the driver or runtime of this release does not have."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One function that was refused. ``caller`` is the file that the call came from, empty where that is not known."""

    kind: RefusalKind
    function: str
    status: int
    caller: str = ""


def read_refusals(ledger: Path) -> tuple[Refusal, ...]:
    """Return what one process was refused, in the order in which it was; its ledger need not exist.

    A function that is not simulated says so itself and fails as any other: it is told once, with its callers where
    these are known. Raises :class:`quiesce.errors.QuiesceError` for a log that is damaged.
    """
    path = ledger.with_suffix(".refusals")
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ()
    with refusing_damage(path):
        refusals = tuple(dict.fromkeys(_parsed(text)))
    missing = {refusal.function for refusal in refusals if refusal.kind is RefusalKind.NOT_SIMULATED}
    called = {refusal.function for refusal in refusals if refusal.caller}
    return tuple(
        refusal
        for refusal in refusals
        if not (refusal.kind is RefusalKind.FAILED and refusal.function in missing)
        and (refusal.caller or refusal.function not in called)
    )


def _parsed(text: str) -> Iterator[Refusal]:
    for line in text.split("\n"):
        words = line.split("\t", 3)
        if len(words) == 4:  # the last line of a process that was killed may be cut
            yield Refusal(RefusalKind(words[0]), words[1], int(words[2]), words[3])
