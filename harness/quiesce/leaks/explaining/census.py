"""A census of containers: which hold more after each run than before, and what their code says of a bound.

What each container holds is put down by identity before the windows begin. A container that has gained the same number
of entries in each run since is what keeps the leak, or a cache that is not full yet: its bound decides.
"""

from __future__ import annotations

import functools
import gc
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from quiesce.leaks.evidence import SELDOM_RUNS, Holds, Keeper
from quiesce.leaks.explaining.bounds import Bound, BoundKind, bounds_of
from quiesce.leaks.explaining.paths import Paths, Roots
from quiesce.leaks.meters.contents import Sizes, containers, is_bounded, size_of, sizes, unit_of
from quiesce.leaks.owners import RUNNER, Owners

LOOKED_AT_MAX: Final = 12
"""How many containers are looked at, those first that gain most."""

BY_CHANCE: Final = (4, SELDOM_RUNS)
"""What keeps growth by chance gains at least one entry in so many runs; else what keeps a leak of a few runs does."""

KEYS_SEEN: Final = 4


class Census:
    """Takes one before the runs, and compares. Nothing may be left out of collections meanwhile."""

    def __init__(self, owners: Owners, roots: Roots) -> None:
        self._paths = Paths(owners, roots)
        self._before: Sizes = {}

    def begin(self) -> None:
        """Count what there is."""
        self._before = sizes(containers(gc.get_objects()))

    def keepers(self, runs: int, run_round: Callable[[], None]) -> list[Keeper]:
        """Return what has grown since, so many runs ago. If anything has, one round more is run to read its code."""
        found = containers(gc.get_objects())
        now = sizes(found)
        gained = {key: now[key] - before for key, before in self._before.items() if now.get(key, 0) > before}
        exact = {key: more for key, more in gained.items() if more % runs == 0}
        by_chance = ({key: more for key, more in gained.items() if more * each >= runs} for each in BY_CHANCE)
        chosen = next(filter(None, (exact, *by_chance)), {})
        grown = sorted((each for each in found if id(each) in chosen), key=lambda each: -chosen[id(each)])
        named: list[tuple[Any, str]] = []
        for each in grown[:LOOKED_AT_MAX]:
            if type(each) is functools._lru_cache_wrapper and is_bounded(each):
                continue  # which is emptied, to see what is gone then
            way = self._paths.find([each])
            if way is not None and way.owner != RUNNER:
                named.append((each, way.text))
            elif is_bounded(each):
                named.append((each, "a deque(maxlen=…)"))
        bounds = bounds_of([each for each, _ in named], run_round) if named else []
        return [
            _keeper(each, name, chosen[id(each)] / runs, bound)
            for (each, name), bound in zip(named, bounds, strict=True)
        ]


def _keeper(container: Any, name: str, per_run: float, bound: Bound) -> Keeper:
    return Keeper(
        name,
        _holds(container, bound),
        size_of(container),
        per_run,
        most=bound.most or 0,
        place=bound.place,
        is_guarded=bound.kind in (BoundKind.GUARDED, BoundKind.DECLARED),
        is_emptied=bound.kind is BoundKind.REMOVES,
        by_time=bound.kind is BoundKind.EXPIRES,
    )


def _holds(container: Any, bound: Bound) -> Holds:
    if bound.kind is BoundKind.MEMO:
        return Holds.KEYED
    is_sequence = isinstance(container, list | deque) or unit_of(type(container)) == "bytes"
    return Holds.SEQUENCE if is_sequence or _has_objects_as_keys(container) else Holds.KEYED


def _has_objects_as_keys(container: Any) -> bool:
    """Whether keys are objects that are compared by identity, so that no run can meet one of another."""
    if not isinstance(container, dict | set):
        return False
    keys = list(dict.keys(container) if isinstance(container, dict) else container)[-KEYS_SEEN:]
    by_identity: Any = object.__hash__
    return bool(keys) and all(type(key).__hash__ is by_identity for key in keys)
