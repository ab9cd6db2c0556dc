"""Correct allocators that do what is legal and seldom seen: whoever accuses one of them has made a rule up."""

from __future__ import annotations

from quiesce.model.gauges import Gauge

from .arenas import Coarse
from .bench import Bench
from .caching import BestFit, Exact, PowersOfTwo
from .heap import ForeignError, NoMemory
from .machine import Event, Machine, Stream
from .policy import Area, Policy, Use, round_up


class Doubling(Coarse):
    """Every chunk is twice the last one, up to 64 MiB; once nothing is held, the first size comes again."""

    first = 1 << 20
    last = 64 << 20

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.chunk = self.first

    def grow(self, size: int) -> None:
        super().grow(size)
        self.chunk = min(2 * self.chunk, self.last)

    def give_back(self, address: int) -> None:
        super().give_back(address)
        if not self.chunks:
            self.start_over()

    def start_over(self) -> None:
        self.chunk = self.first


class Counted(PowersOfTwo):
    """Counts its steps: one for a request that is served from the list of its size."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.steps = 0

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        self.steps += 1
        return super().allocate(size, align, stream)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        self.steps += 1
        super().free(area, uses, stream)


class TakesAnyErrorForLackOfMemory(Exact):
    """Whatever a call below says, room is made and the call is made again; then nothing is left but out of memory."""

    def fresh(self, size: int, align: int) -> Area:
        for _ in range(2):
            try:
                address = self.obtain(size, align)
            except (NoMemory, ForeignError):
                self.squeeze()
            else:
                return Area(address, self.chunks[address], address)
        raise NoMemory


class CostBench(Bench):
    """Reads the steps of its allocators as cost."""

    def count(self) -> dict[Gauge, int]:
        steps = sum(policy.steps for policy in self.policies.values() if isinstance(policy, Counted))
        return {**super().count(), Gauge.COST: steps}


class ReservesAtOnce(Coarse):
    """A pool takes its first chunk when it is made, before anybody asked for anything, where that is to be had."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        if self.limit is None:
            return
        try:
            address = self.obtain(self.chunk, self.alignment)
        except (NoMemory, ForeignError):
            return
        self.ranges.append(Area(address, self.chunks[address], address))


class DefragmentsOnTrim(Coarse):
    """A trim waits for the whole device first, so that it can give back all that nobody owns."""

    def trim(self) -> None:
        self.machine.own_synchronize_device(self.heap.device)
        super().trim()


class GuardPages(BestFit):
    """A page before and a page behind every block belong to nobody."""

    page = 64 << 10

    def fresh(self, size: int, align: int) -> Area:
        padded = size + self.page + max(self.page, align)
        try:
            chunk = self.obtain(padded)
        except NoMemory:
            self.squeeze()
            chunk = self.obtain(padded)
        return Area(round_up(chunk + self.page, align), size, chunk)

    def give_back(self, address: int) -> None:
        chunk = next(start for start, size in self.chunks.items() if start <= address < start + size)
        super().give_back(chunk)


