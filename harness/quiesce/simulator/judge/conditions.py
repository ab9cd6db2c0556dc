"""What the judge of a process is told about the run, and what it is asked for: values that cost nothing to import."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quiesce.model.program_run import Conditions
    from quiesce.simulator.judge.known_errors import KnownError
    from quiesce.simulator.runtime.flavours import Simulated
    from quiesce.simulator.runtime.loads import Load


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


@dataclass(frozen=True, slots=True)
class JudgeConditions:
    """How the processes of a run are judged, and what is known of the run: as little as nothing.

    ``simulated`` is the flavour that the user asked for, None where each process took what it needs. ``loads`` is what
    the dynamic loader did in all processes, ``running`` are those that had not ended when the program had. ``failed``
    says that the program's exit status tells of a failure, ``crash`` names the signal by which it crashed: it may be a
    process that was refused something. ``known_errors`` are errors of calls that the user expects. ``words`` are the
    program with its arguments, ``environment`` is what it began with, and ``pools`` says whether packages could keep
    freed memory in pools of their own. ``is_small`` says that the run chose how much memory its devices have, so that
    lack of it was asked for. ``report`` is how a report says that the program was run, None where there is none.
    """

    at_exit: AtExit = AtExit.LOST
    simulated: Simulated | None = None
    loads: Sequence[Load] = ()
    running: frozenset[int] = frozenset()
    failed: bool = False
    crash: str = ""
    api_errors: ApiErrors = ApiErrors.TELL
    known_errors: Sequence[KnownError] = ()
    words: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pools: bool = True
    is_small: bool = False
    report: Conditions | None = None
