"""A leak check: rounds of one piece of code, until what grows is told apart from what only warms up.

Screening comes first: three rounds, with a reading after the first and the third, or five where other threads ran, or
six where something moved. Whatever stays the same by then does not leak, as is so for most code. Then endurance:
the rest is run until it comes to rest, or has grown for as long as the plan says. Nothing is traced so far, so a
round costs little and equal states give equal readings. Traces come last, and only where Python's memory has grown to
the end: they say whose memory it is, and which line asked for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from quiesce.leaks.budget import ALL, ENDURANCE, TRACES, Budget
from quiesce.leaks.causes import Causes
from quiesce.leaks.growth import is_steady, keeps_pace, rises_often
from quiesce.leaks.judgement import Growth, Judgement, Outcome
from quiesce.leaks.ledger_gauges import LedgerMeter
from quiesce.leaks.ledger_places import NOWHERE, LedgerPlaces
from quiesce.leaks.lists import IN_LISTS, ListMeter
from quiesce.leaks.longer_lists import LongerLists
from quiesce.leaks.memory import AT_HAND_COUNT, BLOCKS, HEAP, HeapMeter
from quiesce.leaks.other_threads import OtherThreads
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, DESCRIPTORS, IN_LEDGER, PYTHON, THREADS, Meter, Quantity
from quiesce.leaks.readings import Readings
from quiesce.leaks.rounds import Rounds, Stopped
from quiesce.leaks.series import Series
from quiesce.leaks.settling import BoundedCaches, OldObjects, collect_garbage
from quiesce.leaks.system_calls import SystemCalls
from quiesce.leaks.tracing import TRACEMALLOC_LEAKS, Site, Tracing

REST_WINDOW: Final = 2
"""What is at rest from the first round on runs three times: so what leaks in every other round is seen in any case."""

SCREENING_ROUNDS: Final = 6
SCREENING_WINDOW: Final = 4
"""Where something moved, or where other threads ran and may have moved it, a movement may have hidden a leak that it
went against; so more rounds must be seen in which nothing moves."""

ENDURANCE_WINDOW: Final = 6
WINDOW_SHARE: Final = 3
STEP_SHARE: Final = 4
"""What is watched must be at rest for a third of its rounds, and for more than a quarter of all there were: containers
grow in steps of an eighth of their size and texts that are written piece by piece in steps of a quarter, so one that
grows by the same each round is at rest for as long."""

LONGER: Final = 4
"""Memory that seems to leak is watched four times as long again, if there is time."""

LASTING_ROUNDS: Final = 128
"""Memory that grew for fewer rounds may be a cache that is not full yet: 128 entries are a usual bound."""

FILLING_ROUNDS_MAX: Final = 1_200
"""How many rounds a ring may take to fill; beyond that there is no verdict."""

LARGE_BYTES: Final = 64 << 20
LARGE_ROUNDS: Final = 8
"""Growth of so many bytes is watched for so many rounds only: the machine may not have as much again."""

SLOW_ROUNDS: Final = 24
"""What has grown for so many rounds seems to leak, if there is no time for more."""

TRACED_ROUNDS: Final = 24
TRACED_LEAST: Final = 4  # where the time is used up
STEADY_ROUNDS: Final = 8
"""What grows by the same amount in so many rounds has shown its pace: more of them say nothing new."""

ENDING_SECONDS: Final = 0.05
ENDING_STEPS: Final = 10
"""Threads and connections that are just closing get ten times so long to be gone before they are called leaks."""

BORNE_OUT: Final = 1 / 8
"""What share of the growth that traces show must be there without them. Not every trace is a block of Python or in use
of the C heap, but what only replaces older things does not grow at all."""

MEMORY: Final = (PYTHON, C_HEAP)


class LeakCheck:
    """One check: ``run_round`` runs the code once. ``clock`` returns seconds. ``rooms`` goes from check to check."""

    def __init__(
        self,
        run_round: Callable[[], Outcome],
        meters: Iterable[Meter],
        plan: Plan,
        owners: Owners,
        clock: Callable[[], float] = time.monotonic,
        rooms: dict[Quantity, Series] | None = None,
    ) -> None:
        self._plan = plan
        self._owners = owners
        self._budget = Budget(plan.seconds, clock)
        self._old = OldObjects()
        self._readings = Readings([*meters, ListMeter(self._old.lists)], plan, self._old.collect, rooms)
        self._tracing = Tracing(owners)
        self._other_threads = OtherThreads()
        self._is_disturbed = False
        self._rounds = Rounds(run_round, self._calm, self._disturb)
        self._was_traced = False
        self._watched = 0
        self._endured = 0
        self._untraced = 0
        self._filling = 0
        self._at_hand = 0
        self._is_large = False
        self._located = NOWHERE

    def judge(self) -> Judgement:
        """Run the rounds and say what leaks. What ``run_round`` raises ends the check and is raised again."""
        growths: tuple[Growth, ...] = ()
        reason, unstable = "", False
        self._budget.begin()
        for meter in self._readings.meters:
            if isinstance(meter, HeapMeter):
                meter.begin()
        try:
            suspects = self._screen()
            if suspects:
                growths = self._pursue(suspects)
        except Stopped as stopped:
            reason, unstable = str(stopped), stopped.unstable
            growths = self._growths_so_far() if unstable else ()
        finally:
            self._end()
        return Judgement(self._rounds.outcome, self._rounds.count, growths, reason, unstable, self._readings.absent())

    def _growths_so_far(self) -> tuple[Growth, ...]:
        """Return what the ledger says grew in each round until one failed, as one does for which no memory is left."""
        counted = [quantity for quantity in self._readings.moving(1) if quantity.family in IN_LEDGER]
        self._endured = max(self._endured, self._rounds.count - 1)
        return self._causes([quantity for quantity in counted if self._readings.leaks(quantity)])

    def _end(self) -> None:
        self._tracing.stop()
        self._old.thaw()
        self._is_disturbed = False
        self._readings.rest()

    def _calm(self) -> bool:
        """End the measurements; return whether there were any."""
        was_disturbed = self._is_disturbed or self._old.are_frozen
        self._was_traced = self._tracing.is_on
        self._end()
        return was_disturbed

    def _disturb(self) -> None:
        """Begin again what a round may have noticed."""
        self._old.freeze()
        if self._was_traced:
            self._tracing.start()

    # Stages. No local variable may live through a round that was not there in the one before: it would be counted.

    def _screen(self) -> frozenset[str]:
        """Return the families that do not stay the same."""
        self._rounds.first()  # the reported one: nothing is measured, and nothing is left out of collections
        self._old.freeze()
        self._readings.begin()
        self._other_threads.remember()
        self._readings.take()
        for _ in range(REST_WINDOW):
            self._rounds.repeat()
        self._readings.take(REST_WINDOW)
        window = REST_WINDOW
        if self._readings.moving(REST_WINDOW) or self._other_threads.have_run():
            window = SCREENING_WINDOW
            while self._rounds.count <= SCREENING_WINDOW or (
                self._rounds.count < SCREENING_ROUNDS and self._readings.moving(SCREENING_WINDOW)
            ):
                self._rounds.repeat()
                self._readings.take()
        # A leak in another thread lives on what malloc keeps at hand for that thread, until it is used up.
        if not self._readings.absent_family(C_HEAP):
            self._at_hand = min(AT_HAND_COUNT * self._other_threads.ran(), self._plan.rounds - 1)
        while window <= self._at_hand and HEAP not in self._readings.moving(window):
            self._rounds.repeat()
            self._readings.take()
            window += 1
        return self._suspects(frozenset(quantity.family for quantity in self._readings.moving(window)))

    def _suspects(self, moving: frozenset[str]) -> frozenset[str]:
        """Return what to pursue. Blocks of Python that grow in place are seen on the C heap, or by traces alone."""
        return moving | {PYTHON} if C_HEAP in moving or self._only_traces_show_it() else moving

    def _only_traces_show_it(self) -> bool:
        """Whether nothing but traces shows what of Python's memory grows in place."""
        return self._plan.looks_at(PYTHON) and bool(self._readings.absent_family(C_HEAP))

    def _pursue(self, suspects: frozenset[str]) -> tuple[Growth, ...]:
        """Return what leaks."""
        caches = self._watch(suspects)
        self._endure(caches, self._plan.rounds, ENDURANCE)
        longer = self._old.lists.grown()
        if self._moving() and self._old.are_replaced(self._watched, self._rounds.repeat):
            caches = self._watch(suspects)
            self._endure(caches, self._plan.rounds, ENDURANCE)
        moving = self._moving()
        growing = [each for each in moving if self._seems_to_leak(each)]
        gone = set(growing).difference(self._still_there(growing, caches))  # before traces leave garbage of their own
        if not self._is_large:
            gone.discard(HEAP)  # a cache of pytest's may have been emptied: what it let go once is gone when it lasts
        left = [quantity for quantity in growing if quantity not in gone]
        self._locate(left)
        sites: Sequence[Site] = ()
        if any(quantity.family in MEMORY for quantity in moving) or self._only_traces_show_it():
            self._old.freeze()
            is_traced = self._trace(caches)
            sites, known = self._leaking_sites(caches), self._tracing.on_c_heap_per_round()
            self._tracing.stop()
            if is_traced:
                known *= 1 + bool(sites)
                left = [each for each in left if each != BLOCKS and self._seems_to_leak(each, known)]
            elif TRACEMALLOC_LEAKS:
                left = [each for each in left if each.family != C_HEAP]
        if IN_LISTS in left:
            lines = () if sites else LongerLists(self._owners, longer).watch(self._rounds.repeat)
            if not lines:  # other growth says it already, or what runs the tests keeps its own
                left.remove(IN_LISTS)
            sites = sites or lines
        if all(quantity.family in MEMORY for quantity in left) and (left or sites):
            left, sites = self._lasting(suspects, left, sites)
        else:
            left = [quantity for quantity in left if self._readings.leaks(quantity) or quantity != HEAP]
        return self._causes(left, sites)

    def _locate(self, left: Sequence[Quantity]) -> None:
        """Find out where that was asked for which the ledger counts."""
        counted = [quantity for quantity in left if quantity.family in IN_LEDGER]
        meters = [meter for meter in self._readings.meters if isinstance(meter, LedgerMeter)]
        if counted:
            self._located = LedgerPlaces(meters, counted).watch(self._rounds.repeat, self._readings.now)

    def _causes(self, left: Sequence[Quantity], sites: Sequence[Site] = ()) -> tuple[Growth, ...]:
        causes = Causes(self._readings, self._tracing, left, sites, self._located)
        return causes.growths(self._endured, self._untraced)

    def _seems_to_leak(self, quantity: Quantity, known_per_round: float = 0.0) -> bool:
        """Whether a quantity leaks; the C heap need only seem so: one fall outweighs many small blocks, at first."""
        if not self._plan.looks_at(quantity.family):
            return False
        if quantity == HEAP and not self._is_large:
            return self._readings.growth(HEAP) > self._readings.allowed(HEAP) + known_per_round
        return self._readings.leaks(quantity, known_per_round if quantity == HEAP else 0.0)

    def _watch(self, families: frozenset[str]) -> BoundedCaches:
        """From now on look at these only, closely."""
        self._old.release()
        collect_garbage()
        caches = BoundedCaches()
        self._readings.watch(families)
        self._is_disturbed = True
        self._old.freeze()
        self._readings.start_over()
        return caches

    def _endure(self, caches: BoundedCaches, most: int, share: float) -> None:
        """Run rounds until the suspects are at rest, or have grown for long enough or for this share of the time."""
        self._watched = self._filling = 0
        while self._watched < ENDURANCE_WINDOW or not self._is_decided(caches, most, share):
            caches.empty_the_librarys()
            self._rounds.repeat()
            self._readings.take()
            self._watched += 1
        self._endured = self._rounds.count

    def _is_decided(self, caches: BoundedCaches, most: int, share: float) -> bool:
        """Whether no more rounds are needed. Raises :class:`Stopped` where more would be needed than there can be."""
        if not self._moving():
            return True
        self._is_large = self._watched >= LARGE_ROUNDS and self._readings.most_bytes() >= LARGE_BYTES
        least = min(most, SLOW_ROUNDS if share == ENDURANCE else LARGE_ROUNDS)
        is_slow = self._watched >= least and self._budget.is_used_up(share)
        if share == ENDURANCE and self._budget.is_used_up() and self._watched < least:
            raise Stopped(self._budget.over(self._rounds.count))
        if not (self._is_large or is_slow or self._watched >= most or self._is_steady(share)):
            return False
        if not caches.rings_have_filled():
            return True
        self._filling += self._watched
        if self._is_large or is_slow or self._filling > FILLING_ROUNDS_MAX:
            raise Stopped("a deque(maxlen=…) is still filling, which looks like a leak; fill it in a fixture")
        self._watched = 0
        self._readings.start_over()
        return False

    def _is_steady(self, share: float) -> bool:
        """Whether only memory moves, and by the same in each round: the confirmation sees whether a bound ends it."""
        return (
            share == ENDURANCE
            and self._watched >= STEADY_ROUNDS
            and all(
                each.family in MEMORY and is_steady(self._readings.values(each)[-STEADY_ROUNDS:])
                for each in self._moving()
            )
        )

    def _moving(self) -> list[Quantity]:
        window = max(
            ENDURANCE_WINDOW, self._watched // WINDOW_SHARE, self._rounds.count // STEP_SHARE + 2, self._at_hand + 1
        )
        return self._readings.moving(window)

    def _lasting(
        self, suspects: frozenset[str], left: list[Quantity], sites: Sequence[Site]
    ) -> tuple[list[Quantity], Sequence[Site]]:
        """Return what goes on for much longer, where that is quickly seen: a bound of the code's own would end it.

        A table whose entries go at random, or after a time, rises for as long by chance. What leaks hardly ever falls;
        where something did, it must go on for as long once more.
        """
        if self._is_large:
            return left, sites
        self._other_threads.remember()
        most = self._plan.rounds * LONGER + max(0, self._plan.rounds - self._watched)  # what endurance left out, too
        caches = self._watch(suspects)
        left, sites = self._confirmed(caches, most, left, sites)
        left = [each for each in left if each != HEAP or self._goes_on(self._readings.values(each))]
        if (left or sites) and self._readings.have_fallen():
            self._readings.start_over()  # without a pause, after which what lives for a time would fill anew
            left, sites = self._confirmed(caches, most, left, sites)
        return self._still_there(left, caches), sites

    def _confirmed(
        self, caches: BoundedCaches, most: int, left: Sequence[Quantity], sites: Sequence[Site]
    ) -> tuple[list[Quantity], Sequence[Site]]:
        """Return what goes on. In traces, which begin with nothing, what only replaces older things seems to grow."""
        self._endure(caches, most, ALL)
        moving = self._moving()  # what has come to rest by now does not leak, however long it grew
        if moving and not self._is_large and self._watched < most and self._rounds.count < LASTING_ROUNDS:
            raise Stopped(self._budget.over(self._rounds.count))
        is_borne_out = any(
            per_round > 0 and quantity in moving and self._readings.bears_out(quantity, BORNE_OUT * per_round)
            for quantity, per_round in (
                (BLOCKS, sum(site.blocks_per_round for site in sites)),
                (HEAP, sum(site.on_c_heap_per_round for site in sites)),
                (IN_LISTS, sum(site.bytes_per_round for site in sites)),
            )
        )
        left = [quantity for quantity in moving if quantity in left and self._readings.leaks(quantity)]
        return left, sites if is_borne_out else ()

    def _goes_on(self, values: Sequence[int]) -> bool:
        """Whether the C heap goes on growing: what malloc keeps at hand for other threads fills ever more slowly."""
        return rises_often(values) and (keeps_pace(values) or not self._other_threads.have_run())

    def _trace(self, caches: BoundedCaches) -> bool:
        """Run rounds under traces; return False where the tested code ends them."""
        self._tracing.start()
        self._untraced = self._rounds.count
        for number in range(LARGE_ROUNDS if self._is_large else max(TRACED_ROUNDS, self._plan.rounds)):
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

    def _let_go(self, caches: BoundedCaches) -> None:
        """Collect everything, and what caches hold that have a bound and so would come to rest in the end."""
        self._old.thaw()
        caches.empty_what_has_grown()
        collect_garbage()

    def _leaking_sites(self, caches: BoundedCaches) -> Sequence[Site]:
        """Return the sites that keep ever more, even now."""
        if not self._tracing.leaking_sites():
            return ()
        self._let_go(caches)
        self._tracing.replace_last()
        sites = self._tracing.leaking_sites()
        over_limit = sum(site.bytes_per_round for site in sites) > self._plan.limit_bytes
        return sites if over_limit and self._plan.looks_at(PYTHON) else ()

    def _still_there(self, growing: Iterable[Quantity], caches: BoundedCaches) -> list[Quantity]:
        """Return what has not gone away once all is let go, and what is just closing has had time to close."""
        left = list(growing)
        ends = {quantity: self._readings.values(quantity)[-1] - self._readings.grown(quantity) / 2 for quantity in left}
        self._let_go(caches)
        for step in range(ENDING_STEPS):
            if not left:
                break
            now = self._readings.now()
            left = [each for each in left if now.get(each, math.inf) > ends[each]]
            if not any(quantity.family in (DESCRIPTORS, THREADS) for quantity in left):
                break
            if step + 1 < ENDING_STEPS:
                SystemCalls.sleep(ENDING_SECONDS)
        return left
