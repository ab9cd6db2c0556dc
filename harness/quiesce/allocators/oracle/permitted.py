"""A permitted set: the outcomes that a request may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce.model.outcomes import NOT_READY, Allocated, Done, Outcome, OutOfMemory, Rejected

ANY: Final = "*"
_SERVED: Final = (Done, Allocated)


@dataclass(frozen=True, slots=True)
class Permitted:
    """What may be answered: success, out of memory, rejections by code (``*``: any code), or anything at all."""

    success: bool = True
    out_of_memory: bool = False
    codes: frozenset[str] = frozenset()
    anything: bool = False

    def permits(self, outcome: Outcome) -> bool:
        """Whether the outcome is among them."""
        if self.anything:
            return True
        if isinstance(outcome, _SERVED):
            return self.success
        if isinstance(outcome, OutOfMemory):
            return self.out_of_memory
        if isinstance(outcome, Rejected):
            return ANY in self.codes or outcome.code in self.codes
        return True

    def __str__(self) -> str:
        if self.anything:
            return "any answer"
        words = ["success"] if self.success else []
        words += ["out of memory"] if self.out_of_memory else []
        words += ["a rejection" if code == ANY else f"rejected {code}" for code in sorted(self.codes)]
        return " or ".join(words)


SUCCESS: Final = Permitted()
ANYTHING: Final = Permitted(anything=True)
REFUSED: Final = Permitted(success=False, codes=frozenset({ANY}))
MEMORY: Final = Permitted(out_of_memory=True)
ANSWERED: Final = Permitted(codes=frozenset({NOT_READY}))


def only(*codes: str) -> Permitted:
    """Return the set of rejections with one of ``codes``."""
    return Permitted(success=False, codes=frozenset(codes))
