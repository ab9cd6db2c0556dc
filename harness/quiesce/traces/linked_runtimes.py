"""CUDA runtimes that were linked into the files of a program statically: which were redirected, and which were not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.flavour import Flavour
from quiesce.simulator.flavours import Simulated
from quiesce.simulator.loads import Load, Loaded

_OF_A_MAJOR: Final = 1000
_OF_A_MINOR: Final = 10


@dataclass(frozen=True, slots=True)
class LinkedRuntime:
    """A runtime whose functions were redirected. ``version`` is 12090 for 12.9, and 0 where it is not known."""

    file: Path
    version: int

    @property
    def major(self) -> int:
        """The number by which a flavour is chosen."""
        return self.version // _OF_A_MAJOR

    def fits(self, simulated: Simulated) -> bool:
        """Say whether the simulated runtime has the layouts and rules of this one."""
        return not self.version or (simulated.flavour is Flavour.CUDA and simulated.version == self.major)

    def __str__(self) -> str:
        return f"CUDA {self.major}.{self.version % _OF_A_MAJOR // _OF_A_MINOR}"


def linked_runtimes(loads: Iterable[Load]) -> tuple[LinkedRuntime, ...]:
    """Return what was redirected, each file once."""
    own = (load for load in loads if load.kind is Loaded.REDIRECTED)
    found = {load.path: LinkedRuntime(load.path, int(load.detail or 0)) for load in own}
    return tuple(found.values())


def left_alone(loads: Iterable[Load]) -> Mapping[Path, str]:
    """Return the files whose runtime was not redirected, and why."""
    return {load.path.resolve(): load.detail for load in loads if load.kind is Loaded.UNREDIRECTED}
