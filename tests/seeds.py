"""What a run of the tests takes as a sample, and the seed that chooses it.

``QUIESCE_SEED`` is 0, and in continuous integration a number from the commit: each commit examines other allocators
with other sequences. ``tox -e soak`` examines all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

VARIABLE: Final = "QUIESCE_SEED"
SEED: Final = int(os.environ.get(VARIABLE, "0"))
OPERATIONS: Final = int(os.environ.get("QUIESCE_SOAK_OPERATIONS", "750"))
"""Of a campaign, in each mode."""
SOAKING: Final = OPERATIONS >= 100_000
_Item = TypeVar("_Item")


def sampled(items: Sequence[_Item], one_in: int) -> Sequence[_Item]:
    """Return one of every ``one_in`` items, as the seed chooses; all in a soak."""
    return items if SOAKING else items[SEED % one_in :: one_in]
