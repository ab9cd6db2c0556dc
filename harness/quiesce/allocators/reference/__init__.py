"""The reference: the trusted implementation, plain Python from the standard library, readable as a specification.

Bottom to top: ``ledger`` sees every backing call; ``backing`` is memory of a capacity; ``captures`` and ``streams``
order work; ``pool``, ``pinned_pool``, ``runtime`` and ``tape`` have the components under study; ``world`` names them
and builds a context of them; ``machine`` drives it operation by operation.
``museum`` replaces one component at a time by a historic bug.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.allocators.reference.machine import MACHINE_GAUGES as MACHINE_GAUGES
    from quiesce.allocators.reference.machine import Machine as Machine
    from quiesce.allocators.reference.museum import FAULTS as FAULTS
    from quiesce.allocators.reference.world import Parts as Parts
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "machine": "MACHINE_GAUGES Machine",
            "museum": "FAULTS",
            "world": "Parts",
        },
    )
