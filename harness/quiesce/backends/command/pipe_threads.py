"""The threads at the three pipes of a driver program, for systems that cannot wait for pipes (Windows).

Every pipe end belongs to one thread, which alone reads or writes it and alone closes it. So a driver that floods
its output, never reads its input, or leaves a child that keeps a pipe open can block a thread of ours but never
the harness.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from io import FileIO
from queue import Empty, SimpleQueue
from typing import Final

from quiesce.backends.command.pipes import READ_BYTES, Output, StandardFiles, Tail

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


def _read(pipe: FileIO) -> bytes:
    try:
        return pipe.read(READ_BYTES) or b""
    except OSError:
        return b""


def _read_lines(pipe: FileIO, outputs: SimpleQueue[Output], line_bytes_max: int) -> None:
    rest = b""
    with pipe:
        while data := _read(pipe):
            *lines, rest = (rest + data).split(b"\n")
            if any(len(line) >= line_bytes_max for line in (*lines, rest)) or outputs.qsize() >= UNCLAIMED_CHUNKS_MAX:
                outputs.put(Output(overflow=True))
                while _read(pipe):
                    pass
            elif lines:
                outputs.put(Output(tuple(line.removesuffix(b"\r") for line in lines), rest))
    outputs.put(Output(rest=rest, ended=True))


def _read_tail(pipe: FileIO, tail: Tail) -> None:
    with pipe:
        while data := _read(pipe):
            tail.add(data)


def _write_texts(pipe: FileIO, texts: SimpleQueue[bytes | None]) -> None:
    with suppress(OSError), pipe:
        while (text := texts.get()) is not None:
            while text:
                text = text[pipe.write(text) or 0 :]
