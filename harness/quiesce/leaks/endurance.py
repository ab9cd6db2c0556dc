"""Endurance: rounds until what is watched comes to rest, or has grown for long enough to be a leak.

Nothing is traced, so a round costs little and equal states give equal readings.
"""

from __future__ import annotations

from typing import Final

from quiesce.leaks.budget import ENDURANCE, Budget
from quiesce.leaks.growth import is_steady
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, MEMORY, Quantity
from quiesce.leaks.readings import Readings
from quiesce.leaks.rounds import Rounds, Stopped
from quiesce.leaks.settling import BoundedCaches, OldObjects, collect_garbage

ENDURANCE_WINDOW: Final = 6
WINDOW_SHARE: Final = 3
STEP_SHARE: Final = 4
"""What is watched must be at rest for a third of its rounds, and for more than a quarter of all there were: containers
grow in steps of an eighth of their size and texts that are written piece by piece in steps of a quarter, so one that
grows by the same each round is at rest for as long."""

FILLING_ROUNDS_MAX: Final = 1_200
"""How many rounds a ring may take to fill; beyond that there is no verdict."""

LARGE_BYTES: Final = 64 << 20
LARGE_ROUNDS: Final = 8
"""Growth of so many bytes is watched for so many rounds only: the machine may not have as much again."""

SLOW_ROUNDS: Final = 24
"""What has grown for so many rounds seems to leak, if there is no time for more."""

STEADY_ROUNDS: Final = 8
"""What grows by the same amount in so many rounds has shown its pace: more of them say nothing new."""


class Endurance:
    """Watches what moved in one check.

    ``watched`` counts the rounds since it began to, and ``ended`` is the number of the last of them. ``at_hand`` is for
    how many rounds a leak may live on what malloc keeps for other threads. ``is_large`` says that what grows is so
    large that few rounds must do, and ``is_watching`` that a round may notice what is done for the readings.
    """

    def __init__(self, readings: Readings, rounds: Rounds, old: OldObjects, plan: Plan, budget: Budget) -> None:
        self._readings = readings
        self._rounds = rounds
        self._old = old
        self._plan = plan
        self._budget = budget
        self._filling = 0
        self.watched = 0
        self.ended = 0
        self.at_hand = 0
        self.is_large = False
        self.is_watching = False
        self._is_out_of_time = False

    def watch(self, families: frozenset[str]) -> BoundedCaches:
        """From now on look at these only, closely."""
        self._old.release()
        collect_garbage()
        caches = BoundedCaches()
        self._readings.watch(families)
        self.is_watching = True
        self._old.freeze()
        self._readings.start_over()
        return caches

    def run(self, caches: BoundedCaches, most: int, share: float) -> None:
        """Run rounds until the suspects are at rest, or have grown for long enough or for this share of the time.

        Raises :class:`Stopped` where more rounds would be needed than there can be.
        """
        self.watched = self._filling = 0
        self._is_out_of_time = False
        while self.watched < ENDURANCE_WINDOW or not self._is_decided(caches, most, share):
            caches.empty_the_librarys()
            self._rounds.repeat()
            self._readings.take()
            self.watched += 1
        self.ended = self._rounds.count

    def moving(self) -> list[Quantity]:
        """Return what has not come to rest."""
        window = max(ENDURANCE_WINDOW, self.watched // WINDOW_SHARE, self._rounds.count // STEP_SHARE + 2)
        moving = self._readings.moving(window)
        if self.at_hand >= window:  # only the C heap may hide a leak on what malloc keeps at hand
            longer = self._readings.moving(self.at_hand + 1)
            moving = [each for each in longer if each in moving or each.family == C_HEAP]
        return [each for each in moving if self._readings.grown(each) > 0] if self._is_out_of_time else moving

    def _is_decided(self, caches: BoundedCaches, most: int, share: float) -> bool:
        """Whether no more rounds are needed."""
        moving = self.moving()
        if not moving:
            return True
        self.is_large = self.watched >= LARGE_ROUNDS and self._readings.most_bytes() >= LARGE_BYTES
        least = min(most, SLOW_ROUNDS if share == ENDURANCE else LARGE_ROUNDS)
        is_slow = self.watched >= least and self._budget.is_used_up(share)
        if share == ENDURANCE and self._budget.is_used_up() and self.watched < least:
            self._is_out_of_time = True  # readings are too few for a window: what has not grown in them rests
            moving = [each for each in self.moving() if self._readings.says_something(each)]
            if not moving:
                return True
            raise Stopped(self._budget.over(self._rounds.count, self._readings.names_of_growing(moving)))
        if not (self.is_large or is_slow or self.watched >= most or self._is_steady(share)):
            return False
        if not caches.rings_have_filled():
            return True
        self._filling += self.watched
        if self.is_large or is_slow or self._filling > FILLING_ROUNDS_MAX:
            raise Stopped("a deque(maxlen=…) is still filling, which looks like a leak; fill it in a fixture")
        self.watched = 0
        self._readings.start_over()
        return False

    def _is_steady(self, share: float) -> bool:
        """Whether only memory moves, and by the same in each round: the confirmation sees whether a bound ends it."""
        return (
            share == ENDURANCE
            and self.watched >= STEADY_ROUNDS
            and all(
                each.family in MEMORY and is_steady(self._readings.values(each)[-STEADY_ROUNDS:])
                for each in self.moving()
            )
        )
