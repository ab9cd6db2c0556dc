"""What the sweep runs: short programs that make an allocator grow in different ways and give everything back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce.backend import Capability, Description
from quiesce.operations import Operation
from quiesce.requests import parse_request


@dataclass(frozen=True, slots=True)
class Program:
    """Request lines that leave nothing behind, so that they can be run again in the same context."""

    name: str
    title: str
    needs: frozenset[Capability]
    lines: tuple[str, ...]

    @property
    def fills_the_device(self) -> bool:
        """Whether it asks for device memory and nothing else, so that a device can be too small for it."""
        return self.needs == {Capability.MEMORY}

    def operations(self, description: Description) -> tuple[Operation, ...]:
        """Return the operations; what only tidies up is left out where a backend cannot do it."""
        can = description.capabilities
        return tuple(
            parse_request(line)
            for line in self.lines
            if (Capability.POOL in can or not line.startswith("trim"))
            and (Capability.STREAMS in can or line != "synchronize device")
            and (Capability.PINNED in can or line != "trim pinned")
        )


_BURST: Final = 12

PROGRAMS: Final = (
    Program(
        "growth",
        "Requests of every size, one larger than the other",
        frozenset({Capability.MEMORY}),
        (
            "a = allocate 1KiB",
            "b = allocate 64KiB",
            "c = allocate 1MiB",
            "free b",
            "d = allocate 3MiB",
            "e = allocate 200KiB",
            "free a",
            "free c",
            "free d",
            "free e",
            "synchronize device",
            "trim",
        ),
    ),
    Program(
        "burst",
        "Many blocks of one size, and a large one in the holes between them",
        frozenset({Capability.MEMORY}),
        (
            *(f"b[{number}] = allocate 64KiB" for number in range(_BURST)),
            *(f"free b[{number}]" for number in range(0, _BURST, 2)),
            "c = allocate 512KiB",
            *(f"free b[{number}]" for number in range(1, _BURST, 2)),
            "free c",
            "synchronize device",
            "trim",
        ),
    ),
    Program(
        "streams",
        "Blocks that change hands between streams",
        frozenset({Capability.MEMORY, Capability.STREAMS, Capability.LAUNCH}),
        (
            "s = create stream",
            "t = create stream",
            "a = allocate 1MiB on s",
            "launch on s writes=a",
            "free a on s",
            "b = allocate 1MiB on t",
            "launch on t writes=b",
            "c = allocate 2MiB on s",
            "launch on s writes=c",
            "free b on t",
            "free c on s",
            "synchronize device",
            "destroy stream s",
            "destroy stream t",
            "trim",
        ),
    ),
    Program(
        "pools",
        "A pool that is made, filled and destroyed",
        frozenset({Capability.MEMORY, Capability.POOLS}),
        (
            "p = create pool",
            "a = allocate 64KiB pool=p",
            "b = allocate 3MiB pool=p",
            "free a",
            "free b",
            "destroy pool p",
            "synchronize device",
            "trim",
        ),
    ),
    Program(
        "pinned",
        "Pinned host memory",
        frozenset({Capability.PINNED}),
        (
            "a = allocate 64KiB pinned",
            "b = allocate 1MiB pinned",
            "free a",
            "free b",
            "synchronize device",
            "trim pinned",
        ),
    ),
    Program(
        "managed",
        "Managed memory",
        frozenset({Capability.MANAGED}),
        (
            "a = allocate 64KiB managed",
            "b = allocate 1MiB managed",
            "free a",
            "free b",
            "synchronize device",
            "trim managed",
        ),
    ),
    Program(
        "staging",
        "Host data that is brought to the device",
        frozenset({Capability.PAGEABLE, Capability.STAGING}),
        (
            "h = allocate 64KiB pageable",
            "a = stage h",
            "b = stage h",
            "synchronize device",
            "free a",
            "free b",
            "free h",
            "synchronize device",
            "trim",
            "trim pinned",
        ),
    ),
)
