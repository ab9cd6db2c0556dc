"""A leak check: rounds of one piece of code, until what grows is told apart from what only warms up.

Screening comes first, a few rounds that most code passes. Quick code that asks for a check is then run up to sixty
times more, for what leaks seldom. Then windows and levers: the rest is run until it rests, or has grown for as long as
an accusation needs. Nothing is traced so far. Rounds under traces follow only where memory has grown: they say whose it
is, and which line asked for it. Last comes what keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.leaks.explaining.causes import Causes
from quiesce.leaks.explaining.census import Census
from quiesce.leaks.explaining.keepers import KeeperSearch
from quiesce.leaks.explaining.left_files import LeftFilesSearch
from quiesce.leaks.explaining.lines import Opened, fuller_variables, longer_lists, who_opened
from quiesce.leaks.explaining.native_stacks import NativeStacks
from quiesce.leaks.explaining.paths import Roots, no_roots
from quiesce.leaks.judgement import Growth, Judgement, LeftFiles, Outcome
from quiesce.leaks.meters import meters_here
from quiesce.leaks.meters.contexts import ContextMeter
from quiesce.leaks.meters.ledger import NOWHERE, LedgerMeter, LedgerPlaces, own_machine
from quiesce.leaks.meters.lists import IN_LISTS, Listed, ListMeter, ListPlaces
from quiesce.leaks.meters.memory import BLOCKS, HEAP, HeapMeter, enlarge_table
from quiesce.leaks.meters.none_references import NoneReferences
from quiesce.leaks.meters.own import OWN
from quiesce.leaks.meters.peaks import Peaks, measure_peaks
from quiesce.leaks.meters.tracing import TRACEMALLOC_LEAKS, Site, Tracing
from quiesce.leaks.meters.variables import IN_VARIABLES, VariableMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import (
    ANONYMOUS,
    C_HEAP,
    CONTEXTS,
    IN_LEDGER,
    LASTING,
    MEMORY,
    PYTHON,
    REFERENCES,
    Meter,
    Quantity,
    Surroundings,
)
from quiesce.leaks.readings import Readings, Series, UsualStep, measured_from
from quiesce.leaks.stages.rounds import Budget, Rounds, Stopped
from quiesce.leaks.stages.screening import Screening, SeldomLeaks
from quiesce.leaks.stages.settling import BoundedCaches, ImmortalClasses, OldObjects
from quiesce.leaks.stages.windows import LettingGo, TracedRounds, Windows
from quiesce.leaks.stages.work_clock import WorkClock

__all__ = ["OWN", "LeakCheck", "LeakChecker", "Owners", "Peaks", "measured_from"]

QUICK_SECONDS: Final = 0.1
"""A round of no more work than that is quick."""


PATIENCE: Final = 4
"""Code that asks for a check may take so many times its time before there is no verdict."""

SELDOM_RUNS: Final = 88
"""What leaks seldom may rest for many runs, so that a rest counts after so many only."""

BORNE_OUT: Final = 1 / 8
"""What share of the growth that traces show must be there without them. Not every trace is a block of Python or in use
of the C heap, but what only replaces older things does not grow at all."""

HALF_A_BLOCK: Final = 0.5
"""Two figures of blocks per round that differ by less may be one number."""

CONTAINERS: Final = (IN_LISTS, IN_VARIABLES)
"""What grows in place, without a block of Python's allocator."""

IN_PLACE: Final = 5 / 4
"""How much of the C heap it takes for each byte that it holds: a buffer is enlarged by up to a quarter ahead."""


