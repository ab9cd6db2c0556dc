"""The backend that drives any program over the wire protocol: describing it, and opening contexts on it.

A context turns operations into request lines, and reply lines into outcomes and observations.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from quiesce.backends.command import wire
from quiesce.backends.command.program import Program
from quiesce.backends.command.wire import WireError, preview, shorten
from quiesce.model.backend import BackendFault, Closing, Description, DeviceProfile, Reply
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.gauges import Readings
from quiesce.model.observations import Observation
from quiesce.model.operations import Mark, Operation
from quiesce.model.outcomes import ILLEGAL_STATE, Done, Rejected, Unsupported, describe
from quiesce.model.rules import IN_PROTOCOL, WATCHDOG_SECONDS, WATCHDOG_SECONDS_MAX

OBSERVATIONS_MAX: Final = 1 << 20
"""How many observations one request may bring over repeated ``more``; a driver with still more to say never ends."""

_Read = TypeVar("_Read")


class CommandContext:
    """One driver process. After a :class:`BackendFault` the process is gone and the fault repeats.

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

        Raises :class:`~quiesce.model.backend.BackendFault` for a driver that dies, hangs or answers nonsense.
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
        """Read every gauge that the driver declared. Raises :class:`~quiesce.model.backend.BackendFault`."""
        if not self._description.gauges:
            return {}
        readings = self._exchange(wire.GAUGES, lambda line: wire.read_gauges(line, self._description))
        self._in_batch = False
        return readings

    def close(self) -> Closing:
        """Close the driver, read its gauges, and let it quit; idempotent.

        The first call raises :class:`~quiesce.model.backend.BackendFault` where the driver misbehaves meanwhile,
        unless a
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

        Raises :class:`~quiesce.model.backend.BackendFault`.
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


class CommandBackend:
    """A driver program as a backend.

    ``command`` is the program and its arguments; no shell reads it. ``name`` defaults to ``command:`` and the
    program's file name; ``specification`` is what ``--backend`` takes for the same command. ``watchdog_seconds`` bounds
    every single reply. ``environment`` is the driver's whole environment; None is this process's own. Raises
    :class:`~quiesce.model.errors.ConfigurationError` for an empty command or a watchdog that never ends.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str | None = None,
        watchdog_seconds: float = WATCHDOG_SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(command, str) or not command or not command[0]:
            raise ConfigurationError(
                "the command backend got no command; write command:PATH, the path of a driver program"
            )
        if any("\0" in word for word in command):
            raise ConfigurationError(f"the command {preview(list(command))} holds a NUL character; leave it out")
        if not 0 < watchdog_seconds <= WATCHDOG_SECONDS_MAX:
            allowed = f"write a number above 0 and up to {WATCHDOG_SECONDS_MAX:g}"
            raise ConfigurationError(f"a watchdog of {watchdog_seconds} s cannot work; {allowed}")
        self.command = tuple(command)
        self.name = name or f"command:{Path(command[0]).name}"
        self.specification = f"command:{shlex.join(command)}"
        self._watchdog_seconds = watchdog_seconds
        self._environment = None if environment is None else dict(environment)
        self._hello: wire.Hello | None = None
        self._kept: list[Program] = []

    def with_environment(self, environment: Mapping[str, str]) -> CommandBackend:
        """Return the same driver in another environment; it is not asked again what it is."""
        return self._changed(self._watchdog_seconds, environment)

    def with_watchdog(self, seconds: float) -> CommandBackend:
        """Return the same driver with another bound for every reply; it is not asked again what it is."""
        return self._changed(seconds, self._environment)

    def _changed(self, watchdog_seconds: float, environment: Mapping[str, str] | None) -> CommandBackend:
        changed = CommandBackend(
            self.command, name=self.name, watchdog_seconds=watchdog_seconds, environment=environment
        )
        changed._hello = self._hello
        return changed

    @property
    def serves_again(self) -> bool:
        """Whether one process serves one context after the other, each on the profile that it is opened on.

        Raises what :meth:`describe` raises.
        """
        return self._introduced().again

    def describe(self) -> Description:
        """Start the driver once, ask it, and let it go; the answer is kept.

        Raises :class:`~quiesce.model.errors.BackendUnavailable` for a driver that cannot be started, or that says no
        proper hello and goodbye: there is nothing yet that a finding could be about. Where it was started, the cause
        of that error is the :class:`~quiesce.model.backend.BackendFault`.
        """
        return self._introduced().description

    def _introduced(self) -> wire.Hello:
        if self._hello is None:
            program = self._start()
            try:
                hello = self._ask_hello(program)
                program.finish()
            except BackendFault as fault:
                raise self._unavailable(fault) from fault
            finally:
                program.end()
            self._hello = hello
        return self._hello

    def open(self, profile: DeviceProfile) -> CommandContext:
        """Start a fresh driver, or take one that serves again, and open it on ``profile``.

        Raises :class:`~quiesce.model.errors.BackendUnavailable` where it cannot be started or refuses the profile.
        One that
        dies, hangs or talks nonsense now, having described itself properly, is a subject to be judged: the context
        raises its :class:`~quiesce.model.backend.BackendFault` at the first use.
        """
        introduced = self._introduced()
        is_fresh = not self._kept
        program = self._start() if is_fresh else self._kept.pop()
        keep = self._kept.append if introduced.again else None
        context = CommandContext(program, introduced.description, keep, profile.devices, foresees=introduced.batch)
        refusal = ""
        try:
            if is_fresh and self._ask_hello(program) != introduced:
                raise program.fault(
                    IN_PROTOCOL, f"the driver program answered '{wire.HELLO}' otherwise than the first time"
                )
            refusal = context.open(wire.open_request(profile))
        except BackendFault:
            return context
        if refusal:
            program.end()
            reason = f"the driver program answered '{wire.open_request(profile)}' with {refusal}"
            raise BackendUnavailable(self.name, reason, "choose another device profile")
        return context

    def _start(self) -> Program:
        try:
            return Program(self.command, self._watchdog_seconds, self._environment)
        except OSError as error:
            reason = f"{preview(self.command[0])} cannot be started ({error.strerror or error})"
            raise BackendUnavailable(self.name, reason, _remedy(error)) from None

    def _ask_hello(self, program: Program) -> wire.Hello:
        line = program.exchange(wire.HELLO)
        try:
            return wire.read_hello(line, self.name)
        except WireError as error:
            raise program.fault(IN_PROTOCOL, f"in reply to '{wire.HELLO}': {error}") from None

    def _unavailable(self, fault: BackendFault) -> BackendUnavailable:
        evidence = f"; {fault.evidence.strip()}" if fault.evidence else ""
        remedy = "docs/reference/wire_protocol.md says how a driver program answers"
        return BackendUnavailable(self.name, f"{fault.observed} ({fault.rule}){evidence}", remedy)


def parse_specification(text: str) -> CommandBackend:
    """Return the backend that ``command:TEXT`` names: a path and its arguments, quoted as in a shell, which none reads.

    A backslash is an ordinary character on Windows. Raises :class:`~quiesce.model.errors.ConfigurationError`.
    """
    words = shlex.shlex(text, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = ""
    if os.name == "nt":
        words.escape = ""
    try:
        return CommandBackend(list(words))
    except ValueError as error:
        raise ConfigurationError(
            f"'command:{text}' cannot be split into words ({error}); write command:PATH, or command:'PATH' ARGUMENT"
        ) from None


def serve(name: str, *, watchdog_seconds: float = WATCHDOG_SECONDS) -> CommandBackend:
    """Return the backend ``name`` of this installation, in its own process (``python -m quiesce.backends.serving``)."""
    return CommandBackend(
        [sys.executable, "-m", "quiesce.backends.serving", name], name=name, watchdog_seconds=watchdog_seconds
    )


def _remedy(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "build the driver program first, and give its path with a directory (./driver), or a program on the PATH"
    if isinstance(error, PermissionError) or error.errno == errno.ENOEXEC:
        return "make it executable, or name its interpreter too, as in command:'python3 driver.py'"
    return "give the path of a program that runs on this machine"
