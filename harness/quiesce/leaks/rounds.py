"""The rounds of one check: how many there were, and whether they went alike."""

from __future__ import annotations

from collections.abc import Callable

from quiesce.leaks.judgement import Outcome


class Stopped(Exception):
    """Why the rounds ended early."""

    def __init__(self, reason: str = "", *, unstable: bool = False) -> None:
        super().__init__(reason)
        self.unstable = unstable


class Rounds:
    """Runs rounds. Each must go like the first one.

    A round is ``runs_each`` runs of the code; ``count`` counts rounds and ``runs`` runs. ``calm`` ends all measurements
    and says whether there were any; ``disturb`` begins those that a round may notice.
    """

    def __init__(self, run_round: Callable[[], Outcome], calm: Callable[[], bool], disturb: Callable[[], None]) -> None:
        self._run_round = run_round
        self._calm = calm
        self._disturb = disturb
        self.outcome = Outcome.OVER
        self.count = 0
        self.runs = 0
        self.runs_each = 1

    def first(self) -> None:
        """Run the first round. Raises :class:`Stopped` if there is nothing to repeat."""
        self.count += 1
        self.outcome = self._run()
        if self.outcome is Outcome.OVER:
            raise Stopped

    def repeat(self) -> None:
        """Run one more round. Raises :class:`Stopped` if a run goes another way than the first."""
        self.count += 1
        for _ in range(self.runs_each):
            outcome = self._run_again()
            if outcome is not self.outcome:
                self._explain(outcome)

    def _run(self) -> Outcome:
        self.runs += 1
        return self._run_round()

    def _run_again(self) -> Outcome:
        outcome = self._run()
        if outcome is Outcome.OVER:
            raise Stopped(f"round {self.runs} was skipped, or the run ends early")
        return outcome

    def _explain(self, outcome: Outcome) -> None:
        """Find out whether only the measurements changed how a round ended, and stop in any case."""
        first, ended = self.outcome, f"round {self.runs} {outcome.value}"
        if self._calm() and self._run_again() is first:
            self._disturb()
            is_disturbed = self._run_again() is outcome
            self._calm()
            if is_disturbed:
                raise Stopped(f"{ended} because of the check's own measurements; without them it {first.value}")
        raise Stopped(f"{ended}, although the rounds before it {first.value}", unstable=True)
