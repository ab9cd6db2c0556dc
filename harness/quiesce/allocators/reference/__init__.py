"""The reference: the trusted implementation, plain Python from the standard library, readable as a specification.

Bottom to top: ``ledger`` sees every backing call; ``backing`` is memory of a capacity; ``captures`` and ``streams``
order work; ``pool``, ``pinned_pool``, ``runtime`` and ``tape`` have the components under study; ``world`` names them
and builds a context of them; ``machine`` drives it operation by operation.
``museum`` replaces one component at a time by a historic bug.
"""

from quiesce.allocators.reference.machine import MACHINE_GAUGES, Machine
from quiesce.allocators.reference.world import Parts

__all__ = ["MACHINE_GAUGES", "Machine", "Parts"]
