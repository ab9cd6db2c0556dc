"""Launches that take memory out of the pool for as long as they run, as Thrust's algorithms do over RMM's pools."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Outcome

from .adapter import Session
from .device import NoRoom
from .pool import Piece, Pool


class TakesTemporaries(Session):
    """A temporary is freed on its stream behind the work. Where there is no room, the launch does without."""

    def answer(self, operation: Operation) -> Outcome:
        if not isinstance(operation, ops.Launch) or self.captures.any_active:
            return super().answer(operation)
        queue = self.queue(operation.stream)
        pool = self.defaults[queue.device]
        temporary = self.temporary(pool, operation)
        try:
            return super().answer(operation)
        finally:
            if temporary is not None:
                pool.free(temporary, queue, [queue])

    def temporary(self, pool: Pool, operation: ops.Launch) -> Piece | None:
        pool.is_capturing = False
        size = self.unit * (1 + len(operation.reads) + len(operation.writes))
        try:
            return pool.allocate(size, self.unit, self.queue(operation.stream))
        except NoRoom:
            return None
