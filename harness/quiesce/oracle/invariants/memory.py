"""Invariants of addresses: where blocks may lie, and what may go back upstream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce import operations as ops
from quiesce.findings import Finding
from quiesce.oracle.model import Change, Model
from quiesce.oracle.rules import Invariant, found
from quiesce.outcomes import Allocated

ADDRESS_SPACE_END: Final = 1 << 64


def live_blocks_do_not_overlap(model: Model, change: Change) -> Iterator[Finding]:  # noqa: ARG001 - uniform checks
    """Two blocks that the sequence owns share no byte, and a block of no bytes does not name another block's."""
    for other in change.overlapped:
        made = change.made
        where = f"[{made.address:#x}, {made.end:#x})" if made else "its address"
        yield found(
            "live_blocks_do_not_overlap",
            f"memory outside '{other.slot}' [{other.address:#x}, {other.end:#x})",
            f"{where} overlaps it",
            other.made_by,
        )


def blocks_lie_in_the_address_space(model: Model, change: Change) -> Iterator[Finding]:  # noqa: ARG001
    """A block is not null and does not wrap round the end of the address space."""
    made = change.made
    if made is not None and (made.address == 0 or made.end > ADDRESS_SPACE_END):
        yield found(
            "blocks_lie_in_the_address_space",
            f"{made.size_bytes} bytes above 0 and below 2^64",
            f"[{made.address:#x}, {made.end:#x})",
        )


def addresses_are_aligned(model: Model, change: Change) -> Iterator[Finding]:
    """A block's address is a multiple of the alignment asked for, and of the one the backend guarantees."""
    if change.made is None or not isinstance(change.outcome, Allocated):
        return
    asked = change.operation.alignment_bytes if isinstance(change.operation, ops.Allocate) else None
    alignment = max(asked or 1, model.description.alignment_bytes)
    if change.made.address % alignment:
        yield found(
            "addresses_are_aligned",
            f"a multiple of {alignment}",
            f"{change.made.address:#x} is {change.made.address % alignment} beyond one",
        )


def blocks_lie_within_upstream_memory(model: Model, change: Change) -> Iterator[Finding]:
    """Where upstream is observed, every byte of a block belongs to one upstream allocation that is held."""
    made = change.made
    if made is None or not model.memory.upstream_seen:
        return
    holding = model.memory.upstream.overlapping(made.address, made.end)
    if not any(start <= made.address and made.end <= end for start, end, _ in holding):
        ranges = ", ".join(f"[{start:#x}, {end:#x})" for start, end, _ in holding[:3]) or "none there"
        yield found(
            "blocks_lie_within_upstream_memory",
            "a block inside one upstream allocation",
            f"[{made.address:#x}, {made.end:#x}) with upstream {ranges}",
        )


def owned_memory_stays_upstream(model: Model, change: Change) -> Iterator[Finding]:  # noqa: ARG001
    """Memory does not go back upstream while a block in it is owned."""
    for returned in change.returned:
        if returned.guard is None:
            yield found(
                "owned_memory_stays_upstream",
                f"'{returned.block.slot}' keeps its memory until it is freed",
                f"upstream memory at {returned.freed.address:#x} was given back under it",
                returned.block.made_by,
            )


INVARIANTS: Final = (
    Invariant("live_blocks_do_not_overlap", "Live blocks share no byte.", "OVL", live_blocks_do_not_overlap),
    Invariant("blocks_lie_in_the_address_space", "Blocks neither are null nor wrap.", "SIZE", blocks_lie_in_the_address_space),
    Invariant("addresses_are_aligned", "Addresses are aligned as asked and guaranteed.", "ALN", addresses_are_aligned),
    Invariant(
        "blocks_lie_within_upstream_memory", "Blocks lie in upstream memory.", "OVL", blocks_lie_within_upstream_memory
    ),
    Invariant("owned_memory_stays_upstream", "Owned memory is not given back.", "TEAR", owned_memory_stays_upstream),
)
