"""Pipes that one thread reads and writes, with ``poll``: an answer takes a third of the time that threads need.

No end of ours ever blocks. So a driver that floods its output, never reads its input, or leaves a child that keeps a
pipe open delays nobody, and what it writes to standard error meanwhile is taken from it.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from math import ceil

from quiesce.backends.command.pipes import READ_BYTES, Output, StandardFiles, Tail


class PolledPipes:
    """The pipes of a process on a system with ``poll``, which are this object's own."""

    def __init__(self, standard: StandardFiles, line_bytes_max: int) -> None:
        self._files = {file.fileno(): file for file in standard}
        self._input, self._output, self._errors = self._files
        self._line_bytes_max = line_bytes_max
        self._unsent = b""
        self._rest = b""
        self._closing = self._overflow = False
        self._tail = Tail()
        self._poll = select.poll()
        for end in (self._input, self._output, self._errors):
            os.set_blocking(end, False)
        for end in (self._output, self._errors):
            self._poll.register(end, select.POLLIN)
        self._open = set(self._files)

    def send(self, text: bytes) -> None:
        """Send a text, in the end."""
        self._unsent += text
        self._write()

    def close_input(self) -> None:
        """Close standard input after what was sent."""
        self._closing = True
        self._write()

    def receive(self, seconds_max: float) -> Output | None:
        """Return what came next, waiting at most ``seconds_max``."""
        deadline = time.monotonic() + seconds_max
        while self._output in self._open:
            ready = [end for end, _ in self._poll.poll(ceil(seconds_max * 1000))]
            if self._output in ready and (output := self._read_output()) is not None:
                return output
            if self._errors in ready:
                self._read_errors()
            if self._input in ready:
                self._write()
            if (seconds_max := deadline - time.monotonic()) <= 0:
                return None
        return Output(ended=True)

    def errors(self, seconds_max: float) -> str:
        """Return the end of standard error."""
        deadline = time.monotonic() + seconds_max
        poll = select.poll()
        poll.register(self._errors, select.POLLIN)
        while self._errors in self._open and poll.poll(ceil(seconds_max * 1000)):
            self._read_errors()
            if (seconds_max := deadline - time.monotonic()) <= 0:
                break
        return self._tail.text()

    def close(self) -> None:
        """Close what this process holds of the pipes, and keep what was said until now."""
        if self._errors in self._open:
            self._read_errors()
        for end in tuple(self._open):
            self._drop(end)

    def _write(self) -> None:
        if self._input not in self._open:
            return
        waited = bool(self._unsent)
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._input, self._unsent) :]
        except BlockingIOError:
            self._poll.register(self._input, select.POLLOUT)
            return
        except OSError:  # nobody reads any more
            self._unsent, self._closing = b"", True
        if waited:
            with suppress(KeyError):
                self._poll.unregister(self._input)
        if self._closing:
            self._drop(self._input)

    def _read_output(self) -> Output | None:
        """Return what a read brought, or None where no line is complete yet."""
        data = _read(self._output)
        if data is None:
            return None
        if not data:
            self._drop(self._output)
            return Output(rest=self._rest, ended=True)
        if self._overflow:
            return None
        *lines, rest = (self._rest + data).split(b"\n")
        longest = max(map(len, lines), default=0)
        if max(longest, len(rest)) >= self._line_bytes_max:
            self._overflow, self._rest = True, b""
            return Output(overflow=True)
        self._rest = rest
        return Output(tuple(line.removesuffix(b"\r") for line in lines), rest) if lines else None

    def _read_errors(self) -> None:
        piece = _read(self._errors)
        if piece:
            self._tail.add(piece)
        elif piece is not None:
            self._drop(self._errors)

    def _drop(self, end: int) -> None:
        self._open.discard(end)
        with suppress(KeyError):
            self._poll.unregister(end)
        with suppress(OSError):
            self._files[end].close()


def _read(end: int) -> bytes | None:
    """Return what an end has, nothing where it has ended, and None where nothing is there yet."""
    try:
        return os.read(end, READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
