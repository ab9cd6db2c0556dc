"""What the oracle knows of stream captures: which streams record, under which mode, and which captures went bad."""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.operations import CaptureMode
from quiesce.oracle.clocks import StreamState, Timeline


@dataclass(slots=True)
class CaptureState:
    """One capture in progress."""

    origin: StreamState
    mode: CaptureMode
    members: dict[Timeline, StreamState] = field(default_factory=dict)
    unjoined: set[Timeline] = field(default_factory=set)
    invalid: bool = False
    uses: list[tuple[str, ...]] = field(default_factory=list)


class CaptureModel:
    """All captures in progress, by the timeline of each stream that takes part."""

    def __init__(self) -> None:
        self._by_member: dict[Timeline, CaptureState] = {}

    def of(self, stream: StreamState) -> CaptureState | None:
        """Return the capture that a stream takes part in."""
        return self._by_member.get(stream.timeline)

    @property
    def any_active(self) -> bool:
        """Whether some stream is being captured."""
        return bool(self._by_member)

    @property
    def forbids_unsafe_calls(self) -> bool:
        """Whether allocation and event queries are illegal: some capture is not relaxed."""
        return any(capture.mode is not CaptureMode.RELAXED for capture in self._by_member.values())

    def involves_blocking_stream(self, device: int) -> bool:
        """Whether the legacy default stream of a device is off limits."""
        return any(
            member.device == device and not member.nonblocking
            for capture in self._by_member.values()
            for member in capture.members.values()
        )

    def begin(self, stream: StreamState, mode: CaptureMode) -> None:
        """Note the begin of a capture."""
        self._by_member[stream.timeline] = CaptureState(stream, mode, {stream.timeline: stream})

    def join(self, stream: StreamState, capture: CaptureState) -> None:
        """Note that a stream waited for an event of a capture."""
        if stream.timeline == capture.origin.timeline:
            return
        if stream.timeline not in capture.members:
            capture.members[stream.timeline] = stream
            capture.unjoined.add(stream.timeline)
            self._by_member[stream.timeline] = capture

    def invalidate_all(self) -> None:
        """Note that a forbidden call made every strict capture invalid."""
        for capture in self._by_member.values():
            capture.invalid = True

    def end(self, capture: CaptureState) -> None:
        """Note the end of a capture, good or bad."""
        for timeline in capture.members:
            self._by_member.pop(timeline, None)
