"""What a report shows of a process beyond its findings, made of its ledger when it has been judged.

That is what it held at its end, and the records around each finding, read again from the ledger.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.program_run import Conditions, FailedCalls, Holding, Holdings, ObservedCall, ProgramRun, Surroundings
from quiesce.simulator.judge.judgement import Judgement
from quiesce.simulator.judge.leftovers import by_place, role_of
from quiesce.simulator.judge.memory_use import MemoryRecorder
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.wording import Place, Sentences, addresses_of, thing_in_words
from quiesce.simulator.runtime import CallStacks, Ledger, LiveThing, LoggedAccess, Reach, Record, Seen

BEFORE: Final = 8
"""Calls shown before the one that broke a rule."""
AFTER: Final = 4
"""Calls shown after it."""
NEAR: Final = 2
"""Calls shown before and after another that a finding is about, such as the allocation of its block."""
BROKE: Final = "broke the rule"
"""The role of the record that a finding was made at, where its call sites give it none."""


def surroundings_of(findings: Sequence[Finding], ledger: Ledger) -> tuple[Surroundings, ...]:
    """Return what there is around each finding; nothing where the records were overwritten."""
    shown = [_numbers(finding, ledger) for finding in findings]
    records = {number: ledger.record(number) for number in sorted({*(each for numbers in shown for each in numbers)})}
    threads = {thread: count for count, thread in enumerate(dict.fromkeys(each.thread for each in records.values()), 1)}
    elsewhere = "host memory, or a block whose allocation was not kept" if ledger.overwritten else "host memory"
    sentences = Sentences(_places(records.values(), ledger), elsewhere)
    return tuple(
        Surroundings(position, tuple(_call(records[number], threads, sentences, roles) for number in numbers))
        for position, (numbers, roles) in enumerate(zip(shown, map(_roles, findings), strict=True))
        if numbers
    )


def _roles(finding: Finding) -> dict[int, str]:
    broke = {} if finding.operation_index is None else {finding.operation_index: BROKE}
    return broke | {site.number: site.role.removesuffix(" by") for site in finding.call_sites}


def _numbers(finding: Finding, ledger: Ledger) -> list[int]:
    numbers: set[int] = set()
    for number in _roles(finding):
        before, after = (BEFORE, AFTER) if number == finding.operation_index else (NEAR, NEAR)
        numbers.update(range(number - before, number + after + 1))
    return sorted(number for number in numbers if ledger.overwritten <= number < ledger.observations)


def _call(record: Record, threads: Mapping[int, int], sentences: Sentences, roles: Mapping[int, str]) -> ObservedCall:
    role = roles.get(record.number, "")
    return ObservedCall(record.number, threads[record.thread], record.function, sentences.of(record), role)


def _places(records: Iterable[Record], ledger: Ledger) -> dict[tuple[int, int], Place]:
    """Find the blocks that addresses lie in: for each, the last that was allocated over it until then."""
    wanted = sorted((record.number, address) for record in records for address in addresses_of(record))
    if not wanted:
        return {}
    addresses = sorted({address for _, address in wanted})
    blocks: dict[int, Record] = {}
    places: dict[tuple[int, int], Place] = {}
    allocations = _until(ledger, wanted[-1][0])
    allocation = next(allocations, None)
    for number, address in wanted:
        while allocation is not None and allocation.number <= number:
            end = bisect_left(addresses, allocation.address + allocation.size_bytes)
            for inside in addresses[bisect_left(addresses, allocation.address) : end]:
                blocks[inside] = allocation
            allocation = next(allocations, None)
        if (block := blocks.get(address)) is not None:
            places[number, address] = Place(block.number, address - block.address)
    return places


def _until(ledger: Ledger, last: int) -> Iterator[Record]:
    for number in ledger.numbers_of(Seen.ALLOCATED):
        if number > last:
            return
        yield ledger.record(number)


HOLDINGS_MAX: Final = 200
"""So many places are kept, those with the most bytes; the totals cover all."""
HELD: Final = "held"
_STATES: Final = {
    Reach.LOST: "lost",
    Reach.INDIRECTLY_LOST: "indirectly lost",
    Reach.UNKNOWN: "maybe lost",
    Reach.HELD: HELD,
}
"""What is said of who could still have given a thing back. Of what nobody searched for, it is :data:`HELD`."""


def holdings_of(things: Iterable[LiveThing], origins: Origins, *, at_exit: bool) -> Holdings:
    """Group what lived at the end. ``at_exit`` says whether the process was searched for owners then."""
    states: dict[str, list[LiveThing]] = {}
    for thing in things:
        states.setdefault(_STATES[thing.reach] if at_exit else HELD, []).append(thing)
    groups = [(state, group) for state, left in states.items() for group in by_place(left, origins)]
    groups.sort(key=lambda each: (-_bytes(each[1]), -len(each[1])))
    return Holdings(
        kept=tuple(_holding(state, group, origins) for state, group in groups[:HOLDINGS_MAX]),
        count=sum(len(group) for _, group in groups),
        size_bytes=sum(_bytes(group) for _, group in groups),
        at_exit=at_exit,
    )


def _holding(state: str, group: list[LiveThing], origins: Origins) -> Holding:
    first = group[0]
    is_memory = first.thing.is_memory
    name = thing_in_words(first.thing) + (" memory" if is_memory else "")
    site = origins.site_with_stack(role_of(first), first)
    return Holding(state, name, first.device, len(group), _bytes(group), site)


def _bytes(group: list[LiveThing]) -> int:
    return sum(thing.size_bytes for thing in group if thing.thing.is_memory)


def describe_program(
    ledger: Ledger,
    stacks: CallStacks | None,
    judgement: Judgement,
    memory: MemoryRecorder,
    conditions: Conditions,
    failed_calls: FailedCalls,
    accesses: Callable[[], Sequence[LoggedAccess]] = tuple,
) -> ProgramRun:
    """Return what one process did. ``memory`` has taken the records that the judgement is about.

    ``accesses`` returns the log of kernels' wrong accesses.
    """
    live = list(ledger.live())
    return ProgramRun(
        conditions=conditions,
        first_call=ledger.lost,
        launches=ledger.launches,
        findings_left_out=judgement.left_out,
        notes=judgement.notes,
        memory=memory.history(live),
        surroundings=surroundings_of(judgement.findings, ledger),
        holdings=holdings_of(live, Origins(stacks, accesses=accesses), at_exit=ledger.exited),
        out_of_memory=judgement.out_of_memory,
        failed_calls=failed_calls,
    )


def nothing_observed(conditions: Conditions) -> ProgramRun:
    """Return what is known of a process that never called the runtime: how it was run."""
    return ProgramRun(
        conditions=conditions,
        first_call=0,
        launches=0,
        findings_left_out=(),
        notes=(),
        memory=MemoryRecorder(0, 0).history(()),
        surroundings=(),
        holdings=Holdings((), 0, 0, at_exit=True),
    )
