"""Windows and levers: the runs that tell what grows from what only warms up, and the letting go of what was a cache.

Nothing is traced, so a run costs little and equal states give equal readings. How many runs there are follows from the
readings and from what keeps the growth, as :mod:`quiesce.leaks.evidence` says; the time only ends a check.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from quiesce.leaks.evidence import GROWING, LEVERS, WINDOW, Decision, Keeper, Pace, State, Step, decide, pace_of, sways
from quiesce.leaks.explaining.causes import THREAD_BYTES
from quiesce.leaks.explaining.census import Census
from quiesce.leaks.meters.memory import BLOCKS, HEAP
from quiesce.leaks.meters.tracing import Site, Tracing
from quiesce.leaks.moments import moments, ready_to_run
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import OPENED, PYTHON, Quantity
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.rounds import Budget, OtherThreads, Rounds, Stopped
from quiesce.leaks.stages.settling import BoundedCaches, OldObjects, collect_garbage

LARGE_BYTES: Final = 64 << 20
"""Growth of so many bytes, by more in each run, is enough: the machine may not have as much again."""

PHASE: Final = 4
"""Runs that do not count come in fours, so that what grows in every second or fourth run does so in the same places."""


class Windows:
    """Watches what moved in one check.

    ``ended`` is the number of the last round that is read, of those that count. ``rests_from`` is after how many runs a
    rest counts. ``caches_grew`` says that caches with a bound held more at the end of the last window than of the one
    before, ``is_large`` that what grows is so large that few runs must do, and ``is_watching`` that a run may notice
    what is done for the readings.
    """

    def __init__(
        self, readings: Readings, rounds: Rounds, old: OldObjects, plan: Plan, budget: Budget, census: Census
    ) -> None:
        self._readings = readings
        self._rounds = rounds
        self._old = old
        self._plan = plan
        self._budget = budget
        self._census = census
        self._other_threads = OtherThreads()
        self._counted_at = self._start = self._begun = 0
        self._keepers: Sequence[Keeper] | None = None
        self.rests_from = 0
        self.ended = 0
        self.is_large = False
        self.is_watching = False
        self.caches_grew = False
        self._looked_at = 0

    def watch(self, families: frozenset[str]) -> BoundedCaches:
        """From now on look at these only, closely."""
        self._old.release()
        collect_garbage()
        self._census.begin()
        self._counted_at = self._rounds.count
        collect_garbage()
        caches = BoundedCaches()
        self._readings.watch(families)
        self.is_watching = True
        self._old.freeze()
        self._other_threads.remember()
        self._readings.paces = {}
        self._rehearse(caches)
        self._readings.take_behind(0)
        with self._readings.uncounted():
            pass
        self._keepers, self._looked_at = None, 0
        self._start = self._begun = self.ended = self._rounds.count
        self._readings.start_over()
        return caches

    def _rehearse(self, caches: BoundedCaches) -> None:
        """Do once what is done between readings, so that all is there that the check itself keeps from then on.

        Behind a run that :mod:`sys.monitoring` has watched, CPython keeps something for each function that runs.
        """
        caches.empty_the_librarys()
        self._pull(1)
        caches.have_grown()
        self._readings.now()

    @property
    def count(self) -> int:
        """How many runs there were since."""
        return self._rounds.count - self._start

    def run(self, caches: BoundedCaches) -> list[Quantity]:
        """Run windows and levers; return what grows. Raises :class:`Stopped` where nothing can be said."""
        lever = 0
        while True:
            if (found := self._window(caches)) is not None:
                return found
            if lever:
                with self._readings.uncounted():  # a look at all objects takes memory itself
                    found = self._decided(caches)
                if found is not None:
                    return found
            self._pull(LEVERS[min(lever, len(LEVERS) - 1)])
            lever += 1

    def _window(self, caches: BoundedCaches) -> list[Quantity] | None:
        """Run one; return what grows if that is too much to go on. The first is run even if the time is over."""
        for _ in range(WINDOW):
            if self.ended > self._begun and self._budget.is_used_up():
                return self._out_of_time()
            caches.empty_the_librarys()
            self._rounds.repeat()
            self._readings.take_behind(self.count)
        self.ended = self._begun + self.count
        self.caches_grew = caches.have_grown()
        return self._large(caches) if self._readings.most_bytes() >= LARGE_BYTES else None

    def _pull(self, runs: int) -> None:
        """Run what nobody reads; growth that would be too much is read after a window's runs at the latest."""
        per_run = self._readings.most_bytes() / max(1, self.count)
        for _ in range(runs if per_run * (runs + self.count) < LARGE_BYTES else WINDOW):
            if self._budget.is_used_up():
                return
            self._rounds.repeat()

    def _large(self, caches: BoundedCaches) -> list[Quantity] | None:
        """Return what has grown in each run of the last window, where the machine may not have as much again."""
        rising = self._readings.rising(WINDOW - 1)
        if not any(quantity.unit == "bytes" for quantity in rising):
            return None
        self.is_large = True
        self._look(caches)
        bounded = [keeper for keeper in self._keepers or () if not keeper.is_free]
        if bounded and len(bounded) == len(self._keepers or ()):
            raise Stopped(bounded[0].why_undecided(self.count))
        self._readings.paces = {each: Pace(State.EXACT, self._mean(each)) for each in rising}
        return rising

    def _mean(self, quantity: Quantity) -> float:
        values = self._readings.values(quantity)[-WINDOW:]
        return (values[-1] - values[0]) / (WINDOW - 1)

    def _decided(self, caches: BoundedCaches) -> list[Quantity] | None:
        """Return what grows, or None if more runs are needed."""
        beside_threads = self._other_threads.have_run()
        quantities = self._readings.quantities()
        self._readings.paces = {each: self._pace(each, beside_threads=beside_threads) for each in quantities}
        if self.count < self.rests_from and all(pace.state is State.REST for pace in self._readings.paces.values()):
            return None
        found = self._decision(beside_threads=beside_threads)
        if found.step is Step.LOOK or (found.leaks and self._looked_at < self.count):
            self._look(caches)
            found = self._decision(beside_threads=beside_threads)
        if found.step is Step.UNDECIDED:
            raise Stopped(found.reason)
        return list(found.leaks) if found.step is Step.END else None

    def _decision(self, *, beside_threads: bool) -> Decision:
        paces, least = self._readings.paces, self._plan.rounds
        return decide(paces, self._keepers, self.count, least=least, beside_threads=beside_threads)

    def _look(self, caches: BoundedCaches) -> None:
        """Find out what keeps the growth since the census; the rounds that this takes are none of those counted.

        Cycles that each run makes anew are left out of collections behind a look, until the next run replaces them.
        """
        self._looked_at, before = self.count, self._rounds.count
        caches.empty_the_librarys()
        with self._old.shown():
            self._keepers = self._census.keepers(before - self._counted_at, self._rounds.repeat)
            collect_garbage()
        self._rehearse(caches)
        while (self._rounds.count - before) % PHASE:
            self._rounds.repeat()
        self._start += self._rounds.count - before

    def seldom_keepers(self) -> Sequence[Keeper]:
        """Return what keeps growth of less than a block a run, and has no bound: a few more runs may not show it."""
        pace = self._readings.paces.get(BLOCKS)
        is_seldom = pace is not None and pace.state in GROWING and pace.per_run < 1
        return [each for each in self._keepers or () if each.is_free] if is_seldom else ()

    def _pace(self, quantity: Quantity, *, beside_threads: bool) -> Pace:
        values = self._readings.values(quantity)
        runs = self._readings.runs(quantity)
        allowed = self._readings.allowed(quantity)
        pace = pace_of(runs, values, allowed, sways=sways(quantity, beside_threads=beside_threads))
        is_said = self._plan.looks_at(quantity.family) and self._readings.says_something(quantity)
        if quantity == HEAP and beside_threads:  # what malloc keeps at hand for a thread fills ever more slowly
            is_said = is_said and self._readings.grown(quantity) > THREAD_BYTES * self._other_threads.ran()
        return pace if is_said or pace.state not in GROWING else Pace(State.RETURNS)

    def _out_of_time(self) -> list[Quantity]:
        """Say what still grows, if anything does; what is read too seldom for a window, by its first and last."""
        growing = [
            each
            for each in self._readings.quantities()
            if self._readings.grown(each) > 0
            and len(set(self._readings.values(each)[-WINDOW:])) > 1
            and self._readings.says_something(each)
            and self._readings.paces.get(each, Pace(State.OPEN)).state not in (State.REST, State.RETURNS, State.SLOWS)
        ]
        if not growing:
            return []
        raise Stopped(self._budget.over(self._rounds.count, self._readings.names_of_growing(growing)))


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


TRACED_LEAST: Final = 8
TRACED_MOST: Final = 64
"""A buffer that grows in place takes more memory at every eighth of its size only."""


class TracedRounds:
    """Runs those of one check: they say whose memory has grown, and which line asked for it."""

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
        for number in range(TRACED_LEAST if is_large else TRACED_MOST):
            if number >= TRACED_LEAST and (self._budget.is_used_up() or self._tracing.leaking_sites()):
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