class LeakChecker:
    """The door: checks one piece of code after the other. What is known of the process goes from check to check.

    ``roots`` names what lives long besides modules.
    """

    def __init__(self, owners: Owners, roots: Roots = no_roots) -> None:
        self._machine = own_machine()
        self.meters = meters_here(Surroundings(owners, self._machine))
        self.contexts = next(meter for meter in self.meters if isinstance(meter, ContextMeter))
        self._owners = owners
        self._roots = roots
        self._rooms: dict[Quantity, Series] = {}
        self._places = ListPlaces()
        self._variables = VariableMeter(owners)
        enlarge_table()

    def leave_out(self, owners: Iterable[object]) -> None:
        """Never count the lists that are attributes of these, such as what runs the tests."""
        self._places.leave_out(owners)

    def check(self, run_round: Callable[[], Outcome], plan: Plan, own: Iterable[Meter] = ()) -> Judgement:
        """Run rounds of some code and say what leaks; ``own`` counts what the code itself names."""
        judgement = LeakCheck(
            run_round,
            [*self.meters, *own],
            plan,
            self._owners,
            rooms=self._rooms,
            roots=self._roots,
            places=self._places,
            variables=self._variables,
        ).judge()
        if any(growth.quantity.family == CONTEXTS for growth in judgement.growths):
            self.contexts.close_new()
        return judgement

    def peaks(self, run_round: Callable[[], Outcome], plan: Plan) -> Peaks:
        """Run one round more, and return how much memory it had in use at most."""
        return measure_peaks(run_round, dict(plan.peaks), self._machine)


@dataclass(frozen=True, slots=True)
class Found:
    """What seems to leak so far: the quantities that are left, and the lines that keep ever more, where known."""

    left: Sequence[Quantity]
    sites: Sequence[Site] = ()

    def only(self, stays: Callable[[Quantity], bool]) -> Found:
        """Return what is left if nothing else stays."""
        return replace(self, left=list(filter(stays, self.left)))


