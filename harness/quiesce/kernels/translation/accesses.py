"""What an instruction does with memory, as its check sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

AccessKind = Literal["load", "store", "atomic", "copy"]
"""A copy writes shared memory later: up to when its thread waits for it."""
_KINDS: Final[dict[AccessKind, int]] = {"load": 0, "store": 1, "atomic": 2, "copy": 3}
_SPACES: Final = {"generic": 0, "global": 0, "const": 0, "shared": 1, "local": 2}


@dataclass(frozen=True, slots=True)
class Access:
    """What an instruction does with memory."""

    space: str
    bytes: int
    kind: AccessKind

    def number(self, kinds: int = 0) -> int:
        """Return what the runtime is told of it; ``kinds``: those of its use."""
        return self.bytes | _KINDS[self.kind] << 8 | _SPACES[self.space] << 12 | kinds << 16


@dataclass(frozen=True, slots=True)
class Judged:
    """What the check of an access depends on.

    ``kinds``: those of its use; ``may_race``: with a thread of its block, where it uses shared memory.
    """

    access: Access
    kinds: int
    may_race: bool
    array: tuple[int, int] | None = None
    """Where the array of shared memory lies that the access has to stay in, and its size."""
