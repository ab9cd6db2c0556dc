"""The records around each finding, in words, read again from the ledger of a process that has ended."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from quiesce.findings import Finding
from quiesce.program_run import ObservedCall, Surroundings
from quiesce.simulator.ledger import Ledger, Record, Seen
from quiesce.traces.wording import Place, Sentences, addresses_of

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
