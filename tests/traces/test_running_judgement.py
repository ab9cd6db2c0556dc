"""What is said of each record by itself, and of what is left: records in, findings out."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from quiesce.model.findings import CallSite, Finding, Frame, Quotation
from quiesce.model.outcomes import Flavour
from quiesce.model.rules import Kind
from quiesce.simulator.judge.judgement import RunningJudgement
from quiesce.simulator.judge.watching import Between, between_from
from quiesce.simulator.runtime.ledger import Reach, Record, Seen, Thing

from .records import live, record


def running(*seen: Record, judges_races: bool = False) -> RunningJudgement:
    judgement = RunningJudgement(Flavour.CUDA, None, judges_races=judges_races)
    for each in seen:
        assert list(judgement.see(each)) == []
    return judgement


def left(judgement: RunningJudgement, *, looked: bool = True) -> list[tuple[str, str]]:
    things = [
        live(Thing.DEVICE, "cudaMalloc", device=device, size_bytes=64 >> device) for device in range(2) for _ in "ab"
    ]
    handles = [live(Thing.STREAM, "cudaStreamCreate", device=device) for device in range(2)]
    found = judgement.left([*things, *handles], moment="the program exits", looked=looked)
    return [(finding.rule, finding.observed) for finding in found]


ON_DEVICE: dict[int, list[tuple[str, str]]] = {
    device: [
        (
            "nothing_is_left_at_quiescence",
            f"{size} bytes in 2 blocks of device memory from cudaMalloc on device {device}, no pointer to them left",
        ),
        (
            "handles_are_destroyed_at_quiescence",
            f"1 stream from cudaStreamCreate on device {device}, no pointer to it left",
        ),
    ]
    for device, size in ((0, 128), (1, 64))
}


def test_what_is_left_is_a_leak() -> None:
    assert sorted(left(running())) == sorted([*ON_DEVICE[0], *ON_DEVICE[1]])


@pytest.mark.parametrize("broken", [0, 1])
def test_what_is_left_on_a_device_that_became_unusable_is_none(broken: int) -> None:
    judgement = running(record(Seen.CONTEXT_BROKEN, device=broken, other=700))
    assert left(judgement) == ON_DEVICE[1 - broken]
    assert judgement.notes() == [
        f"device {broken} became unusable with error 700: memory and handles that were on it are not judged"
    ]


def test_nothing_is_said_of_pointers_that_nobody_looked_for() -> None:
    assert not any("pointer" in observed for _, observed in left(running(), looked=False))


@pytest.mark.parametrize(
    ("reaches", "said"),
    [
        ((Reach.LOST, Reach.LOST), ", no pointer to them left"),
        ((Reach.LOST, Reach.INDIRECTLY_LOST), ", no pointer to them left (1 of them: only in lost memory)"),
        ((Reach.INDIRECTLY_LOST,), ", pointers to it left only in lost memory"),
        ((Reach.LOST, Reach.UNKNOWN), ""),
        ((Reach.HELD,), ""),
    ],
)
def test_what_is_said_of_pointers_holds_for_all_things_of_a_place(reaches: tuple[Reach, ...], said: str) -> None:
    things = [live(Thing.EVENT, "cudaEventCreate", reach=reach) for reach in reaches]
    (finding,) = running().left(things, moment="the end", looked=True)
    assert finding.observed.partition(" on device 0")[2] == said


AT_ONCE = [
    (
        record(Seen.FREED_TWICE, function="cudaFree", address=0x1000),
        "memory_is_freed_once",
        Kind.DOUBLE_FREE,
        "cudaFree of 0x1000, which was freed before",
    ),
    (
        record(Seen.FREED_FOREIGN, function="cudaFree", address=0x1000),
        "only_own_memory_is_freed",
        Kind.INVALID_FREE,
        "cudaFree of 0x1000, where no such block begins",
    ),
    (
        record(Seen.USED_AFTER_FREE, function="cudaMemset", address=0x1000, size_bytes=8),
        "freed_memory_is_not_used",
        Kind.USE_AFTER_FREE,
        "cudaMemset uses 8 bytes at 0x1000, freed before",
    ),
    (
        record(Seen.USED_AFTER_FREE, thing=Thing.REGISTERED, function="cudaMemcpy", address=0x1000, size_bytes=8),
        "freed_memory_is_not_used",
        Kind.USE_AFTER_FREE,
        "a copy still has 8 bytes to go at 0x1000, where no memory is mapped; cudaMemcpy detected it",
    ),
    (
        record(Seen.OUT_OF_BOUNDS, function="cudaMemset", address=0x1000, size_bytes=9, other=0x1008),
        "uses_stay_inside_their_block",
        Kind.OUT_OF_BOUNDS,
        "cudaMemset uses 9 bytes at 0x1000; the block ends at 0x1008",
    ),
    (
        record(Seen.DAMAGED, function="cudaFreeHost", address=0x1000, other=0x1008),
        "memory_after_a_block_is_unchanged",
        Kind.OVERFLOW,
        "the byte at 0x1008 was changed; cudaFreeHost detected it",
    ),
    (
        record(Seen.DEAD_HANDLE, thing=Thing.STREAM, function="cudaStreamQuery", address=0x1000),
        "destroyed_handles_are_not_used",
        Kind.DEAD_HANDLE,
        "cudaStreamQuery of stream 0x1000, which was destroyed before",
    ),
    (
        record(Seen.STAGED_AGAIN, function="cudaMemcpy", address=0x1000, other=0x2000, size_bytes=8),
        "pinned_sources_are_copied_directly",
        Kind.NEEDLESS_COPY,
        "cudaMemcpy copies the same 8 bytes from another pinned block, at 0x1000",
    ),
]


@pytest.mark.parametrize(("seen", "rule", "kind", "observed"), AT_ONCE, ids=lambda value: getattr(value, "rule", ""))
def test_what_the_runtime_saw_at_once(seen: Record, rule: str, kind: Kind, observed: str) -> None:
    (finding,) = RunningJudgement(Flavour.CUDA, None, judges_races=False).see(seen)
    assert (finding.rule, finding.kind, finding.observed) == (rule, kind, observed)
    assert (finding.operation_index, finding.request) == (seen.number, seen.function)


def test_a_finding_about_a_block_says_who_made_and_who_freed_it() -> None:
    made = record(Seen.ALLOCATED, function="cudaMalloc", address=0x1000, size_bytes=64)
    freed = record(Seen.FREED, function="cudaFree", address=0x1000)
    judgement = running(made, freed)
    (finding,) = judgement.see(record(Seen.FREED_TWICE, function="cudaFreeAsync", address=0x1000))
    assert calls(finding) == [("allocated by", made.number), ("freed by", freed.number), ("freed again by", None)]
    again = record(Seen.ALLOCATED, function="cudaMallocAsync", address=0x1000, size_bytes=32)
    assert list(judgement.see(again)) == []
    (finding,) = judgement.see(record(Seen.OUT_OF_BOUNDS, function="cudaMemset", address=0x1010, other=0x1020))
    assert calls(finding) == [("allocated by", again.number), ("used by", None)]


def calls(finding: Finding) -> list[tuple[str, int | None]]:
    """Return the calls that a finding names, each with its number but for the one that broke the rule."""
    return [(site.role, site.number if site.number != finding.operation_index else None) for site in finding.call_sites]


TWO_STREAMS = (
    record(Seen.ALLOCATED, thing=Thing.DEVICE, function="cudaMalloc", object=1, address=0x1000, size_bytes=64),
    record(Seen.CREATED, thing=Thing.STREAM, function="cudaStreamCreate", object=2),
    record(Seen.CREATED, thing=Thing.STREAM, function="cudaStreamCreate", object=3),
    record(Seen.WRITTEN, function="cudaMemsetAsync", address=0x1000, size_bytes=8, stream=2),
)
WRITE = record(Seen.WRITTEN, function="cudaMemsetAsync", address=0x1007, size_bytes=8, stream=3)


def test_two_streams_race_where_nothing_orders_them() -> None:
    (finding,) = running(*TWO_STREAMS, judges_races=True).see(WRITE)
    assert finding.rule == "conflicting_uses_are_ordered"
    running(*TWO_STREAMS, WRITE._replace(address=0x1008), judges_races=True)
    running(*TWO_STREAMS, WRITE, judges_races=False)


def test_races_are_not_judged_once_a_stream_waits_for_a_value() -> None:
    first = record(Seen.STREAM_WAITED_VALUE, function="cuStreamWaitValue32", stream=3, number=1234)
    second = record(Seen.STREAM_WAITED_VALUE, function="cuStreamWaitValue64", stream=3)
    judgement = running(*TWO_STREAMS, first, second, WRITE, judges_races=True)
    (note,) = judgement.notes()
    assert note.startswith("races were not judged from call 1,234 on: cuStreamWaitValue32 ")


def test_calls_that_are_not_simulated_are_counted_by_name() -> None:
    named = [record(Seen.NOT_SIMULATED, function=name) for name in ("cudaB", "cudaA", "cudaB")]
    judgement = running(*named)
    assert judgement.missing() == {"cudaA": 1, "cudaB": 2}
    assert judgement.notes() == [
        "not simulated: cudaA (called 1 time)",
        "not simulated: cudaB (called 2 times)",
    ]


def test_a_finding_comes_from_another_process_as_it_was() -> None:
    quoted = (Quotation("a.cu", 3, 2, ("{", "    a[i] = 1;")),)
    sites = (CallSite("launched by", "cuLaunchKernel", 4, (Frame("main", "a.cu", 9),)),)
    finding = Finding("a_rule", "this", "that", call_sites=sites, tests=("t.py::t",), quoted=quoted)
    between = Between((finding,), 2)
    assert between_from(json.loads(json.dumps(asdict(between)))) == between
