"""One opened driver program: operations to request lines, reply lines to outcomes and observations."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from quiesce.backend import Closing, Description, Reply
from quiesce.backends.command import wire
from quiesce.backends.command.objects import WireError, shorten
from quiesce.backends.command.program import Program
from quiesce.contract import IN_PROTOCOL
from quiesce.gauges import Readings
from quiesce.observations import Observation
from quiesce.operations import Mark, Operation
from quiesce.outcomes import ILLEGAL_STATE, Done, Rejected, Unsupported, describe

OBSERVATIONS_MAX: Final = 1 << 20
"""How many observations one request may bring over repeated ``more``; a driver with still more to say never ends."""

_Read = TypeVar("_Read")


class CommandContext:
    """One driver process. After a :class:`~quiesce.backend.BackendFault` the process is gone and the fault repeats.

    ``keep`` is handed the program once the context is closed, where it serves again; None: it quits.
    """

    def __init__(
        self,
        program: Program,
        description: Description,
        keep: Callable[[Program], None] | None = None,
        devices: int = 1,
        *,
        foresees: bool = False,
    ) -> None:
        self._program = program
        self._description = description
        self._keep = keep
        self._devices = devices
        self._foresees = foresees
        self._batch: deque[tuple[Operation, str]] = deque()
        self._in_batch = False
        self._closing: Closing | None = None
        self._seen_at_open: tuple[Observation, ...] = ()

    def open(self, request: str) -> str:
        """Open the driver; return what it answered instead of ``done``, or nothing. For the backend, once.

        What was seen meanwhile is told with the first answer, a mark's included.
        """
        reply = self.ask(request)
        self._seen_at_open = reply.observations
        if isinstance(reply.outcome, Unsupported):
            return describe(reply.outcome)
        self._expect_done(request, reply)
        return ""

    @property
    def foresees(self) -> bool:
        """Whether the driver takes several requests at once."""
        return self._foresees

    def foresee(self, operations: Iterable[Operation]) -> None:
        """Send a batch, unless one is still being answered."""
        if self._batch or self._closing is not None:
            return
        batch: list[tuple[Operation, str]] = []
        for operation in operations:
            if isinstance(operation, Mark):
                break
            try:
                batch.append((operation, wire.operation_request(operation)))
            except wire.UnsendableRequest:
                break
        if len(batch) > 1 and self._program.send_ahead([request for _, request in batch]):
            self._batch.extend(batch)

    def perform(self, operation: Operation) -> Reply:
        """Send one operation and read its reply. A mark is the harness's own: it is not sent.

        Raises :class:`~quiesce.backend.BackendFault` for a driver that dies, hangs or answers nonsense.
        """
        if isinstance(operation, Mark):
            return self._telling(Reply(Done()))
        if self._closing is not None:
            return Reply(Rejected(ILLEGAL_STATE))
        if self._batch:
            foreseen, request = self._batch.popleft()
            if operation != foreseen:
                raise ValueError(f"{operation} is performed, and {foreseen} was foreseen")
            return self._telling(self._ask(request, in_batch=True))
        try:
            request = wire.operation_request(operation)
        except wire.UnsendableRequest as error:
            return self._telling(Reply(Unsupported(str(error))))
        return self._telling(self.ask(request))

    def readings(self) -> Readings:
        """Read every gauge that the driver declared. Raises :class:`~quiesce.backend.BackendFault`."""
        if not self._description.gauges:
            return {}
        readings = self._exchange(wire.GAUGES, lambda line: wire.read_gauges(line, self._description))
        self._in_batch = False
        return readings

    def close(self) -> Closing:
        """Close the driver, read its gauges, and let it quit; idempotent.

        The first call raises :class:`~quiesce.backend.BackendFault` where the driver misbehaves meanwhile, unless a
        fault was raised before. A later call returns what was seen until then.
        """
        if self._closing is None:
            self._closing = Closing()
            try:
                if not self._program.faulty and self._close():
                    return self._closing
            except BaseException:
                self._program.end()
                raise
            self._program.end()
        return self._closing

    def ask(self, request: str) -> Reply:
        """Send a line as it is, also one that no operation means, and return the reply with all its observations.

        Raises :class:`~quiesce.backend.BackendFault`.
        """
        return self._ask(request, in_batch=False)

    @property
    def program(self) -> Program:
        """The driver's process."""
        return self._program

    def _ask(self, request: str, *, in_batch: bool) -> Reply:
        self._in_batch = in_batch
        answer = self._exchange(request, wire.read_answer)
        seen = answer.seen
        observations = list(seen.observations)
        while seen.more:
            seen = self._exchange(wire.MORE, wire.read_more)
            observations += seen.observations
            if len(observations) > OBSERVATIONS_MAX:
                observed = (
                    f"the driver program reported more than {OBSERVATIONS_MAX} observations of '{shorten(request)}'"
                )
                raise self._program.fault(IN_PROTOCOL, observed)
        beyond = [device for seen in observations if (device := getattr(seen, "device", 0)) >= self._devices]
        if beyond:
            observed = f"in reply to '{shorten(request)}': device {beyond[0]}, where 'open' gave {self._devices}"
            raise self._program.fault(IN_PROTOCOL, observed)
        if not self._description.gauges:
            self._in_batch = False
        return Reply(answer.outcome, tuple(observations))

    def _close(self) -> bool:
        """Close; say whether somebody keeps the program."""
        unasked = self._rest_of_batch()
        reply = self._telling(self.ask(wire.CLOSE))
        reply = Reply(reply.outcome, (*unasked, *reply.observations))
        self._closing = Closing(reply.observations)
        self._expect_done(wire.CLOSE, reply)
        self._closing = Closing(reply.observations, self.readings())
        if self._keep is None:
            self._program.finish()
            return False
        self._expect_done(wire.AGAIN, self.ask(wire.AGAIN))
        self._keep(self._program)
        return True

    def _rest_of_batch(self) -> list[Observation]:
        """Read the answers that nobody wants any more, and return what was observed meanwhile."""
        observations: list[Observation] = []
        if self._in_batch:
            self.readings()
        while self._batch:
            observations += self._ask(self._batch.popleft()[1], in_batch=True).observations
            self.readings()
        return observations

    def _telling(self, reply: Reply) -> Reply:
        """Return a reply that tells, if it is the first, also of what was seen while the driver was opened."""
        seen, self._seen_at_open = self._seen_at_open, ()
        return Reply(reply.outcome, (*seen, *reply.observations)) if seen else reply

    def _expect_done(self, request: str, reply: Reply) -> None:
        if not isinstance(reply.outcome, Done):
            observed = (
                f"the driver program answered '{shorten(request)}' with {describe(reply.outcome)} instead of done"
            )
            raise self._program.fault(IN_PROTOCOL, observed)

    def _exchange(self, request: str, read: Callable[[bytes], _Read]) -> _Read:
        if self._in_batch:
            line = self._program.reply(request, last=request == wire.GAUGES and not self._batch)
        else:
            line = self._program.exchange(request)
        try:
            return read(line)
        except WireError as error:
            raise self._program.fault(IN_PROTOCOL, f"in reply to '{shorten(request)}': {error}") from None
