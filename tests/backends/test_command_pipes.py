"""The pipes of a driver, without a process: nothing here may block, whatever the other end does."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO

import pytest

from quiesce.backends.command.pipes import (
    TAIL_BYTES_MAX,
    UNCLAIMED_CHUNKS_MAX,
    Output,
    Pipes,
    StandardFiles,
    ThreadedPipes,
)

SECONDS_MAX = 120.0
LINE_BYTES_MAX = 100

KINDS: list[Callable[[StandardFiles, int], Pipes]] = [ThreadedPipes]
if sys.platform != "win32":
    from quiesce.backends.command.pipes import PolledPipes

    KINDS.append(PolledPipes)


@dataclass
class Ends:
    """The pipes, and the driver's ends of them."""

    pipes: Pipes
    reads: FileIO
    writes: FileIO
    errors: FileIO

    def end(self) -> None:
        """Close the driver's ends, as its exit does."""
        for end in (self.reads, self.writes, self.errors):
            end.close()

    def receive(self) -> Output:
        output = self.pipes.receive(SECONDS_MAX)
        assert output is not None
        return output


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    before = set(threading.enumerate())
    (reads, ours_in), (ours_out, writes), (ours_err, errors) = os.pipe(), os.pipe(), os.pipe()
    standard = FileIO(ours_in, "wb"), FileIO(ours_out, "rb"), FileIO(ours_err, "rb")
    ends = Ends(
        request.param(standard, LINE_BYTES_MAX), FileIO(reads, "rb"), FileIO(writes, "wb"), FileIO(errors, "wb")
    )
    yield ends
    ends.end()
    ends.pipes.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS_MAX)
        assert not thread.is_alive(), "a thread outlives its pipe"
    assert all(file.closed for file in standard)


def test_a_reply_in_two_pieces_is_one_line(ends: Ends) -> None:
    ends.writes.write(b'{"outcome":')
    ends.writes.write(b'"done"}\r\n')
    assert ends.receive() == Output((b'{"outcome":"done"}',))


def test_two_replies_in_one_write_are_seen_together(ends: Ends) -> None:
    ends.writes.write(b"one\ntwo\nthr")
    assert ends.receive() == Output((b"one", b"two"), b"thr")


def test_the_end_brings_what_was_begun_and_stays_the_end(ends: Ends) -> None:
    ends.writes.write(b"half")
    ends.end()
    assert ends.receive() == Output(rest=b"half", ended=True)
    assert ends.receive() == Output(ended=True)


def test_nothing_comes_where_nothing_was_written(ends: Ends) -> None:
    assert ends.pipes.receive(0) is None


@pytest.mark.parametrize(("length", "overflow"), [(LINE_BYTES_MAX - 1, False), (LINE_BYTES_MAX, True)])
def test_a_line_has_a_limit(ends: Ends, length: int, overflow: bool) -> None:
    ends.writes.write(b"x" * length + b"\n")
    assert ends.receive().overflow is overflow


def test_a_flood_of_standard_error_delays_no_reply(ends: Ends) -> None:
    def flood() -> None:
        for _ in range(300):
            ends.errors.write(b"0123456789" * 100)
        ends.writes.write(b"done\n")

    driver = threading.Thread(target=flood)
    driver.start()
    assert ends.receive() == Output((b"done",))
    driver.join(SECONDS_MAX)


def test_the_tail_of_standard_error_is_kept(ends: Ends) -> None:
    def say() -> None:
        for _ in range(300):
            ends.errors.write(b"0123456789" * 100)
        ends.errors.write(b"\xff the end")
        ends.errors.close()

    driver = threading.Thread(target=say)
    driver.start()
    text = ends.pipes.errors(SECONDS_MAX)
    driver.join(SECONDS_MAX)
    assert text.startswith(f"standard error (the last {TAIL_BYTES_MAX:,} of 300,009 bytes):\n")
    assert text.endswith("\N{REPLACEMENT CHARACTER} the end")


def test_an_unused_standard_error_is_no_evidence(ends: Ends) -> None:
    ends.errors.close()
    assert ends.pipes.errors(SECONDS_MAX) == ""


def test_writing_to_a_driver_that_does_not_read_does_not_block(ends: Ends) -> None:
    for _ in range(100):
        ends.pipes.send(b"x" * 65_536)
    ends.pipes.close_input()
    assert ends.reads.read(4) == b"xxxx"


def test_what_was_sent_arrives_before_the_end_while_a_reply_is_waited_for(ends: Ends) -> None:
    sent = b"x" * (1 << 20)
    read: list[bytes] = []

    def answer() -> None:
        while data := ends.reads.read(65_536):
            read.append(data)
        ends.writes.write(b"done\n")

    driver = threading.Thread(target=answer)
    driver.start()
    ends.pipes.send(sent)
    ends.pipes.send(b"quit")
    ends.pipes.close_input()
    assert ends.receive() == Output((b"done",))
    driver.join(SECONDS_MAX)
    assert b"".join(read) == sent + b"quit"


def test_a_driver_that_is_gone_is_seen_at_its_output(ends: Ends) -> None:
    ends.end()
    ends.pipes.send(b"gauges\n")
    assert ends.receive().ended


def test_a_flood_that_nobody_asks_for_is_bounded_and_never_blocks_the_driver_of_threads() -> None:
    (reads, ours_in), (ours_out, writes), (ours_err, errors) = os.pipe(), os.pipe(), os.pipe()
    pipes = ThreadedPipes((FileIO(ours_in, "wb"), FileIO(ours_out, "rb"), FileIO(ours_err, "rb")), 1 << 16)
    with FileIO(writes, "wb") as driver:
        for _ in range(2000):
            driver.write(b"done\n" * 1000)
    outputs = [pipes.receive(SECONDS_MAX)]
    while outputs[-1] is not None and not outputs[-1].ended:
        outputs.append(pipes.receive(SECONDS_MAX))
    before = outputs[-2]
    assert before is not None
    assert before.overflow
    assert len(outputs) <= UNCLAIMED_CHUNKS_MAX + 2
    pipes.close()
    os.close(reads)
    os.close(errors)
