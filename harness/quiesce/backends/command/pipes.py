"""The three pipes of a driver program, as its harness uses them: whatever the driver does, no call blocks for long.

On POSIX one thread reads and writes them with ``poll``: an answer takes a third of the time that threads need, and no
end of ours ever blocks. Windows cannot wait for pipes: there every pipe end belongs to one thread, which alone reads or
writes it and alone closes it. So a driver that floods its output, never reads its input, or leaves a child that keeps a
pipe open delays nobody, and what it writes to standard error meanwhile is taken from it.
"""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from math import ceil
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TypeAlias

READ_BYTES: Final = 64 << 10
TAIL_BYTES_MAX: Final = 64 << 10
"""How much of a driver's standard error is kept: its end."""


StandardFiles: TypeAlias = tuple[FileIO, FileIO, FileIO]
"""Our ends of standard input, output and error, unbuffered."""


@dataclass(frozen=True, slots=True)
class Output:
    """What one read of standard output brought.

    ``lines`` are complete (their line endings removed); ``rest`` is the beginning of another. ``overflow``: more came
    than a driver may write, and nothing further is kept. ``ended``: the end of the output.
    """

    lines: tuple[bytes, ...] = ()
    rest: bytes = b""
    overflow: bool = False
    ended: bool = False


class Pipes(Protocol):
    """Lines to a driver program and from it. Not shared between threads."""

    def send(self, text: bytes) -> None:
        """Send a text, in the end; a driver that is gone shows at its output."""

    def close_input(self) -> None:
        """Close standard input after what was sent."""

    def receive(self, seconds_max: float) -> Output | None:
        """Return what came next, waiting at most ``seconds_max``; None: nothing came. Nothing comes after the end."""

    def errors(self, seconds_max: float) -> str:
        """Return the end of standard error, waiting at most ``seconds_max`` for its last words."""

    def close(self) -> None:
        """Close what this process holds of the pipes; idempotent."""


class Tail:
    """The end of a text that comes in pieces."""

    def __init__(self) -> None:
        self._kept = b""
        self._total_bytes = 0

    def add(self, piece: bytes) -> None:
        """Add a piece, and forget what is too long ago."""
        self._kept = (self._kept + piece)[-TAIL_BYTES_MAX:]
        self._total_bytes += len(piece)

    def text(self) -> str:
        """Return what was kept, with how much it is of how much; nothing where nothing came."""
        kept, total = self._kept, self._total_bytes
        if not total:
            return ""
        cut = f" (the last {len(kept):,} of {total:,} bytes)" if total > len(kept) else ""
        return f"standard error{cut}:\n{kept.decode('utf-8', 'replace')}"


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
        data = _read_now(self._output)
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
        piece = _read_now(self._errors)
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


def _read_now(end: int) -> bytes | None:
    """Return what an end has, nothing where it has ended, and None where nothing is there yet."""
    try:
        return os.read(end, READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


UNCLAIMED_CHUNKS_MAX: Final = 16
"""How many reads may wait to be asked for; a driver that writes more than that is flooding, and the rest is dropped."""


class ThreadedPipes:
    """The pipes of a process on a system without ``poll``."""

    def __init__(self, standard: StandardFiles, line_bytes_max: int) -> None:
        written, read, errors = standard
        self._writer = Writer(written)
        self._outputs = LineReader(read, line_bytes_max).outputs
        self._errors = TailReader(errors)
        self._ended = False

    def send(self, text: bytes) -> None:
        """Send a text, in the end."""
        self._writer.send(text)

    def close_input(self) -> None:
        """Close standard input after what was sent."""
        self._writer.close()

    def receive(self, seconds_max: float) -> Output | None:
        """Return what came next, waiting at most ``seconds_max``."""
        if self._ended:
            return Output(ended=True)
        try:
            output = self._outputs.get(timeout=seconds_max) if seconds_max > 0 else self._outputs.get_nowait()
        except Empty:
            return None
        self._ended = output.ended
        return output

    def errors(self, seconds_max: float) -> str:
        """Return the end of standard error."""
        return self._errors.text(seconds_max)

    def close(self) -> None:
        """Close standard input; the threads close the other ends as they end."""
        self._writer.close()


class LineReader:
    """Reads standard output into :attr:`outputs`, one item for each read that completed a line."""

    def __init__(self, pipe: FileIO, line_bytes_max: int) -> None:
        self.outputs: SimpleQueue[Output] = SimpleQueue()
        threading.Thread(target=_read_lines, args=(pipe, self.outputs, line_bytes_max), daemon=True).start()


class TailReader:
    """Reads standard error and keeps its end."""

    def __init__(self, pipe: FileIO) -> None:
        self._tail = Tail()
        self._thread = threading.Thread(target=_read_tail, args=(pipe, self._tail), daemon=True)
        self._thread.start()

    def text(self, seconds_max: float) -> str:
        """Return what was kept, waiting at most ``seconds_max`` for the pipe to end, as it does with the driver."""
        self._thread.join(seconds_max)
        return self._tail.text()


class Writer:
    """Writes to standard input, in a thread because a driver that does not read blocks its writer."""

    def __init__(self, pipe: FileIO) -> None:
        self._texts: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=_write_texts, args=(pipe, self._texts), daemon=True).start()

    def send(self, text: bytes) -> None:
        """Send a text, in the end; a driver that is gone shows at its output."""
        self._texts.put(text)

    def close(self) -> None:
        """Close the pipe behind what was sent."""
        self._texts.put(None)


def _read_or_end(pipe: FileIO) -> bytes:
    try:
        return pipe.read(READ_BYTES) or b""
    except OSError:
        return b""


def _read_lines(pipe: FileIO, outputs: SimpleQueue[Output], line_bytes_max: int) -> None:
    rest = b""
    with pipe:
        while data := _read_or_end(pipe):
            *lines, rest = (rest + data).split(b"\n")
            if any(len(line) >= line_bytes_max for line in (*lines, rest)) or outputs.qsize() >= UNCLAIMED_CHUNKS_MAX:
                outputs.put(Output(overflow=True))
                while _read_or_end(pipe):
                    pass
            elif lines:
                outputs.put(Output(tuple(line.removesuffix(b"\r") for line in lines), rest))
    outputs.put(Output(rest=rest, ended=True))


def _read_tail(pipe: FileIO, tail: Tail) -> None:
    with pipe:
        while data := _read_or_end(pipe):
            tail.add(data)


def _write_texts(pipe: FileIO, texts: SimpleQueue[bytes | None]) -> None:
    with suppress(OSError), pipe:
        while (text := texts.get()) is not None:
            while text:
                text = text[pipe.write(text) or 0 :]
