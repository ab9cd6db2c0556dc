"""Faults of graph memory: what a capture allocated and freed goes to somebody else, in the wrong order, or nowhere."""

from __future__ import annotations

from typing import Final

from quiesce.allocators.reference.captures import Captures
from quiesce.allocators.reference.objects import Block, Capture, Keeper, Stream
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.world import Fault, Parts


class _HandsMemoryOut(CachingPool):
    def is_of_graph(self, block: Block, capture: Capture, stream: Stream) -> bool:
        return False


class _OrderedByOrigin(Capture):
    def keep(self, block: Block, pool: Keeper) -> None:
        block.behind = self.progress_of(self.origin)
        block.captured_on.clear()
        super().keep(block, pool)


class _OrdersFreesByOrigin(Captures):
    capture_type = _OrderedByOrigin


class _KeepsAbandoned(Captures):
    def give_up(self, capture: Capture) -> None:
        pass


FAULTS: Final = (
    Fault(
        "graph.hands_memory_out",
        "tracel-ai/cubecl#1612",
        "What a graph runs on is handed out while it is there.",
        Parts(pool=_HandsMemoryOut),
    ),
    Fault(
        "graph.orders_frees_by_origin",
        "NVIDIA/warp#1418",
        "What a forked stream frees is ordered behind the capture's first stream.",
        Parts(captures=_OrdersFreesByOrigin),
    ),
    Fault(
        "graph.keeps_abandoned",
        "pytorch/pytorch#190308",
        "Memory of a capture that failed is kept forever.",
        Parts(captures=_KeepsAbandoned),
    ),
)
