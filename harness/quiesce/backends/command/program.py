"""One driver program: its process, the watchdog over every exchange with it, and its end.

It knows that a request is a line and a reply is a line, and nothing of what they say. Whatever the program does wrong
becomes a :class:`~quiesce.model.backend.BackendFault`; the program and its process group are gone by the time it is
raised.

A guardian process ends the driver programs of a process that was ended by force, and could not do it itself. A driver
program that hangs does not see that its input ended. Linux could end it with its parent (``PR_SET_PDEATHSIG``), but not
what it started, and only where each start copies this process. So one shell is told of every process group.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, cast

from quiesce.backends.command.pipes import Output, Pipes, StandardFiles
from quiesce.backends.command.stacks import with_names
from quiesce.backends.command.wire import BATCH, LINE_BYTES_MAX, QUIT, preview, shorten
from quiesce.model.backend import BackendFault
from quiesce.model.rules import ENDS_WITH_INPUT, IN_PROTOCOL, IN_TIME, SURVIVES

_SCRIPT: Final = """
trap '' INT TERM HUP
left=
while read -r what group; do
    kept=
    for each in $left; do [ "$each" = "$group" ] || kept="$kept $each"; done
    left=$kept
    [ "$what" = + ] && left="$left $group"
done
for each in $left; do kill -9 "-$each"; done
"""


class Guardian:
    """The shell, which starts with the first driver program. A forked child of ours has one of its own."""

    def __init__(self) -> None:
        self._owner = 0
        self._input: FileIO | None = None

    def watch(self, group: int) -> None:
        """End the process group when this process is gone."""
        if sys.platform == "win32":
            return
        if self._owner != os.getpid():
            self._start()
        self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """Let the process group be: it was ended, and its number may be that of another."""
        if self._owner == os.getpid():
            self._tell(f"- {group}\n")

    def _start(self) -> None:
        self._owner, self._input = os.getpid(), None
        with suppress(OSError):  # no shell: then this is a system without the last resort
            process = subprocess.Popen(  # noqa: S603 - a list, and a text of ours
                ["/bin/sh", "-c", _SCRIPT],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
            self._input = cast(FileIO, process.stdin)
            atexit.register(_end_guardian, process, os.getpid())

    def _tell(self, line: str) -> None:
        if self._input is not None and not self._input.closed:
            with suppress(OSError):
                self._input.write(line.encode())


def _end_guardian(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner and process.stdin is not None:
        process.stdin.close()
        process.wait()


GUARDIAN: Final = Guardian()
"""The one of this process."""


if sys.platform == "win32":  # which cannot wait for pipes
    from quiesce.backends.command.pipes import ThreadedPipes as SystemPipes
else:
    from quiesce.backends.command.pipes import PolledPipes as SystemPipes

POLL_SECONDS: Final = 0.2
"""How often to see whether the process is gone although a child of it still holds its output open."""
EXIT_SECONDS: Final = 5.0
"""How long a process may take to be gone once it was killed or has closed its output."""
EXIT_POLL_SECONDS: Final = 0.02
"""How often to take what a process that is about to end writes to standard error."""
TAIL_SECONDS: Final = 1.0
"""How long to wait for the last of standard error once the process is gone."""


class Program:
    """A running driver program. Not shared between threads."""

    def __init__(
        self, command: Sequence[str], watchdog_seconds: float, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the program, without a shell. Raises :class:`OSError` where it cannot be started."""
        self._watchdog_seconds = watchdog_seconds
        self._process = _start(command, environment)
        GUARDIAN.watch(self._process.pid)
        standard = cast(StandardFiles, (self._process.stdin, self._process.stdout, self._process.stderr))
        self._pipes: Pipes = SystemPipes(standard, LINE_BYTES_MAX)
        self._finalizer = weakref.finalize(self, _end, self._process, self._pipes, os.getpid())
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._unasked_for: Output | None = None
        self._fault: BackendFault | None = None

    @property
    def faulty(self) -> bool:
        """Whether a fault has ended the program."""
        return self._fault is not None

    def exchange(self, request: str) -> bytes:
        """Send one request and return the line that answers it, without its line ending.

        Raises :class:`~quiesce.model.backend.BackendFault`; after the first one, that one again.
        """
        self._check()
        if (early := self._early()) is not None:
            raise self._unasked(early, request)
        self._pipes.send(request.encode() + b"\n")
        return self.reply(request, last=True)

    def send_ahead(self, requests: Sequence[str]) -> bool:
        """Send several requests as one batch; say whether that was possible. :meth:`reply` returns each answer."""
        if self._fault is not None or not self._finalizer.alive or self._early() is not None:
            return False
        self._pipes.send("".join(f"{request}\n" for request in (f"{BATCH} {len(requests)}", *requests)).encode())
        return True

    def reply(self, request: str, *, last: bool) -> bytes:
        """Return the line that answers a request that was sent; ``last``: no other answer may follow.

        Raises :class:`~quiesce.model.backend.BackendFault`.
        """
        self._check()
        deadline = time.monotonic() + self._watchdog_seconds
        while not self._lines:
            output = self._await_output(deadline)
            if output is None:
                raise self._hung(request)
            if output.ended:
                raise self._gone(request, output.rest)
            if output.overflow:
                raise self.fault(
                    IN_PROTOCOL, f"the driver program answered '{shorten(request)}' with {_written(output)}"
                )
            self._lines.extend(output.lines)
            self._rest = output.rest
        if last and (len(self._lines) > 1 or self._rest):
            written = _written(Output(tuple(self._lines), self._rest))
            raise self.fault(
                IN_PROTOCOL, f"the driver program answered '{shorten(request)}' with more than a line: {written}"
            )
        return self._lines.popleft()

    def finish(self) -> None:
        """Send ``quit``, which has no reply: the program exits with code 0. Its process group is ended with it.

        Raises :class:`~quiesce.model.backend.BackendFault` for any other end.
        """
        self._pipes.send(f"{QUIT}\n".encode())
        self._pipes.close_input()
        deadline = time.monotonic() + self._watchdog_seconds
        output = self._await_output(deadline)
        if output is None:
            raise self._hung(QUIT)
        if not output.ended or output.rest:
            raise self.fault(
                IN_PROTOCOL, f"the driver program answered '{QUIT}', which has no reply, with {_written(output)}"
            )
        if (code := self._exit_code(max(0.0, deadline - time.monotonic()))) is None:
            raise self._hung(QUIT)
        if code != 0:
            raise self.fault(SURVIVES, f"the driver program {_exited(code)} after '{QUIT}' instead of with code 0")
        self._finalizer()

    def leave(self) -> None:
        """End the input without a word, as a harness does that is gone: the program exits, with whatever code.

        Raises :class:`~quiesce.model.backend.BackendFault` where it stays.
        """
        self._pipes.close_input()
        deadline = time.monotonic() + self._watchdog_seconds
        output: Output | None = Output()
        while output is not None and not output.ended:
            output = self._await_output(deadline)
        if output is None or self._exit_code(max(0.0, deadline - time.monotonic())) is None:
            observed = f"the driver program was still there {self._watchdog_seconds:g} s after its input had ended"
            raise self.fault(ENDS_WITH_INPUT, observed)
        self._finalizer()

    def fault(self, rule: str, observed: str) -> BackendFault:
        """End the program and return the fault to raise, with the end of its standard error as evidence."""
        _kill_group(self._process)
        self._fault = BackendFault(rule, observed, with_names(self._pipes.errors(TAIL_SECONDS)))
        self._finalizer()
        return self._fault

    def end(self) -> None:
        """End the program and its process group now; idempotent."""
        self._finalizer()

    def _check(self) -> None:
        if self._fault is not None:
            raise BackendFault(self._fault.rule, self._fault.observed, self._fault.evidence)
        if not self._finalizer.alive:
            raise ValueError("the driver program has been ended")

    def _early(self) -> Output | None:
        """Return what the program wrote although nothing was asked."""
        if self._lines:
            return Output(tuple(self._lines), self._rest)
        if self._unasked_for is None:
            self._unasked_for = self._pipes.receive(0)
        return self._unasked_for

    def _await_output(self, deadline: float) -> Output | None:
        """Return the next output, or None at the deadline. A process that is gone has ended its output."""
        while True:
            remaining = deadline - time.monotonic()
            output = self._pipes.receive(max(0.0, min(POLL_SECONDS, remaining)))
            if output is not None:
                return output
            if self._process.poll() is not None:
                _kill_group(self._process)  # a child that holds the output open, or nobody
                return self._pipes.receive(TAIL_SECONDS) or Output(ended=True)
            if remaining <= 0:
                return None

    def _exit_code(self, seconds_max: float) -> int | None:
        """Wait for the process to end, and take from it what it says on standard error meanwhile."""
        deadline = time.monotonic() + seconds_max
        while True:
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(EXIT_POLL_SECONDS)
            if (remaining := deadline - time.monotonic()) <= 0:
                return None
            self._pipes.errors(min(POLL_SECONDS, remaining))

    def _unasked(self, output: Output, request: str) -> BackendFault:
        if output.ended and not output.rest:
            return self._gone(request, b"")
        return self.fault(
            IN_PROTOCOL, f"the driver program wrote {_written(output)} before it was asked '{shorten(request)}'"
        )

    def _gone(self, request: str, rest: bytes) -> BackendFault:
        code = self._exit_code(EXIT_SECONDS)
        begun = f", having written {preview(rest)} of its reply" if rest else ""
        if code is None:
            observed = f"the driver program closed its standard output instead of answering '{shorten(request)}'{begun}"
            return self.fault(IN_PROTOCOL, observed)
        return self.fault(
            SURVIVES, f"the driver program {_exited(code)} instead of answering '{shorten(request)}'{begun}"
        )

    def _hung(self, request: str) -> BackendFault:
        observed = (
            f"the driver program did not answer '{shorten(request)}' within {self._watchdog_seconds:g} s and was killed"
        )
        return self.fault(IN_TIME, observed)


def _start(command: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    if sys.platform == "win32":
        return subprocess.Popen(  # noqa: S603 - a list, no shell
            command,
            bufsize=0,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
        )
    return subprocess.Popen(  # noqa: S603 - a list, no shell
        command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    )


def _end(process: subprocess.Popen[bytes], pipes: Pipes, owner: int) -> None:
    if os.getpid() != owner:  # a forked child of ours shares the pipes, not the driver
        return
    _kill_group(process)
    GUARDIAN.forget(process.pid)
    pipes.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(EXIT_SECONDS)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the driver with every process it started, as far as the system can tell."""
    if sys.platform == "win32" and process.poll() is None:
        tool = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "taskkill.exe")
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - a list, no shell
                [tool, "/F", "/T", "/PID", str(process.pid)], check=False, capture_output=True, timeout=EXIT_SECONDS
            )
    elif sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):  # gone; macOS refuses a group of the dead
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(OSError):
        process.kill()


def _exited(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}" if code < 256 else f"exited with code {code:#x}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name} (exit code {code})"


def _written(output: Output) -> str:
    if output.overflow:
        return f"more than {LINE_BYTES_MAX:,} bytes in a line, or a flood of lines"
    return preview(b"\n".join((*output.lines, output.rest)))
