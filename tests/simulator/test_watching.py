"""What is judged of a process between two moments while it runs, here and in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.watching import Between, RemoteWatch, Watch
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

from .conftest import Client, Start
from .programs import compile_client

MIB = 1 << 20


def rules(between: Between) -> list[str]:
    return [finding.rule for finding in between.findings]


def watched(client: Client) -> Watch:
    return Watch(client.machine.ledger, client.machine.stacks)


def free_twice(client: Client) -> None:
    block = client.make("Malloc", 64)
    client.ok("Free", block)
    client.call("Free", block)


def test_a_finding_is_told_once_and_not_if_it_is_older(start: Start) -> None:
    client = start()
    watch = watched(client)
    free_twice(client)
    watch.begin()
    assert rules(watch.findings(AtExit.NONE)) == []
    free_twice(client)
    free_twice(client)
    (finding,) = watch.findings(AtExit.NONE).findings
    assert (finding.rule, finding.seen) == ("memory_is_freed_once", 2), "from one place"
    assert [site.role for site in finding.call_sites] == ["allocated by", "freed by", "freed again by"]
    assert rules(watch.findings(AtExit.NONE)) == []


def test_what_was_made_since_and_is_still_there_is_told_once(start: Start) -> None:
    client = start()
    client.make("Malloc", MIB)
    watch = watched(client)
    watch.begin()
    client.make("Malloc", 64)
    client.ok("Free", client.make("Malloc", 32))
    assert rules(watch.findings(AtExit.NONE)) == []
    (finding,) = watch.findings(AtExit.ALL).findings
    assert finding.observed.startswith("64 bytes in 1 block of device memory from cudaMalloc")
    assert finding.expected == "everything freed before the test ends"
    assert rules(watch.findings(AtExit.ALL)) == []
    client.make("StreamCreate")
    assert rules(watch.findings(AtExit.ALL)) == ["handles_are_destroyed_at_quiescence"]


def test_only_what_nobody_can_give_back_is_lost(start: Start) -> None:
    client = start()
    watch = watched(client)
    watch.begin()
    client.make("Malloc", 64)
    things = list(client.machine.ledger.live())
    is_lost = [thing.is_lost for thing in things]
    assert rules(watch.findings(AtExit.LOST)) == ["nothing_is_left_at_quiescence"] * any(is_lost)
    assert rules(watch.findings(AtExit.ALL)) == ["nothing_is_left_at_quiescence"] * (not any(is_lost))


@pytest.mark.parametrize(
    ("calls", "is_tested"),
    [
        (lambda client: client.ok("Free", client.make("Malloc", 64)), True),
        (lambda client: client.ok("StreamDestroy", client.make("StreamCreate")), True),
        (lambda client: client.call("GetLastError"), False),
    ],
)
def test_whether_anything_was_tested_since(calls: Callable[[Client], object], is_tested: bool, start: Start) -> None:
    client = start()
    client.make("Malloc", 64)
    watch = watched(client)
    watch.begin()
    calls(client)
    assert (watch.findings(AtExit.NONE).untested is None) == is_tested
    watch.begin()
    assert watch.findings(AtExit.NONE).untested is not None, "it begins anew"


def test_what_a_kernel_did_wrong_is_asked_for_by_itself(start: Start) -> None:
    client = start()
    watch = watched(client)
    watch.begin()
    free_twice(client)
    assert watch.wrong_accesses([]) == Between((), 0), "that is none of a kernel"


def race(client: Client, block: int, streams: list[int]) -> None:
    for stream in streams:
        client.ok("MemsetAsync", block, 1, 64, stream)


def test_calls_that_were_overwritten_are_counted_and_end_the_judgement_of_races(start: Start) -> None:
    client = start(ring=32)
    block, streams = client.make("Malloc", 64), [client.make("StreamCreate") for _ in "ab"]
    watch = watched(client)
    watch.begin()
    race(client, block, streams)
    assert rules(watch.findings(AtExit.NONE)) == ["conflicting_uses_are_ordered"]
    for _ in range(20):
        client.ok("Free", client.make("Malloc", 64))
    between = watch.findings(AtExit.NONE)
    assert 0 < between.lost < 20
    assert between.untested is None, "things were made meanwhile"
    client.ok("DeviceSynchronize")
    race(client, block, streams)
    assert rules(watch.findings(AtExit.NONE)) == []
    assert watch.findings(AtExit.NONE).lost == 0


def test_a_ledger_that_lacks_calls_from_the_beginning_is_not_judged_for_races(start: Start) -> None:
    client = start(ring=16)
    block, streams = client.make("Malloc", 64), [client.make("StreamCreate") for _ in "ab"]
    for _ in range(16):
        client.ok("StreamQuery", streams[0])
        client.ok("Free", client.make("Malloc", 64))
    watch = watched(client)
    watch.begin()
    race(client, block, streams)
    assert rules(watch.findings(AtExit.NONE)) == []


# -- in a process of its own -------------------------------------------------------------------------------------------


@pytest.fixture
def remote(tmp_path: Path, library: str) -> Iterator[RemoteWatch]:
    """A watch over the ledger of a program that freed a block twice, and left another one."""
    assert library
    program = compile_client(
        tmp_path, "void *p, *q; cudaMalloc(&p, 64); cudaFree(p); cudaFree(p); cudaMalloc(&q, 32); return 0;"
    )
    settings = MachineSettings(parse_flavour("cuda:12"), "eager", 1, {})
    with run_program([str(program)], settings, os.environ) as ended:
        watch = RemoteWatch(ended.ledgers[0])
        yield watch
        watch.close()


def test_a_process_answers_what_the_watch_finds(remote: RemoteWatch) -> None:
    between = remote.findings(AtExit.ALL)
    assert rules(between) == ["memory_is_freed_once", "nothing_is_left_at_quiescence"]
    assert between.lost == 0
    assert between.untested is None
    freed, left = between.findings
    assert [site.role for site in freed.call_sites] == ["allocated by", "freed by", "freed again by"]
    assert left.observed.startswith("32 bytes in 1 block of device memory from cudaMalloc on device 0")
    assert freed.grade is not left.grade
    assert remote.findings(AtExit.ALL).findings == ()
    assert remote.wrong_accesses([]) == Between((), 0)


def test_it_begins_when_it_is_told_to(remote: RemoteWatch) -> None:
    remote.begin()
    between = remote.findings(AtExit.ALL)
    assert between.findings == ()
    assert between.untested is not None
    assert between.untested.reason
