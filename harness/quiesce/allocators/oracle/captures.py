"""What the oracle knows of stream captures: which streams record, under which mode, and which captures went bad."""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.allocators.oracle.blocks import BlockState, GraphMemory
from quiesce.allocators.oracle.clocks import Clock, StreamState, Timeline
from quiesce.model.operations import CaptureMode


@dataclass(slots=True)
class CaptureState:
    """One capture in progress."""

    origin: StreamState
    mode: CaptureMode
    members: dict[Timeline, StreamState] = field(default_factory=dict)
    invalid: bool = False
    is_order_doubtful: bool = False
    """Whether a library captured something of which nobody knows what it came behind."""
    uses: list[tuple[BlockState, ...]] = field(default_factory=list)
    known: dict[Timeline, Clock] = field(default_factory=dict)
    """How much captured work of each stream what a member captures next is ordered behind."""
    memory: GraphMemory = field(default_factory=GraphMemory)
    """What an allocator may keep for the graph that comes of it."""

    def add(self, stream: StreamState, blocks: tuple[BlockState, ...]) -> None:
        """Note work that ``stream`` captured."""
        self.uses.append(blocks)
        clock = self.known.setdefault(stream.timeline, {})
        number = clock[stream.timeline] = clock.get(stream.timeline, 0) + 1
        for block in blocks:
            if block.made_in is self.memory:
                block.captured_uses[stream.timeline] = number

    def is_behind(self, stream: StreamState, clock: Clock) -> bool:
        """Whether what ``stream`` captures now comes behind captured work."""
        known = self.known.get(stream.timeline, {})
        return all(number <= known.get(timeline, 0) for timeline, number in clock.items())

    def invalidate(self) -> None:
        """Note that it may be invalid: no graph need come of it."""
        self.invalid = self.memory.is_doubtful = True

    def snapshot(self, stream: StreamState) -> Clock:
        """Return what an event recorded on ``stream`` now stands for."""
        return dict(self.known.get(stream.timeline, {}))

    def device_takes_part(self, device: int) -> bool:
        """Whether a stream of ``device`` is a member."""
        return any(member.device == device for member in self.members.values())

    @property
    def unjoined(self) -> bool:
        """Whether some member captured work that the origin does not come behind."""
        joined = self.known.get(self.origin.timeline, {})
        return any(joined.get(timeline, 0) < clock.get(timeline, 0) for timeline, clock in self.known.items())


class CaptureModel:
    """All captures in progress, by the timeline of each stream that takes part."""

    def __init__(self) -> None:
        self._by_member: dict[Timeline, CaptureState] = {}
        self.spoiled_by = ""
        """The last request during the captures that was refused, which may have made them invalid."""

    def of(self, stream: StreamState) -> CaptureState | None:
        """Return the capture that a stream takes part in."""
        return self._by_member.get(stream.timeline)

    @property
    def any_active(self) -> bool:
        """Whether some stream is being captured."""
        return bool(self._by_member)

    @property
    def memories(self) -> tuple[GraphMemory, ...]:
        """What is kept for the captures in progress; which of them an allocation is for is the allocator's business."""
        return tuple(capture.memory for capture in self._by_member.values())

    @property
    def forbids_unsafe_calls(self) -> bool:
        """Whether allocation and event queries are illegal: some capture is not relaxed."""
        return bool(self._by_member) and any(
            capture.mode is not CaptureMode.RELAXED for capture in self._by_member.values()
        )

    def involves_blocking_stream(self, device: int) -> bool:
        """Whether the legacy default stream of a device is off limits."""
        return any(
            member.device == device and not member.nonblocking
            for capture in self._by_member.values()
            for member in capture.members.values()
        )

    def begin(self, stream: StreamState, mode: CaptureMode) -> None:
        """Note the begin of a capture."""
        if not self._by_member:
            self.spoiled_by = ""
        self._by_member[stream.timeline] = CaptureState(stream, mode, {stream.timeline: stream})

    def join(self, stream: StreamState, capture: CaptureState, clock: Clock) -> None:
        """Note that a stream waited for an event of a capture that stands for ``clock``."""
        if self.of(capture.origin) is not capture:
            return
        capture.members[stream.timeline] = stream
        self._by_member[stream.timeline] = capture
        own = capture.known.setdefault(stream.timeline, {})
        for timeline, number in clock.items():
            own[timeline] = max(number, own.get(timeline, 0))

    def order(self, stream: StreamState, capture: CaptureState, clock: Clock) -> None:
        """Note that a stream waited for an event of a capture that it takes part in already."""
        if self.of(stream) is capture:
            self.join(stream, capture, clock)

    def involves(self, device: int) -> bool:
        """Whether a stream of ``device`` is being captured."""
        return any(capture.device_takes_part(device) for capture in self._by_member.values())

    def invalidate_all(self, refused: str) -> None:
        """Note that a request which was refused made every strict capture invalid."""
        self.spoiled_by = refused
        for capture in self._by_member.values():
            capture.invalidate()

    def end(self, capture: CaptureState) -> None:
        """Note the end of a capture, good or bad."""
        for timeline in capture.members:
            self._by_member.pop(timeline, None)
