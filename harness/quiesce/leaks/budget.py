"""The time that the check of one test may take, and how much of it each stage may use up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

ENDURANCE: Final = 0.4
TRACES: Final = 0.7
ALL: Final = 1.0
"""The share of the time after which each stage ends: endurance, the rounds under traces, and the confirmation."""


class Budget:
    """Knows how much of the time is used up. ``clock`` returns seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._begun = clock()

    def begin(self) -> None:
        """Begin to count."""
        self._begun = self._clock()

    def is_used_up(self, share: float = ALL) -> bool:
        """Whether this share of the time is over."""
        return self.elapsed_seconds > share * self.seconds

    @property
    def elapsed_seconds(self) -> float:
        """How long the check has taken so far."""
        return self._clock() - self._begun

    def over(self, rounds: int, growing: Sequence[str]) -> str:
        """Say that the time was over before a verdict, after so many rounds; ``growing`` names what is not at rest."""
        grows = f"something still grows after {rounds} rounds ({', '.join(growing)})"
        return f"{grows}, and its {self.seconds:g} s are over; raise --quiesce-leak-seconds"
