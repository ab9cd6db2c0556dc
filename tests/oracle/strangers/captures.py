"""Stream capture as an application sees it: what a captured stream refuses, and what a graph repeats."""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.model.operations import CaptureMode, Slot
from quiesce.model.outcomes import CAPTURE_INVALIDATED, CAPTURE_MERGE, CAPTURE_UNJOINED, ILLEGAL_STATE, INVALID_VALUE

from .device import Queue


class Refused(Exception):
    """A request is refused; the text is the code."""


@dataclass(eq=False, slots=True)
class Capture:
    """A capture: where it began, who takes part, what each member has captured, and what it knows of the others."""

    origin: Queue
    mode: CaptureMode
    work: list[tuple[Slot, ...]] = field(default_factory=list)
    progress: dict[Queue, dict[Queue, int]] = field(default_factory=dict)
    is_invalid: bool = False

    def add(self, queue: Queue, slots: tuple[Slot, ...]) -> None:
        self.require_valid()
        self.work.append(slots)
        own = self.progress[queue]
        own[queue] = own.get(queue, 0) + 1

    def require_valid(self) -> None:
        if self.is_invalid:
            raise Refused(CAPTURE_INVALIDATED)

    @property
    def is_joined(self) -> bool:
        known = self.progress[self.origin]
        return all(known.get(queue, 0) >= own.get(queue, 0) for queue, own in self.progress.items())


class Captures:
    """All captures that are going on."""

    def __init__(self) -> None:
        self.of: dict[Queue, Capture] = {}

    @property
    def any_active(self) -> bool:
        return bool(self.of)

    @property
    def any_strict(self) -> bool:
        return any(capture.mode is not CaptureMode.RELAXED for capture in self.of.values())

    def invalidate(self) -> None:
        for capture in self.of.values():
            capture.is_invalid = True

    def begin(self, queue: Queue, mode: CaptureMode) -> None:
        if queue in self.of:
            self.of[queue].is_invalid = True
            raise Refused(ILLEGAL_STATE)
        self.of[queue] = Capture(queue, mode, progress={queue: {}})

    def end(self, queue: Queue) -> Capture:
        capture = self.of.get(queue)
        if capture is None or capture.origin is not queue:
            raise Refused(ILLEGAL_STATE)
        self.leave(capture)
        capture.require_valid()
        if not capture.is_joined:
            raise Refused(CAPTURE_UNJOINED)
        return capture

    def leave(self, capture: Capture) -> None:
        for member in capture.progress:
            self.of.pop(member, None)

    def join(self, queue: Queue, capture: Capture, known: dict[Queue, int]) -> None:
        """Let a queue wait for an event that was recorded in a capture: from then on it takes part."""
        if self.of.get(capture.origin) is not capture:
            raise Refused(INVALID_VALUE)
        if self.of.get(queue) not in (None, capture):
            self.of[queue].is_invalid = capture.is_invalid = True
            raise Refused(CAPTURE_MERGE)
        capture.require_valid()
        self.of[queue] = capture
        own = capture.progress.setdefault(queue, {})
        for other, number in known.items():
            own[other] = max(number, own.get(other, 0))

    def involve_blocking(self, device: int) -> bool:
        return any(queue.device == device and queue.blocking for queue in self.of)

    def involve(self, device: int) -> bool:
        return any(queue.device == device for queue in self.of)