class LeakCheck:
    """One check: ``run_round`` runs the code once. ``clock`` returns seconds of work, by default of its own.

    ``rooms``, ``places`` and ``variables`` go from check to check.
    """

    def __init__(
        self,
        run_round: Callable[[], Outcome],
        meters: Iterable[Meter],
        plan: Plan,
        owners: Owners,
        clock: Callable[[], float] | None = None,
        rooms: dict[Quantity, Series] | None = None,
        roots: Roots = no_roots,
        places: ListPlaces | None = None,
        variables: VariableMeter | None = None,
    ) -> None:
        self._plan = plan
        self._owners = owners
        clock = clock or WorkClock()
        self._budget = Budget(plan.seconds * (PATIENCE if plan.looks_longer else 1), clock)
        self._variables = variables or VariableMeter(owners)
        self._old = old = OldObjects(places)
        self._readings = readings = Readings([*meters, ListMeter(old.lists), self._variables], plan, old.collect, rooms)
        self._rounds = rounds = Rounds(run_round, self._calm, self._disturb)
        self._tracing = Tracing(owners)
        self._was_traced = False
        self._letting_go = LettingGo(old, readings)
        self._files = LeftFilesSearch(owners)
        self._screening = Screening(readings, rounds, old, plan, self._files, clock)
        self._seldom = SeldomLeaks(readings, rounds, plan, self._budget)
        census = Census(owners, roots)
        self._windows = Windows(readings, rounds, old, plan, self._budget, census)
        self._traced = TracedRounds(self._tracing, rounds, self._letting_go, plan, self._budget)
        self._keepers = KeeperSearch(owners, roots, rounds, self._budget, self._variables)
        self._native_stacks = NativeStacks(owners, rounds, self._budget, readings)
        self._explained: UsualStep | None = None
        """What Python's own growth takes of the C heap in most rounds, if there is any."""
        self._located = NOWHERE
        self._opened = Opened()

    def judge(self) -> Judgement:
        """Run the rounds and say what leaks. What ``run_round`` raises ends the check and is raised again."""
        growths: tuple[Growth, ...] = ()
        lost: tuple[Growth, ...] = ()
        files: LeftFiles | None = None
        reason, unstable = "", False
        self._budget.begin()
        for meter in self._readings.meters:
            if isinstance(meter, HeapMeter):
                meter.begin()
        try:
            moving = self._screening.moving()
            if self._screening.may_leave_files and self._plan.gauges is None and self._is_quick():
                files = self._files.find(self._rounds.repeat)
            if self._plan.looks_longer and self._plan.looks_at(REFERENCES) and self._is_quick():
                lost = NoneReferences(self._rounds, self._old).find()
            if self._plan.looks_longer:
                self._windows.rests_from = SELDOM_RUNS
            if not moving:
                moving = self._seldom.moving()
            if suspects := self._suspects(moving):
                growths = self._judged(suspects)
            growths = (*lost, *growths)
        except Stopped as stopped:
            reason, unstable = str(stopped), stopped.unstable
            growths = self._growths_so_far() if unstable else ()
        finally:
            self._end()
        rounds, absent = self._rounds, self._readings.absent()
        return Judgement(rounds.outcome, rounds.runs, growths, reason, unstable, absent, files)

    def _is_quick(self) -> bool:
        """Whether some rounds more cost little."""
        return self._budget.elapsed_seconds < QUICK_SECONDS * self._rounds.count

    def _growths_so_far(self) -> tuple[Growth, ...]:
        """Return what the ledger says grew in each round until one failed, as one does for which no memory is left."""
        counted = [quantity for quantity in self._readings.moving(1) if quantity.family in IN_LEDGER]
        self._windows.ended = max(self._windows.ended, self._rounds.count - 1)
        return self._causes([quantity for quantity in counted if self._readings.leaks(quantity)])

    def _end(self) -> None:
        self._tracing.stop()
        self._old.thaw()
        self._windows.is_watching = False
        self._readings.rest()

    def _calm(self) -> bool:
        """End the measurements; return whether there were any."""
        was_disturbed = self._windows.is_watching or self._old.are_frozen
        self._was_traced = self._tracing.is_on
        self._end()
        return was_disturbed

    def _disturb(self) -> None:
        """Begin again what a round may have noticed."""
        self._old.freeze()
        if self._was_traced:
            self._tracing.start()

    def _suspects(self, moving: frozenset[str]) -> frozenset[str]:
        """Return what to pursue. Blocks of Python that grow in place are seen on the C heap alone."""
        return moving | {PYTHON} if C_HEAP in moving else moving

    def _judged(self, suspects: frozenset[str]) -> tuple[Growth, ...]:
        """Return what leaks. Raises :class:`Stopped` if that is only what CPython itself never frees."""
        known = ImmortalClasses(self._rounds, self._old).made() if PYTHON in suspects else ""
        left = suspects.difference(MEMORY) if known else suspects
        growths = self._pursue(left) if left else ()
        if known and not growths:
            raise Stopped(known)
        return growths

    # No local variable may live through a round that was not there in the one before: it would be counted.

    def _pursue(self, suspects: frozenset[str]) -> tuple[Growth, ...]:
        """Return what leaks of the suspects: what goes on growing and is held on to, with what it comes from."""
        caches = self._windows.watch(suspects)
        growing = self._windows.run(caches)
        if growing and self._old.are_replaced(self._windows.count, self._rounds.repeat):
            caches = self._windows.watch(suspects)
            growing = self._windows.run(caches)
        longer = self._old.lists.grown()
        found = self._held_on_to(growing, caches)
        self._locate(found.left)
        if any(quantity.family in MEMORY for quantity in growing):
            found = self._put_down_to_lines(found, caches)
        if not found.sites:
            return self._explain(self._in_containers(found, longer))
        return self._explain(found.only(lambda each: each not in CONTAINERS))

    def _held_on_to(self, growing: Sequence[Quantity], caches: BoundedCaches) -> Found:
        """Return what grows, but for what goes once all is let go of; that comes before traces leave garbage."""
        looked_at = [each for each in growing if self._plan.looks_at(each.family)]
        may_go = looked_at if self._windows.caches_grew else [each for each in looked_at if each.family not in LASTING]
        gone = set(may_go).difference(self._letting_go.still_there(may_go, caches))
        found = Found([quantity for quantity in looked_at if quantity not in gone])
        if gone:  # an allocator may keep at hand what caches let go
            found = found.only(lambda each: each.family != ANONYMOUS)
        return found

    def _put_down_to_lines(self, found: Found, caches: BoundedCaches) -> Found:
        """Run rounds under traces; return the lines that keep ever more, and what else they do not account for."""
        self._old.freeze()
        is_traced = self._traced.run(caches, is_large=self._windows.is_large)
        sites = [*self._traced.leaking_sites(caches)] if is_traced else []
        sites = sites if self._bear_out(sites, found.left) else []
        self._tracing.stop()
        if is_traced:
            untold = self._untold_on_c_heap(sites)
            of_sites = sum(site.on_c_heap_per_round for site in sites)  # a buffer that grows in place rises seldom
            in_place = IN_PLACE * sum(self._readings.growth(each) for each in CONTAINERS if each in found.left)
            known = max(self._tracing.on_c_heap_per_round(), of_sites, in_place) + untold
            usual = self._tracing.usual_step_on_c_heap()
            if sites or BLOCKS in found.left:  # what runs the tests keeps blocks, too, in lists that grow by steps
                self._explained = replace(usual, per_round=max(usual.per_round, in_place) + untold)
            found = found.only(lambda each: each != BLOCKS and self._is_beyond(each, known))
        elif TRACEMALLOC_LEAKS:
            found = found.only(lambda each: each.family != C_HEAP)
        return replace(found, sites=sites)

    def _bear_out(self, sites: Sequence[Site], growing: Sequence[Quantity]) -> bool:
        """Whether what grows without traces bears out what they say."""
        return any(
            per_round > 0 and quantity in growing and self._readings.growth(quantity) > BORNE_OUT * per_round
            for quantity, per_round in (
                (BLOCKS, sum(site.blocks_per_round for site in sites)),
                (HEAP, sum(site.on_c_heap_per_round for site in sites)),
                (IN_LISTS, sum(site.bytes_per_round for site in sites)),
                (IN_VARIABLES, sum(site.bytes_per_round for site in sites)),
            )
        )

    def _untold_on_c_heap(self, sites: Sequence[Site]) -> float:
        """Return what small blocks of these lines may take of the C heap, where they are more than Python counts.

        Nobody says which of them lie there.
        """
        lie_there = sum(site.small_per_round for site in sites) - self._readings.growth(BLOCKS)
        return sum(site.small_in_chunks_per_round for site in sites) if lie_there >= HALF_A_BLOCK else 0.0

    def _in_containers(self, found: Found, longer: Sequence[Listed]) -> Found:
        """Return the lines that add to lists or else to variables; neither leaks if only a test's runner adds."""
        told: Quantity | None = None
        sites: Sequence[Site] = ()
        if IN_LISTS in found.left and (sites := longer_lists(self._owners, longer, self._rounds.repeat)):
            told = IN_LISTS
        elif IN_VARIABLES in found.left and (
            sites := fuller_variables(self._owners, self._variables, self._rounds.repeat)
        ):
            told = IN_VARIABLES
        return replace(found, sites=sites).only(lambda each: each == told or each not in CONTAINERS)

    def _explain(self, found: Found) -> tuple[Growth, ...]:
        """End the measurements, and say of what leaks where it comes from and what keeps it."""
        growths = self._causes(found.left, found.sites)
        self._end()
        if not self._windows.is_large:
            growths = self._native_stacks.named(growths, found.sites)
        return self._keepers.named(
            growths, found.sites, is_large=self._windows.is_large, seldom=self._windows.seldom_keepers()
        )

    def _locate(self, left: Sequence[Quantity]) -> None:
        """Find out where that was asked for which the ledger counts, and which lines opened what stays open."""
        counted = [quantity for quantity in left if quantity.family in IN_LEDGER]
        meters = [meter for meter in self._readings.meters if isinstance(meter, LedgerMeter)]
        if counted:
            self._located = LedgerPlaces(meters, counted).watch(self._rounds.repeat, self._readings.now)
        self._opened = who_opened(self._owners, self._readings.meters, left, self._rounds.repeat)

    def _causes(self, left: Sequence[Quantity], sites: Sequence[Site] = ()) -> tuple[Growth, ...]:
        causes = Causes(self._readings, self._tracing, left, sites, self._located, self._opened, self._owners)
        return causes.growths(self._windows.ended, self._traced.untraced)

    def _is_beyond(self, quantity: Quantity, known_per_round: float = 0.0) -> bool:
        """Whether a quantity leaks beyond what Python's growth accounts for, of which the C heap holds a part."""
        if quantity != HEAP:
            return True
        is_more = self._windows.is_large or self._readings.leaks(HEAP, known_per_round)
        return is_more and (self._explained is None or self._readings.is_beyond(HEAP, self._explained))
