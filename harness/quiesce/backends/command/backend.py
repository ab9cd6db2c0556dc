"""The backend that drives any program over the wire protocol: describing it, opening contexts on it."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from quiesce.backend import BackendFault, Description, DeviceProfile
from quiesce.backends.command import wire
from quiesce.backends.command.context import CommandContext
from quiesce.backends.command.objects import WireError, preview
from quiesce.backends.command.program import Program
from quiesce.contract import IN_PROTOCOL, WATCHDOG_SECONDS, WATCHDOG_SECONDS_MAX
from quiesce.errors import BackendUnavailable, ConfigurationError


class CommandBackend:
    """A driver program as a backend.

    ``command`` is the program and its arguments; no shell reads it. ``name`` defaults to ``command:`` and the
    program's file name; ``specification`` is what ``--backend`` takes for the same command. ``watchdog_seconds`` bounds
    every single reply. ``environment`` is the driver's whole environment; None is this process's own. Raises
    :class:`~quiesce.errors.ConfigurationError` for an empty command or a watchdog that never ends.
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

        Raises :class:`~quiesce.errors.BackendUnavailable` for a driver that cannot be started, or that says no
        proper hello and goodbye: there is nothing yet that a finding could be about. Where it was started, the cause
        of that error is the :class:`~quiesce.backend.BackendFault`.
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

        Raises :class:`~quiesce.errors.BackendUnavailable` where it cannot be started or refuses the profile. One that
        dies, hangs or talks nonsense now, having described itself properly, is a subject to be judged: the context
        raises its :class:`~quiesce.backend.BackendFault` at the first use.
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

    A backslash is an ordinary character on Windows. Raises :class:`~quiesce.errors.ConfigurationError`.
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
    """Return the backend ``name`` of this installation, in a process of its own (``python -m quiesce.serving``)."""
    return CommandBackend([sys.executable, "-m", "quiesce.serving", name], name=name, watchdog_seconds=watchdog_seconds)


def _remedy(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "build the driver program first, and give its path with a directory (./driver), or a program on the PATH"
    if isinstance(error, PermissionError) or error.errno == errno.ENOEXEC:
        return "make it executable, or name its interpreter too, as in command:'python3 driver.py'"
    return "give the path of a program that runs on this machine"
