"""What the code that ran says of the bound of a container: how many entries it may hold, or what takes them out."""

from __future__ import annotations

import enum
import functools
import types
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any


class BoundKind(enum.Enum):
    """What bounds a container, the weakest first."""

    NONE = enum.auto()
    MEMO = enum.auto()
    """Code asks whether it has an entry already."""
    REMOVES = enum.auto()
    """Code takes entries out."""
    EXPIRES = enum.auto()
    """Code takes entries out and reads a clock."""
    GUARDED = enum.auto()
    """Code compares its length."""
    DECLARED = enum.auto()
    """It was made with a ``maxlen`` or a ``maxsize``."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound. ``most`` is how many entries it allows, if that can be read; ``place`` is ``file:line``."""

    kind: BoundKind = BoundKind.NONE
    most: int | None = None
    place: str = ""


def codes_that_run(run_round: Callable[[], None]) -> frozenset[types.CodeType] | None:
    """Run one round; return the code that ran, or None where that cannot be told."""
    run_round()
    return None


class BoundReader:
    """Reads bounds from the code that ``ran``; from all code if that is None."""

    def __init__(self, ran: Collection[types.CodeType] | None) -> None:
        self._ran = ran

    def bound_of(self, container: Any) -> Bound:
        """Return the strongest bound that code names for a container."""
        return _declared(container)


def _declared(container: Any) -> Bound:
    if type(container) is functools._lru_cache_wrapper:
        most = container.cache_parameters()["maxsize"]
        return Bound(BoundKind.MEMO) if most is None else Bound(BoundKind.DECLARED, most)
    if isinstance(container, deque) and container.maxlen is not None:
        return Bound(BoundKind.DECLARED, container.maxlen)
    return Bound()
