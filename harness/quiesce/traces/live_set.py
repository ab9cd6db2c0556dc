"""What is live at a moment, by what it is and who made it: kept up to date from record to record."""

from __future__ import annotations

from dataclasses import dataclass

from quiesce.simulator.ledger import Record, Seen, Thing


@dataclass(frozen=True, slots=True)
class Maker:
    """Things of one kind that one call makes. ``size_bytes`` tells them apart where no call stacks are kept."""

    thing: Thing
    device: int
    function: str
    stack: int
    size_bytes: int


@dataclass(slots=True)
class Held:
    """How much of a maker's is live; ``latest`` is the record that made the last of it."""

    count: int
    size_bytes: int
    latest: Record


class LiveSet:
    """Takes records in order."""

    def __init__(self) -> None:
        self.held: dict[Maker, Held] = {}
        self._made: dict[tuple[bool, int], tuple[Maker, int]] = {}

    def see(self, record: Record) -> Maker | None:
        """Enter one record, and return whose holdings it changed."""
        match record.seen:
            case Seen.ALLOCATED | Seen.CREATED:
                return self._make(record)
            case Seen.FREED | Seen.DESTROYED:
                return self._end(record)
            case _:
                return None

    def _make(self, record: Record) -> Maker:
        size_bytes = record.size_bytes if record.thing.is_memory else 0
        maker = Maker(
            record.thing, record.device, record.function, record.stack, 0 if record.stack else record.size_bytes
        )
        held = self.held.setdefault(maker, Held(0, 0, record))
        held.count += 1
        held.size_bytes += size_bytes
        held.latest = record
        self._made[_name(record)] = maker, size_bytes
        return maker

    def _end(self, record: Record) -> Maker | None:
        known = self._made.pop(_name(record), None)
        if known is None:
            return None
        maker, size_bytes = known
        held = self.held[maker]
        held.count -= 1
        held.size_bytes -= size_bytes
        return maker


def _name(record: Record) -> tuple[bool, int]:
    """Return what the end of a thing has in common with its beginning: a block's address, a handle's serial."""
    is_block = record.seen in (Seen.ALLOCATED, Seen.FREED)
    return is_block, record.address if is_block else record.object
