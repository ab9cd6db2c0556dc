"""The rounds of one check: whether they went alike, the time they may take, and whether other threads ran."""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.system_calls import SystemCalls


class Stopped(Exception):
    """Why the rounds ended early."""

    def __init__(self, reason: str = "", *, unstable: bool = False) -> None:
        super().__init__(reason)
        self.unstable = unstable


EXPLAINING_RUNS: Final = 2


class Rounds:
    """Runs rounds. Each must go like the first one.

    ``count`` counts them, and ``runs`` also those that only explain how one ended. ``calm`` ends all measurements and
    says whether there were any; ``disturb`` begins those that a round may notice.
    """

    def __init__(self, run_round: Callable[[], Outcome], calm: Callable[[], bool], disturb: Callable[[], None]) -> None:
        self._run_round = run_round
        self._calm = calm
        self._disturb = disturb
        self.outcome = Outcome.OVER
        self._numbers = array("q", bytes(16))
        """Of all rounds, and of all runs: an integer above 256 would be one more block of memory from then on."""

    @property
    def count(self) -> int:
        """How many rounds there were."""
        return self._numbers[0]

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return self._numbers[1]

    def first(self) -> None:
        """Run the first round. Raises :class:`Stopped` if there is nothing to repeat."""
        self._numbers[0] += 1
        self.outcome = self._run()
        if self.outcome is Outcome.OVER:
            raise Stopped

    def repeat(self) -> None:
        """Run one more round. Raises :class:`Stopped` if a run goes another way than the first."""
        self._numbers[0] += 1
        outcome = self._run_again()
        if outcome is not self.outcome:
            self._explain(outcome)

    def _run(self) -> Outcome:
        self._numbers[1] += 1
        return self._run_round()

    def _run_again(self) -> Outcome:
        outcome = self._run()
        if outcome is Outcome.OVER:
            raise Stopped(f"round {self.runs} was skipped, or the run ends early")
        return outcome

    def _all_end(self, outcome: Outcome) -> bool:
        """Whether a few runs all end so; one alone may do so by turns."""
        return all(self._run_again() is outcome for _ in range(EXPLAINING_RUNS))

    def _explain(self, outcome: Outcome) -> None:
        """Find out whether only the measurements changed how a round ended, and stop in any case."""
        first, ended = self.outcome, f"round {self.runs} {outcome.value}"
        if self._calm() and self._all_end(first):
            self._disturb()
            is_disturbed = self._all_end(outcome)
            self._calm()
            if is_disturbed:
                raise Stopped(f"{ended} because of the check's own measurements; without them it {first.value}")
        raise Stopped(f"{ended}, although the rounds before it {first.value}", unstable=True)


class Budget:
    """Knows how much of the time is used up. ``clock`` returns seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._begun = clock()

    def begin(self) -> None:
        """Begin to count."""
        self._begun = self._clock()

    def is_used_up(self) -> bool:
        """Whether the time is over."""
        return self.elapsed_seconds > self.seconds

    @property
    def elapsed_seconds(self) -> float:
        """How long the check has taken so far."""
        return self._clock() - self._begun

    def over(self, rounds: int, growing: Sequence[str]) -> str:
        """Say that the time was over before a verdict, after so many rounds; ``growing`` names what is not at rest."""
        grows = f"something still grows after {rounds} rounds ({', '.join(growing)})"
        return f"{grows}, and its {self.seconds:g} s are over; raise --quiesce-leak-seconds"


_IS_RUNNING: Final = re.compile(r"^State:\tR", re.MULTILINE)
_SWITCHES: Final = re.compile(r"^(?:non)?voluntary_ctxt_switches:\t(\d+)$", re.MULTILINE)
"""Fields of a thread's ``status`` (proc(5)): a thread that has run since has been switched to, and away from again."""

RUNNING: Final = -1


class OtherThreads:
    """Remembers what the other threads of the process have done. Where the system does not tell, any may have run."""

    def __init__(self, folder: str = "/proc/self/task") -> None:
        self._folder = folder if SystemCalls.is_folder(folder) else ""
        self._switches: Mapping[str, int] = {}

    def remember(self) -> None:
        """Begin to watch them."""
        self._switches = self._read()

    def have_run(self) -> bool:
        """Whether one has run, begun or ended since, or runs right now."""
        return self.ran() > 0

    def ran(self) -> int:
        """Return how many have."""
        if not self._folder:
            return threading.active_count() - 1
        before, now = self._switches, self._read()
        return sum(now.get(each) in (RUNNING, None) or now[each] != before.get(each) for each in {*before, *now})

    def _read(self) -> Mapping[str, int]:
        """Return how often each other thread was switched to or away from."""
        if not self._folder:
            return {}
        own = str(threading.get_native_id())
        switches = {}
        for task in SystemCalls.list_folder(self._folder):
            if task != own:
                try:
                    with SystemCalls.open_file(
                        f"{self._folder}/{task}/status", encoding="ascii", errors="replace"
                    ) as file:
                        status = file.read()
                except OSError:
                    continue  # it has just ended
                counts = [int(count) for count in _SWITCHES.findall(status)]
                switches[task] = RUNNING if _IS_RUNNING.search(status) or not counts else sum(counts)
        return switches
