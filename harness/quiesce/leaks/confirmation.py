"""Confirmation: memory that seems to leak is watched for much longer, for a bound of the code's own would end it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.leaks.budget import ALL, Budget
from quiesce.leaks.endurance import Endurance
from quiesce.leaks.growth import keeps_pace, rises_often
from quiesce.leaks.letting_go import LettingGo
from quiesce.leaks.lists import IN_LISTS
from quiesce.leaks.memory import BLOCKS, HEAP
from quiesce.leaks.other_threads import OtherThreads
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import Quantity
from quiesce.leaks.readings import Readings
from quiesce.leaks.rounds import Rounds, Stopped
from quiesce.leaks.settling import BoundedCaches
from quiesce.leaks.tracing import Site
from quiesce.leaks.variables import IN_VARIABLES

LONGER: Final = 4
"""Memory that seems to leak is watched four times as long again, if there is time."""

LASTING_ROUNDS: Final = 128
"""Memory that grew for fewer rounds may be a cache that is not full yet: 128 entries are a usual bound."""

BORNE_OUT: Final = 1 / 8
"""What share of the growth that traces show must be there without them. Not every trace is a block of Python or in use
of the C heap, but what only replaces older things does not grow at all."""


class Confirmation:
    """Watches what is left of one check, and the sites that keep ever more, where that is quickly done.

    A table whose entries go at random, or after a time, rises for as long by chance. What leaks hardly ever falls;
    where something did, it must go on for as long once more.
    """

    def __init__(
        self,
        endurance: Endurance,
        readings: Readings,
        rounds: Rounds,
        letting_go: LettingGo,
        plan: Plan,
        budget: Budget,
    ) -> None:
        self._endurance = endurance
        self._readings = readings
        self._rounds = rounds
        self._letting_go = letting_go
        self._plan = plan
        self._budget = budget
        self._other_threads = OtherThreads()

    def lasting(
        self, suspects: frozenset[str], left: list[Quantity], sites: Sequence[Site]
    ) -> tuple[list[Quantity], Sequence[Site]]:
        """Return what goes on. Raises :class:`Stopped` where there is no time to tell it from a cache."""
        if self._endurance.is_large:
            return left, sites
        self._other_threads.remember()
        left_out = max(0, self._plan.rounds - self._endurance.watched)
        most = self._plan.rounds * LONGER + left_out
        caches = self._endurance.watch(suspects)
        left, sites = self._confirmed(caches, most, left, sites)
        left = [each for each in left if each != HEAP or self._goes_on(self._readings.values(each))]
        if (left or sites) and self._readings.have_fallen():
            self._readings.start_over()  # without a pause, after which what lives for a time would fill anew
            left, sites = self._confirmed(caches, most, left, sites)
        return self._letting_go.still_there(left, caches), sites

    def _confirmed(
        self, caches: BoundedCaches, most: int, left: Sequence[Quantity], sites: Sequence[Site]
    ) -> tuple[list[Quantity], Sequence[Site]]:
        """Return what goes on. In traces, which begin with nothing, what only replaces older things seems to grow.

        Raises :class:`Stopped` where the time was over too early to bear out or to deny what seemed to leak.
        """
        endurance = self._endurance
        endurance.run(caches, most, ALL)
        moving = endurance.moving()  # what has come to rest by now does not leak, however long it grew
        stirring = [quantity for quantity in moving if len(set(self._readings.values(quantity))) > 1]
        has_no_time = bool(stirring) and not endurance.is_large and endurance.watched < most
        is_borne_out = any(
            per_round > 0 and quantity in moving and self._readings.bears_out(quantity, BORNE_OUT * per_round)
            for quantity, per_round in (
                (BLOCKS, sum(site.blocks_per_round for site in sites)),
                (HEAP, sum(site.on_c_heap_per_round for site in sites)),
                (IN_LISTS, sum(site.bytes_per_round for site in sites)),
                (IN_VARIABLES, sum(site.bytes_per_round for site in sites)),
            )
        )
        left = [quantity for quantity in moving if quantity in left and self._readings.leaks(quantity)]
        sites = sites if is_borne_out else ()
        if has_no_time and (self._rounds.count < LASTING_ROUNDS or not (left or sites)):
            raise Stopped(self._budget.over(self._rounds.count, self._readings.names_of_growing(stirring)))
        return left, sites

    def _goes_on(self, values: Sequence[int]) -> bool:
        """Whether the C heap goes on growing: what malloc keeps at hand for other threads fills ever more slowly."""
        return rises_often(values) and (keeps_pace(values) or not self._other_threads.have_run())
