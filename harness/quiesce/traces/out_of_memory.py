"""Who held the memory when a request ran out of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.amounts import bytes_in_words, counted
from quiesce.findings import CallSite
from quiesce.program_run import HOLDERS_MAX, Holder, OutOfMemory
from quiesce.simulator.ledger import Flag, Ledger, Record, Seen, Thing
from quiesce.traces.makers import made_at
from quiesce.traces.origins import Origins
from quiesce.traces.thing_names import things_in_words

_OUT_OF_MEMORY: Final = 2
"""cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY and hipErrorOutOfMemory."""
_OF_DEVICES: Final = (Thing.DEVICE, Thing.MANAGED)
"""Physical memory with a handle is counted where it is mapped: the mapping is recorded, the creation is not."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Something that was live. ``number`` is that of the one that made it; None: it was overwritten."""

    thing: Thing
    device: int
    size_bytes: int
    function: str
    number: int | None
    stack: int


class Exhaustion:
    """Takes records in order, and keeps what was live at the first refusal.

    What was made before the oldest record that is kept is found all the same: it is live at the end, or its free
    is seen after the refusal.
    """

    def __init__(self) -> None:
        self._refusal: Record | None = None
        self._live: dict[int, Record] = {}
        self._then: list[_Block] = []

    def see(self, record: Record) -> None:
        """Enter one record."""
        match record.seen:
            case Seen.ALLOCATED:
                self._live[record.address] = record
            case Seen.FREED:
                if self._live.pop(record.address, None) is None and self._refusal is not None:
                    self._then.append(_Block(record.thing, record.device, record.size_bytes, "", None, 0))
            case Seen.REFUSED if self._refusal is None and record.object == _OUT_OF_MEMORY:
                self._refusal = record
                self._then = [
                    _Block(made.thing, made.device, made.size_bytes, made.function, made.number, made.stack)
                    for made in self._live.values()
                ]

    def told(self, ledger: Ledger, origins: Origins) -> OutOfMemory | None:
        """Return who held what; None where nothing was refused."""
        refusal = self._refusal
        if refusal is None:
            return None
        seen = {block.number for block in self._then}
        earlier = (
            _Block(each.thing, each.device, each.size_bytes, each.function, each.number, each.stack)
            for each in ledger.live()
            if each.thing.is_memory and each.number < refusal.number and each.number not in seen
        )
        blocks = [block for block in (*self._then, *earlier) if _shares(block, refusal)]
        live_bytes = sum(block.size_bytes for block in blocks)
        groups = _grouped(blocks, origins)
        site = origins.site_with_stack("refused to", refusal)
        return OutOfMemory(
            thing=things_in_words(refusal.thing, 1).partition(" of ")[2],
            device=refusal.device,
            requested_bytes=refusal.size_bytes,
            is_injected=bool(refusal.flags & Flag.INJECTED),
            is_first=not ledger.lost,
            capacity_bytes=refusal.address + refusal.other_bytes,
            live_bytes=live_bytes,
            live_count=len(blocks),
            cached_bytes=refusal.other,
            fragmented_bytes=max(0, refusal.other_bytes - refusal.other - live_bytes),
            free_bytes=refusal.address,
            site=site,
            holders=tuple(_holder(group, origins) for group in groups[:HOLDERS_MAX]),
            holders_count=len(groups),
        )


def _shares(block: _Block, refusal: Record) -> bool:
    """Whether a block takes from the memory that the request was for; managed memory is device 0's."""
    if refusal.thing not in (*_OF_DEVICES, Thing.PHYSICAL):
        return block.thing is refusal.thing
    device = 0 if block.thing is Thing.MANAGED else block.device
    return block.thing in _OF_DEVICES and device == (0 if refusal.thing is Thing.MANAGED else refusal.device)


def _grouped(blocks: list[_Block], origins: Origins) -> list[list[_Block]]:
    groups: dict[object, list[_Block]] = {}
    for block, place in zip(blocks, origins.places([block.stack for block in blocks]), strict=True):
        groups.setdefault((block.thing, block.function, place), []).append(block)
    return sorted(groups.values(), key=lambda group: -sum(block.size_bytes for block in group))


def _holder(group: list[_Block], origins: Origins) -> Holder:
    last = group[-1]
    function = last.function or "an unknown call"
    site = origins.site_of_call("allocated by", function, last.number or 0, last.stack)
    size_bytes = sum(block.size_bytes for block in group)
    return Holder(things_in_words(last.thing, 1).partition(" of ")[2], len(group), size_bytes, site)


def lines_of(told: OutOfMemory) -> Iterator[str]:
    """Yield what a terminal shows of it."""
    where = f" on device {told.device}" if told.thing != "pinned memory" else ""
    how = "the first refusal" if told.is_first else "the first refusal that is kept"
    yield (
        f"out of memory{where}: {told.site.call} of {bytes_in_words(told.requested_bytes)} of {told.thing} was refused "
        f"(call {told.site.number}, {how}){_at([told.site])[0]}"
    )
    if told.is_injected:
        yield "  --fail caused this refusal; memory at that moment:"
    yield (
        f"  of {bytes_in_words(told.capacity_bytes)}, {bytes_in_words(told.live_bytes)} were live in "
        f"{counted(told.live_count, 'block')}, {bytes_in_words(told.cached_bytes)} cached in the runtime's pools, "
        f"{bytes_in_words(told.fragmented_bytes)} fragmented and {bytes_in_words(told.free_bytes)} free"
    )
    yield from (f"  held: {line}" for line in _holder_lines(told.holders))
    if told.holders_count > len(told.holders):
        yield f"  and {counted(told.holders_count - len(told.holders), 'more place')} that hold less"


def _at(sites: Sequence[CallSite]) -> list[str]:
    return [f", {place}" if place else "" for place in made_at([site.frames for site in sites])]


def _holder_lines(holders: Sequence[Holder]) -> Iterator[str]:
    for holder, place in zip(holders, _at([holder.site for holder in holders]), strict=True):
        what = f"{counted(holder.count, 'block')} of {holder.thing} from {holder.site.call}"
        yield f"{bytes_in_words(holder.size_bytes)} in {what}{place}"
