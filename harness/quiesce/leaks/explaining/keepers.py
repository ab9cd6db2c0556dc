"""Who keeps what leaks: containers that hold more after each of a few rounds, and what refers to what is new."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from quiesce.leaks.evidence import Keeper
from quiesce.leaks.explaining.paths import Path, Paths, Roots
from quiesce.leaks.judgement import Growth
from quiesce.leaks.meters.contents import Sizes, containers, kind_in_words, referents, size_of, sizes, unit_of
from quiesce.leaks.meters.tracing import FRAMES, Site
from quiesce.leaks.meters.variables import VariableMeter
from quiesce.leaks.owners import DEPENDENCY, LIBRARY, RUNNER, TESTED, Frame, Owners
from quiesce.leaks.quantities import C_HEAP, CUPY, DESCRIPTORS, IN_LEDGER, OPENED, PYTHON, TASKS, THREADS
from quiesce.leaks.stages.rounds import Budget, Rounds, Stopped
from quiesce.leaks.stages.settling import can_freeze, collect_garbage

HALF_ROUNDS: Final = 4
"""How many rounds are watched, twice: what keeps a leak holds more after each half."""

SHOWN_MAX: Final = 3
LOOKED_AT_MAX: Final = 40
"""How many containers are looked at that hold more, those first that grow most."""

HEAP_TYPE: Final = 1 << 9
"""The flag of a class that was made at run time (Py_TPFLAGS_HEAPTYPE)."""

OF_THREADS: Final = "threading._"
"""How the names begin of what the standard library knows of each thread that runs."""

NOBODY: Final = "no Python object: lost references or native memory"

SECONDS_MAX: Final = 1.0
"""What takes longer in so many rounds is watched for one and another only."""

NAMED: Final = tuple(dict.fromkeys((PYTHON, CUPY, DESCRIPTORS, THREADS, TASKS, *OPENED, C_HEAP)))
"""Families of what an object may keep; the C heap comes last, as it holds what Python keeps as well."""


class KeeperSearch:
    """Names what keeps the leaks of one check, once these are known. ``roots`` has what lives long besides modules."""

    def __init__(self, owners: Owners, roots: Roots, rounds: Rounds, budget: Budget, variables: VariableMeter) -> None:
        self._owners = owners
        self._roots = roots
        self._rounds = rounds
        self._budget = budget
        self._variables = variables

    def named(
        self, growths: Sequence[Growth], sites: Sequence[Site], *, is_large: bool, seldom: Sequence[Keeper] = ()
    ) -> tuple[Growth, ...]:
        """Return the growths, of which one says what keeps it. It takes a few rounds, fewer where they take long.

        ``seldom`` has what was found to gain an entry now and then, where these rounds show nobody.
        """
        families = (*NAMED, *IN_LEDGER) if sites else NAMED
        found = [growth for family in families for growth in growths if growth.quantity.family == family]
        if not found:
            return tuple(growths)
        round_seconds = self._budget.elapsed_seconds / self._rounds.count
        half_rounds = 1 if is_large or 2 * HALF_ROUNDS * round_seconds > SECONDS_MAX else HALF_ROUNDS
        try:
            keepers = Keepers(self._owners, [site.frame for site in sites], self._roots, half_rounds, self._variables)
            kept = keepers.watch(self._rounds.repeat)
        except Stopped:  # the verdict stands: it was found before
            return tuple(growths)
        if kept == NOBODY and found[0].quantity.family in OPENED:
            return tuple(growths)
        if kept == NOBODY and found[0].quantity.family == PYTHON and seldom:
            kept = _shortened([f"{each.name} ({each.size:,} entries, +{each.per_run:.2g} a run)" for each in seldom])
        return tuple(replace(growth, kept=kept) if growth is found[0] else growth for growth in growths)


@dataclass(frozen=True, slots=True)
class _Grown:
    """A container that holds more. ``holds_new`` says that what it refers to is among what leaks."""

    container: Any
    per_round: float
    holds_new: bool


class Keepers:
    """Looks for what keeps what a test leaves. ``frames`` are the lines that asked for it, if they are known."""

    def __init__(
        self,
        owners: Owners,
        frames: Iterable[Frame],
        roots: Roots,
        half_rounds: int = HALF_ROUNDS,
        variables: VariableMeter | None = None,
    ) -> None:
        self._owners = owners
        self._frames = frozenset(frames)
        self._paths = Paths(owners, roots)
        self._half_rounds = half_rounds
        self._variables = VariableMeter(owners) if variables is None else variables

    def watch(self, run_round: Callable[[], None]) -> str:
        """Run rounds, with nothing left out of collections; return what keeps more and more, a line each."""
        collect_garbage()
        before, short = sizes(containers(gc.get_objects())), self._variables.replaced()
        at_exit = [functions_at_exit()]
        self._run_half(run_round)
        halfway, longer = sizes(containers(gc.get_objects())), self._variables.replaced()
        at_exit.append(functions_at_exit())
        new, leaking = self._new_objects(run_round)
        at_exit.append(functions_at_exit())
        named = self._named(self._grown(before, halfway, new, leaking))
        named = named or self._replaced(short, longer) or self._text_of_new(leaking)
        if named != NOBODY:
            return named
        return self._at_exit(at_exit) or self._by_turns(before, halfway, frozenset(map(id, new))) or NOBODY

    def _new_objects(self, run_round: Callable[[], None]) -> tuple[list[Any], list[Any]]:
        """Run half of the rounds; return what is new then, and what of it leaks.

        While code is traced each number that is made for an identity is traced too, with all of the stack. So nothing
        else is done then, and what exists already is frozen: to find what is new takes a second otherwise.
        """
        is_frozen = can_freeze()
        is_traced = bool(self._frames) and not tracemalloc.is_tracing()
        known = frozenset(map(id, gc.get_objects()))
        if is_frozen:
            gc.freeze()
        if is_traced:
            tracemalloc.start(FRAMES)
        try:
            gc.collect()  # CPython keeps tuples at hand that are gone, and those have no trace when they are used again
            self._run_half(run_round)
            found = [each for each in gc.get_objects() if id(each) not in known]
            fresh = frozenset(map(id, found))
            of_frames = frozenset(id(each) for each in found if self._is_of_frames(each))
        finally:
            if is_traced:
                tracemalloc.stop()
            if is_frozen:
                gc.unfreeze()
        del found  # a cycle that the rounds replaced can be collected only now, with what it holds
        collect_garbage()
        new = [each for each in gc.get_objects() if id(each) in fresh]
        return new, [each for each in new if id(each) in of_frames]

    def _run_half(self, run_round: Callable[[], None]) -> None:
        for _ in range(self._half_rounds):
            run_round()
        collect_garbage()

    def _is_of_frames(self, each: object) -> bool:
        """Whether a line that leaks asked for an object.

        CPython 3.11 finds no trace of an instance with attributes; of those the class says whose they are.
        """
        if not self._frames:
            return False
        trace = tracemalloc.get_object_traceback(each)
        if trace is None:
            module = type(each).__module__
            return type(each).__flags__ & HEAP_TYPE != 0 and self._paths.owner_of(str(module)) in (TESTED, DEPENDENCY)
        frames = [(frame.filename, frame.lineno) for frame in reversed(trace)]
        return self._owners.owner(frames) in self._frames

    def _grown(self, before: Sizes, halfway: Sizes, new: Sequence[Any], leaking: Sequence[Any]) -> list[_Grown]:
        """Return the older containers that hold more after each half, those first that hold what leaks."""
        is_new, leaks = frozenset(map(id, new)), frozenset(map(id, leaking))
        found = containers(gc.get_objects())
        now = sizes(found)
        keys = {key for key, size in now.items() if before.get(key, size) < halfway.get(key, 0) < size}
        grown = [
            _Grown(each, (now[id(each)] - before[id(each)]) / (2 * self._half_rounds), self._holds(each, leaks))
            for each in found
            if id(each) in keys and id(each) not in is_new
        ]
        return sorted(grown, key=lambda grown: (not grown.holds_new, -grown.per_round))

    def _holds(self, container: Any, leaks: frozenset[int]) -> bool:
        return not leaks.isdisjoint(map(id, referents([container])))

    def _named(self, grown: Sequence[_Grown]) -> str:
        """Name what grows, a line each: what has no bound rather than what is only not full yet."""
        named: dict[str, tuple[tuple[bool, bool, bool], str]] = {}
        for each in grown[:LOOKED_AT_MAX]:
            way = self._paths.find([each.container])
            if way is None or way.owner == RUNNER or way.text.startswith(OF_THREADS) or way.text in named:
                continue
            rank = way.is_bounded, way.is_weak, way.owner == LIBRARY
            named[way.text] = rank, f"{way.text} ({_contents(each, way)})"
        best = min((rank for rank, _ in named.values()), default=None)
        lines = [text for rank, text in named.values() if rank == best]
        return _shortened(lines)

    def _replaced(self, before: Mapping[str, int], halfway: Mapping[str, int]) -> str:
        """Name the variables whose values were replaced by longer ones, after each half."""
        return _shortened(
            [
                f"{name[:-1]}, {now:,} long, +{_number((now - before[name]) / (2 * self._half_rounds))} a round)"
                for name, now in self._variables.replaced().items()
                if before.get(name, now) < halfway.get(name, 0) < now
            ]
        )

    def _by_turns(self, before: Sizes, halfway: Sizes, new: frozenset[int]) -> str:
        """Name the variables in which other containers hold more after each round, and together in each half."""
        found = containers(gc.get_objects())
        now = sizes(found)
        gained = {key: now[key] - size for key, size in before.items() if now.get(key, 0) > size and key not in new}
        within: dict[str, list[int]] = {}
        most = sorted((each for each in found if id(each) in gained), key=lambda each: -gained[id(each)])
        for each in most[:LOOKED_AT_MAX]:
            way = self._paths.find([each])
            if way is not None and way.owner in (TESTED, DEPENDENCY) and not way.is_bounded and not way.is_weak:
                within.setdefault(way.text.partition("[")[0], []).append(id(each))
        named = []
        for variable, keys in within.items():
            first = sum(halfway.get(key, before[key]) - before[key] for key in keys)
            second = sum(gained[key] for key in keys) - first
            if len(keys) > 1 and min(first, second) >= self._half_rounds:
                per_round = _number((first + second) / (2 * self._half_rounds))
                named.append(f"{variable} ({len(keys):,} containers in it by turns, +{per_round} a round)")
        return _shortened(named)

    def _at_exit(self, counts: Sequence[int]) -> str:
        """Name :mod:`atexit`, which hides its functions from the garbage collector, if it has more after each half."""
        before, halfway, now = counts
        per_round = (now - before) / (2 * self._half_rounds)
        return f"atexit ({now:,} functions, +{_number(per_round)} a round)" if before < halfway < now else ""

    def _text_of_new(self, leaking: Sequence[Any]) -> str:
        if not leaking:
            return NOBODY
        (kind, _), *_ = Counter(map(type, leaking)).most_common(1)
        way = self._paths.find(leaking[-LOOKED_AT_MAX:])
        objects = f"{_number(len(leaking) / self._half_rounds)} new objects a round, mostly of type {kind.__name__}"
        return NOBODY if way is None or way.owner == RUNNER else f"{way.text} ({objects})"


def functions_at_exit() -> int:
    """Return how many functions are to run when the interpreter ends, as far as it tells."""
    count: Callable[[], int] = getattr(sys.modules.get("atexit"), "_ncallbacks", int)
    return count()


def _contents(grown: _Grown, way: Path) -> str:
    kind, size = type(grown.container), size_of(grown.container)
    return f"{way.kind or kind_in_words(kind)}, {size:,} {unit_of(kind)}, +{_number(grown.per_round)} a round"


def _number(count: float) -> str:
    return f"{count:,.0f}" if count == round(count) else f"{count:,.2f}"


def _shortened(lines: Sequence[str]) -> str:
    more = len(lines) - SHOWN_MAX
    return "\n".join([*lines[:SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])])