class Quarantine(Exact):
    """Freed memory rests until somebody waits for the device, or until there is no other."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.resting: list[Area] = []

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        area.guards = self.keep(self.guard(area, uses))
        self.resting.append(area)

    def settle(self) -> None:
        for area in list(self.resting):
            if self.is_idle(area):
                self.resting.remove(area)
                self.cached.setdefault(area.size, []).append(area)

    def squeeze(self) -> None:
        for area in self.resting:
            self.force_idle(area)
        self.trim()

    def trim(self) -> None:
        self.settle()
        super().trim()

    def clear(self) -> None:
        super().clear()
        self.resting.clear()


class StopsTheWorld(Exact):
    """Every call waits for the whole device, so that nothing is ever in flight."""

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        self.machine.own_synchronize_device(self.heap.device)
        return super().allocate(size, align, stream)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        for device in sorted({use.stream.device for use in uses} | {stream.device}):
            self.machine.own_synchronize_device(device)
        super().free(area, uses, stream)


class Heaps(Policy):
    """A heap for each stream; what another stream frees goes home and is taken in when its heap is next asked.

    A small block comes from a page of equal ones. The pages of a stream that is gone go to whoever asks next.
    """

    page = 256 << 10
    largest = 64 << 10

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.local: dict[tuple[Stream, int], list[Area]] = {}
        self.remote: dict[Stream, list[Area]] = {}
        self.owner: dict[int, Stream] = {}

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        need = max(size, align, self.alignment)
        if need > self.largest:
            address = self.large(round_up(size, self.heap.granularity), max(align, self.alignment))
            return Area(address, self.chunks[address], address)
        cell = 1 << (need - 1).bit_length()
        self.take_in(stream)
        cells = self.local.setdefault((stream, cell), [])
        if not cells:
            page = self.large(self.page, max(self.alignment, cell))
            self.owner[page] = stream
            cells += [Area(page + offset, cell, page) for offset in range(0, self.page, cell)]
        area = cells.pop()
        self.wait_for(area, stream)
        return area

    def large(self, size: int, align: int) -> int:
        try:
            return self.obtain(size, align)
        except NoMemory:
            self.trim()
            return self.obtain(size, align)

    def take_in(self, stream: Stream) -> None:
        gone = [owner for owner in {*self.owner.values()} if not owner.alive]
        for owner in gone:
            self.owner = {page: stream if kept is owner else kept for page, kept in self.owner.items()}
            self.remote.setdefault(stream, []).extend(self.remote.pop(owner, []))
            for _, cell in [key for key in self.local if key[0] is owner]:
                self.local.setdefault((stream, cell), []).extend(self.local.pop((owner, cell)))
        for area in self.remote.pop(stream, []):
            self.local.setdefault((stream, area.size), []).append(area)

    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        if area.chunk not in self.owner:
            for device in sorted({use.stream.device for use in uses}):
                self.machine.own_synchronize_device(device)
            self.give_back(area.chunk)
            return
        area.guards = self.guard(area, uses)
        self.keep([event for event in area.guards if event not in self.events])
        home = self.owner[area.chunk]
        if home is stream:
            self.local.setdefault((home, area.size), []).append(area)
        else:
            self.remote.setdefault(home, []).append(area)

    def trim(self) -> None:
        for page in list(self.owner):
            lists = [*self.local.values(), *self.remote.values()]
            inside = [area for kept in lists for area in kept if area.chunk == page]
            if inside and len(inside) * inside[0].size == self.page and all(self.is_idle(area) for area in inside):
                for kept in lists:
                    kept[:] = [area for area in kept if area.chunk != page]
                del self.owner[page]
                self.give_back(page)

    def clear(self) -> None:
        self.local.clear()
        self.remote.clear()
        self.owner.clear()


class ReturnsInQueueOrder(Exact):
    """A trim puts the return of each device block on the stream that had it last, where it waits for its turn."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.leaving: list[Area] = []

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        self.settle()
        return super().allocate(size, align, stream)

    def trim(self) -> None:
        if self.host:  # what is no stream's goes back at once
            super().trim()
            return
        for area in [area for entries in self.cached.values() for area in entries]:
            stream = area.stream if area.stream and area.stream.alive else self.machine.defaults[self.heap.device]
            for event in area.guards:
                self.order(stream, event)
            self.is_idle(area)
            area.guards += self.keep([self.machine.own_event(stream)])
            self.leaving.append(area)
        self.cached.clear()
        self.settle()

    def squeeze(self) -> None:
        super().squeeze()
        for area in self.leaving:
            self.force_idle(area)
        self.settle()

    def settle(self) -> None:
        for area in list(self.leaving):
            if self.is_idle(area):
                self.leaving.remove(area)
                self.give_back(area.chunk)

    def clear(self) -> None:
        super().clear()
        self.leaving.clear()


class RecyclingMachine(Machine):
    """Gives the name of an event that was destroyed to the next one."""

    def __init__(self, devices: int, *, stall_is_work: bool) -> None:
        super().__init__(devices, stall_is_work=stall_is_work)
        self.names: list[str] = []

    def next_name(self) -> str:
        return self.names.pop() if self.names else super().next_name()

    def own_destroy(self, event: Event) -> None:
        if event.alive:
            self.names.append(event.name)
        super().own_destroy(event)


class RecyclingBench(Bench):
    """Stands on a machine whose events have each other's names."""

    def make_machine(self) -> Machine:
        return RecyclingMachine(self.profile.devices, stall_is_work=self.traits.stall_is_work)
