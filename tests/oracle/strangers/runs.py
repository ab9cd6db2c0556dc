"""Size classes in runs, four to a doubling, and large extents that decay: what is dirty goes back after a while."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .device import NoRoom, Queue
from .pool import Piece, Pool, round_up

SMALL_BYTES_MAX = 64 << 10
PAGE_BYTES = 4096


def class_of(size: int) -> int:
    """Return the smallest size class that holds a size: four between one power of two and the next."""
    if size <= 2048:
        return round_up(size, 512)
    step = 1 << ((size - 1).bit_length() - 3)
    return round_up(size, step)


@dataclass(eq=False, slots=True)
class Run:
    """Slots of one class. ``slots`` holds those that nobody owns, by their number."""

    address: int
    size: int
    count: int
    slots: dict[int, Piece] = field(default_factory=dict)
    unborn: int = 0
    """Slots from this number on were never handed out."""

    @property
    def owned(self) -> int:
        return self.unborn - len(self.slots)


class DecayingRuns(Pool):
    """The lowest slot that is idle; nothing is waited for before memory runs out."""

    decay = 48
    """So many calls after it was freed, what is dirty goes back."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.runs: dict[int, list[Run]] = {}
        self.run_at: dict[int, Run] = {}
        self.dirty: list[tuple[int, Piece]] = []
        self.tick = 0

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        self.tick += 1
        self.purge(self.tick - self.decay)
        if size > SMALL_BYTES_MAX or align > 512:
            return self.allocate_large(round_up(size, PAGE_BYTES), align, queue)
        return self.allocate_small(class_of(size), queue)

    def allocate_small(self, size: int, queue: Queue) -> Piece:
        runs = self.runs.setdefault(size, [])
        for run in runs:
            for number in sorted(run.slots):
                if self.is_idle(run.slots[number]):
                    return self.hand_out(run.slots.pop(number), queue)
            if run.unborn < run.count:
                return self.bear(run, queue)
        length = round_up(max(SMALL_BYTES_MAX, 8 * size), PAGE_BYTES)
        run = Run(self.obtain(length, 512), size, length // size)
        runs.append(run)
        runs.sort(key=lambda each: each.address)
        self.run_at[run.address] = run
        return self.bear(run, queue)

    def bear(self, run: Run, queue: Queue) -> Piece:
        run.unborn += 1
        return Piece(run.address + (run.unborn - 1) * run.size, run.size, run.address, queue)

    def hand_out(self, piece: Piece, queue: Queue) -> Piece:
        piece.queue = queue
        return piece

    def allocate_large(self, size: int, align: int, queue: Queue) -> Piece:
        for entry in sorted(self.dirty, key=lambda entry: entry[1].size):
            piece = entry[1]
            if size <= piece.size <= size + size // 8 and piece.address % align == 0 and self.is_idle(piece):
                self.dirty.remove(entry)
                return self.hand_out(piece, queue)
        address = self.obtain(size, max(align, self.unit))
        return Piece(address, self.chunks[address], address, queue)

    def obtain(self, size: int, align: int) -> int:
        try:
            return self.take(size, align)
        except NoRoom:
            self.squeeze()
            return self.take(size, align)

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.tick += 1
        self.mark(piece, piece.queue, queue, *touched)
        run = self.run_at.get(piece.chunk)
        if run is None:
            self.dirty.append((self.tick, piece))
        else:
            run.slots[(piece.address - run.address) // run.size] = piece
        self.purge(self.tick - self.decay)

    def purge(self, before: int) -> None:
        """Give back what was freed by then and is idle."""
        for entry in [entry for entry in self.dirty if entry[0] <= before]:
            if self.is_idle(entry[1]):
                self.dirty.remove(entry)
                self.drop(entry[1].address)

    def squeeze(self) -> None:
        for _, piece in self.dirty:
            self.settle(piece)
        for run in self.run_at.values():
            for piece in run.slots.values() if not run.owned else ():
                self.settle(piece)
        self.trim()

    def trim(self) -> None:
        self.purge(self.tick)
        for runs in self.runs.values():
            for run in list(runs):
                busy = [piece for piece in run.slots.values() if not self.is_idle(piece)]
                if not run.owned and not busy:
                    runs.remove(run)
                    del self.run_at[run.address]
                    self.drop(run.address)

    def forget(self) -> None:
        slots = [piece for run in self.run_at.values() for piece in run.slots.values()]
        for piece in [*(piece for _, piece in self.dirty), *slots]:
            self.settle(piece)
        self.dirty.clear()
        self.runs.clear()
        self.run_at.clear()
