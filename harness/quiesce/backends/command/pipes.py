"""The threads at the three pipes of a driver program.

Every pipe end belongs to one thread, which alone reads or writes it and alone closes it. So a driver that floods
its output, never reads its input, or leaves a child that keeps a pipe open can block a thread of ours but never
the harness. Threads and queues, because Windows cannot select on pipes.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from queue import SimpleQueue
from typing import Final

READ_BYTES: Final = 64 << 10
TAIL_BYTES_MAX: Final = 64 << 10
"""How much of a driver's standard error is kept: its end."""
UNCLAIMED_CHUNKS_MAX: Final = 16
"""How many reads may wait to be asked for; a driver that writes more than that is flooding, and the rest is dropped."""


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


class LineReader:
    """Reads standard output into :attr:`outputs`, one item for each read that completed a line."""

    def __init__(self, pipe: FileIO, line_bytes_max: int) -> None:
        self.outputs: SimpleQueue[Output] = SimpleQueue()
        threading.Thread(target=_read_lines, args=(pipe, self.outputs, line_bytes_max), daemon=True).start()


class TailReader:
    """Reads standard error and keeps its end."""

    def __init__(self, pipe: FileIO) -> None:
        self._tail = _Tail()
        self._thread = threading.Thread(target=_read_tail, args=(pipe, self._tail), daemon=True)
        self._thread.start()

    def text(self, seconds_max: float) -> str:
        """Return what was kept, waiting at most ``seconds_max`` for the pipe to end, as it does with the driver."""
        self._thread.join(seconds_max)
        kept, total = self._tail.kept, self._tail.total_bytes
        if not total:
            return ""
        cut = f" (the last {len(kept):,} of {total:,} bytes)" if total > len(kept) else ""
        return f"standard error{cut}:\n{kept.decode('utf-8', 'replace')}"


class Writer:
    """Writes lines to standard input, in a thread because a driver that does not read blocks its writer."""

    def __init__(self, pipe: FileIO) -> None:
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=_write_lines, args=(pipe, self._lines), daemon=True).start()

    def send(self, line: str) -> None:
        """Send one line, in the end; a driver that is gone shows at its output."""
        self._lines.put(line.encode() + b"\n")

    def close(self) -> None:
        """Close the pipe behind what was sent."""
        self._lines.put(None)


class _Tail:
    def __init__(self) -> None:
        self.kept = b""
        self.total_bytes = 0


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


def _read_tail(pipe: FileIO, tail: _Tail) -> None:
    with pipe:
        while data := _read(pipe):
            tail.kept = (tail.kept + data)[-TAIL_BYTES_MAX:]
            tail.total_bytes += len(data)


def _write_lines(pipe: FileIO, lines: SimpleQueue[bytes | None]) -> None:
    with suppress(OSError), pipe:
        while (line := lines.get()) is not None:
            while line:
                line = line[pipe.write(line) or 0 :]
