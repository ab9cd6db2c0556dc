"""A device that takes its time: what is put on a queue is done some requests later, or when somebody waits for it.

Work, records and waits alike, whether the sequence asked for them or a library put them there.
"""

from __future__ import annotations

from quiesce.model.backend import Reply
from quiesce.model.operations import Operation

from .adapter import Session
from .device import Gate, Point, Queue, Runtime

_REQUESTS = 3


class Delay(Gate):
    """Opens by itself once the device was asked for so many things more."""

    __slots__ = ("_due", "_runtime")

    def __init__(self, runtime: LateRuntime) -> None:
        self._runtime, self._due = runtime, runtime.requests + _REQUESTS

    @property
    def is_open(self) -> bool:
        return self._runtime.requests >= self._due

    @is_open.setter
    def is_open(self, value: bool) -> None:
        self._due = 0 if value else self._due


class LateRuntime(Runtime):
    """Counts requests instead of time."""

    requests = 0

    def issue(self, queue: Queue, *behind: Point) -> Point:
        point = super().issue(queue, *behind)
        queue.hold(Delay(self))
        return point


class LateSession(Session):
    """A stranger on such a device."""

    def make_runtime(self, devices: int, *, spares: bool, legacy: bool) -> Runtime:
        self.late = LateRuntime(devices, spares=spares, legacy=legacy)
        return self.late

    def perform(self, operation: Operation) -> Reply:
        self.late.requests += 1
        return super().perform(operation)
