"""The long stages: endurance, rounds under traces, and confirmation.

Endurance runs rounds until what is watched comes to rest, or has grown for long enough to be a leak. Nothing is traced,
so a round costs little and equal states give equal readings. What is gone once everything is let go that may hold
memory was a cache, or about to close. Rounds under traces say whose memory has grown, and which line asked for it.
Confirmation watches memory that seems to leak for much longer, for a bound of the code's own would end it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from quiesce.leaks.meters.lists import IN_LISTS
from quiesce.leaks.meters.memory import BLOCKS, HEAP
from quiesce.leaks.meters.tracing import Site, Tracing
from quiesce.leaks.meters.variables import IN_VARIABLES
from quiesce.leaks.moments import moments, ready_to_run
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, MEMORY, OPENED, PYTHON, Quantity
from quiesce.leaks.readings import Readings, is_steady, keeps_pace, rises_often
from quiesce.leaks.stages.rounds import ALL, ENDURANCE, TRACES, Budget, OtherThreads, Rounds, Stopped
from quiesce.leaks.stages.settling import BoundedCaches, OldObjects, collect_garbage

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


ENDING_SECONDS: Final = 0.05
ENDING_STEPS: Final = 10
"""Threads and connections that are just closing get ten times so long to be gone before they are called leaks."""


class LettingGo:
    """Lets go of what one check has left out of collections, and of what caches hold."""

    def __init__(self, old: OldObjects, readings: Readings) -> None:
        self._old = old
        self._readings = readings

    def let_go(self, caches: BoundedCaches) -> None:
        """Collect everything, and what caches hold that have a bound and so would come to rest in the end."""
        self._old.thaw()
        caches.empty_what_has_grown()
        collect_garbage()

    def still_there(self, growing: Iterable[Quantity], caches: BoundedCaches) -> list[Quantity]:
        """Return what has not gone away once all is let go, and what is just closing has had time to close."""
        left = list(growing)
        readings = self._readings
        ends = {quantity: readings.values(quantity)[-1] - readings.grown(quantity) / 2 for quantity in left}
        self.let_go(caches)
        for _ in moments(ENDING_STEPS, ENDING_SECONDS, ready_to_run):
            if not left:
                break
            now = readings.now()
            left = [each for each in left if now.get(each, math.inf) > ends[each]]
            if not any(quantity.family in OPENED for quantity in left):
                break
        return left


TRACED_ROUNDS: Final = 24
TRACED_LEAST: Final = 4  # where the time is used up


class TracedRounds:
    """Runs those of one check."""

    def __init__(self, tracing: Tracing, rounds: Rounds, letting_go: LettingGo, plan: Plan, budget: Budget) -> None:
        self._tracing = tracing
        self._rounds = rounds
        self._letting_go = letting_go
        self._plan = plan
        self._budget = budget
        self.untraced = 0
        """How many rounds there were before them."""

    def run(self, caches: BoundedCaches, *, is_large: bool) -> bool:
        """Run them, few if what grows is large; return False where the tested code ends the traces."""
        self._tracing.start()
        self.untraced = self._rounds.count
        for number in range(LARGE_ROUNDS if is_large else max(TRACED_ROUNDS, self._plan.rounds)):
            if number >= TRACED_ROUNDS and self._tracing.leaking_sites():
                break  # a buffer that grows in place takes more memory at every eighth of its size only
            if self._budget.is_used_up() and number >= TRACED_LEAST:
                break
            if number >= LARGE_ROUNDS and self._budget.is_used_up(TRACES):
                break
            caches.empty_the_librarys()
            self._rounds.repeat()
            collect_garbage()
            if not self._tracing.sample():
                return False
        return True

    def leaking_sites(self, caches: BoundedCaches) -> Sequence[Site]:
        """Return the sites that keep ever more, even now."""
        if not self._tracing.leaking_sites():
            return ()
        self._letting_go.let_go(caches)
        self._tracing.replace_last()
        sites = self._tracing.leaking_sites()
        over_limit = sum(site.bytes_per_round for site in sites) > self._plan.limit_bytes
        return sites if over_limit and self._plan.looks_at(PYTHON) else ()


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
