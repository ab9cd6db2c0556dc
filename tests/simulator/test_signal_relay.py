"""Signals from outside: the program of a run gets them, and quiesce outlives them."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from quiesce.simulator.runtime.processes import SignalRelay

_ECHO = "echo ready; while read -r line; do echo $line; done"


@contextmanager
def relayed(script: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """Run a shell script that says that it is ready, with a relay that listens."""
    relay = SignalRelay()
    with (
        relay.listening(),
        subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        relay.attach(process)
        try:
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


def test_the_first_interrupt_is_left_to_the_terminal_and_the_second_is_sent_on() -> None:
    with relayed(_ECHO) as (process, written, read):
        signal.raise_signal(signal.SIGINT)
        written.write(b"alive\n")
        written.flush()
        assert read.readline() == b"alive\n"
        signal.raise_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT


def test_the_third_interrupt_kills() -> None:
    with relayed(f"trap '' INT; {_ECHO}") as (process, _, _):
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_else_ends_a_program_is_sent_on_at_once(number: signal.Signals) -> None:
    with relayed(_ECHO) as (process, _, _):
        signal.raise_signal(number)
        assert process.wait() == -number


def test_what_came_while_the_program_was_started_is_sent_on() -> None:
    relay = SignalRelay()
    with relay.listening():
        signal.raise_signal(signal.SIGINT)
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
            relay.attach(process)
            assert process.wait() == -signal.SIGINT


def test_handlers_are_as_before_afterwards_and_others_are_left_alone() -> None:
    def own(*_: object) -> None:
        raise AssertionError

    usual = signal.signal(signal.SIGTERM, own)
    try:
        with SignalRelay().listening():
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
