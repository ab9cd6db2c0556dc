"""The threads at the pipes, without a process: nothing here may block, whatever the other end does."""

import os
import threading
from collections.abc import Iterator
from io import FileIO

import pytest

from quiesce.backends.command.pipes import TAIL_BYTES_MAX, UNCLAIMED_CHUNKS_MAX, LineReader, Output, TailReader, Writer

SECONDS_MAX = 120.0
Pipe = tuple[FileIO, FileIO]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    before = set(threading.enumerate())
    read, write = os.pipe()
    ours, theirs = FileIO(read, "rb"), FileIO(write, "wb")
    yield ours, theirs  # a test closes the end that plays the driver's; the other end is its thread's
    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS_MAX)
        assert not thread.is_alive(), "a thread outlives its pipe"
    assert ours.closed
    assert theirs.closed


def test_a_reply_in_two_pieces_is_one_line(pipe: Pipe) -> None:
    reader = LineReader(pipe[0], 100)
    pipe[1].write(b'{"outcome":')
    pipe[1].write(b'"done"}\r\n')
    assert reader.outputs.get(timeout=SECONDS_MAX) == Output((b'{"outcome":"done"}',))
    pipe[1].close()


def test_two_replies_in_one_write_are_seen_together(pipe: Pipe) -> None:
    reader = LineReader(pipe[0], 100)
    pipe[1].write(b"one\ntwo\nthr")
    assert reader.outputs.get(timeout=SECONDS_MAX) == Output((b"one", b"two"), b"thr")
    pipe[1].close()


def test_the_end_brings_what_was_begun(pipe: Pipe) -> None:
    reader = LineReader(pipe[0], 100)
    pipe[1].write(b"half")
    pipe[1].close()
    assert reader.outputs.get(timeout=SECONDS_MAX) == Output(rest=b"half", ended=True)


@pytest.mark.parametrize(("length", "overflow"), [(99, False), (100, True)])
def test_a_line_has_a_limit(pipe: Pipe, length: int, overflow: bool) -> None:
    reader = LineReader(pipe[0], 100)
    pipe[1].write(b"x" * length + b"\n")
    assert reader.outputs.get(timeout=SECONDS_MAX).overflow is overflow
    pipe[1].close()


def test_a_flood_that_nobody_asks_for_is_bounded_and_never_blocks_the_driver(pipe: Pipe) -> None:
    reader = LineReader(pipe[0], 1 << 16)
    for _ in range(2000):
        pipe[1].write(b"done\n" * 1000)
    pipe[1].close()
    outputs = [reader.outputs.get(timeout=SECONDS_MAX)]
    while not outputs[-1].ended:
        outputs.append(reader.outputs.get(timeout=SECONDS_MAX))
    assert outputs[-2].overflow
    assert len(outputs) <= UNCLAIMED_CHUNKS_MAX + 2


def test_the_tail_of_standard_error_is_kept(pipe: Pipe) -> None:
    reader = TailReader(pipe[0])
    for _ in range(300):
        pipe[1].write(b"0123456789" * 100)
    pipe[1].write(b"\xff the end")
    pipe[1].close()
    text = reader.text(SECONDS_MAX)
    assert text.startswith(f"standard error (the last {TAIL_BYTES_MAX:,} of 300,009 bytes):\n")
    assert text.endswith("\N{REPLACEMENT CHARACTER} the end")


def test_an_unused_standard_error_is_no_evidence(pipe: Pipe) -> None:
    reader = TailReader(pipe[0])
    pipe[1].close()
    assert reader.text(SECONDS_MAX) == ""


def test_writing_to_a_driver_that_does_not_read_does_not_block(pipe: Pipe) -> None:
    writer = Writer(pipe[1])
    for _ in range(100):
        writer.send("x" * 65_535)
    writer.close()
    assert pipe[0].read(4) == b"xxxx"
    pipe[0].close()  # now the thread must end


def test_what_was_sent_arrives_before_the_end(pipe: Pipe) -> None:
    writer = Writer(pipe[1])
    writer.send("quit")
    writer.close()
    assert pipe[0].readall() == b"quit\n"
    pipe[0].close()
