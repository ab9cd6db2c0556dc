"""What comes of a leak check."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from quiesce.leaks.owners import Frame
from quiesce.leaks.quantities import Quantity
from quiesce.model.findings import CallSite
from quiesce.model.wording import counted

SHOWN: Final = 3


class Outcome(enum.Enum):
    """How one round went. Rounds can be compared where they went alike."""

    PASSED = "passed"
    FAILED = "failed"
    OVER = "over"
    """There is nothing to repeat: the code was skipped, or the run is ending."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One quantity that keeps growing. ``origin`` and ``evidence`` say where from, as well as can be known.

    ``readings`` are those behind the rounds that decided, whose numbers are ``rounds``; without them they were
    consecutive, from ``first_round`` on.
    ``call_sites`` are the calls of a simulated runtime that it comes from, and ``kept`` says which objects keep it.
    """

    quantity: Quantity
    per_round: float
    readings: tuple[int, ...]
    first_round: int
    origin: str = ""
    evidence: str = ""
    call_sites: tuple[CallSite, ...] = ()
    kept: str = ""
    rounds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """What each round leaves in the temporary folder: how many files, the name of one, and the lines that make them."""

    per_round: int
    example: str
    lines: tuple[Frame, ...]

    def __str__(self) -> str:
        """Return ``1 file a round in the temporary folder, such as tmpx81k, at test_it.py:8``."""
        lines = [f"{filename}:{line}" for filename, line in self.lines[:SHOWN]]
        if len(self.lines) > SHOWN:
            lines.append(counted(len(self.lines) - SHOWN, "more line"))
        text = f"{counted(self.per_round, 'file')} a round in the temporary folder, such as {self.example}"
        return f"{text}, at {', '.join(lines)}" if lines else text


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict.

    ``outcome`` is how the runs went and ``runs`` how many there were;
    ``growths`` are the leaks, those that say most first. ``inconclusive`` says why there is no verdict, or is empty;
    ``unstable`` that rounds did not go alike. ``absent`` says for each family of gauges that was not looked at why.
    No test fails for its ``files``.
    """

    outcome: Outcome
    runs: int
    growths: tuple[Growth, ...] = ()
    inconclusive: str = ""
    unstable: bool = False
    absent: tuple[tuple[str, str], ...] = ()
    files: LeftFiles | None = None
