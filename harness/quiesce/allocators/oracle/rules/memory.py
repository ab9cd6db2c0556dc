"""Rules of addresses: where blocks may lie, and what may be released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quiesce.allocators.oracle.blocks import BlockState
from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.memory import BackingRange
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.rule import MAKING_BLOCKS, Rule, found
from quiesce.model.backend import Promise
from quiesce.model.findings import Finding
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import Allocated
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words, counted

ADDRESS_SPACE_END: Final = 1 << 64
_DEVICE: Final = MemoryKind.DEVICE
_HOST: Final = (MemoryKind.PINNED, MemoryKind.PAGEABLE)


def live_blocks_do_not_overlap(model: Model, change: Change) -> Iterator[Finding]:
    """Two blocks that the sequence owns share no byte, and a block of no bytes does not name another block's."""
    for other in change.overlapped:
        address = change.outcome.address if isinstance(change.outcome, Allocated) else other.address
        size = change.made.size_bytes if change.made else 0
        begin = "begins" if size == 1 else "begin"
        yield found(
            f"memory outside the {bytes_in_words(other.size_bytes)} of '{other.slot}'",
            f"{bytes_in_words(size)} that {begin} {_distance(address - other.address)} its first",
            other.made_by,
        )


def _distance(offset: int) -> str:
    """Say where a byte lies beside another without its address, which differs from run to run."""
    if offset == 0:
        return "at"
    return f"{bytes_in_words(abs(offset))} {'after' if offset > 0 else 'before'}"


def blocks_lie_in_the_address_space(model: Model, change: Change) -> Iterable[Finding]:
    """A block is not null and does not wrap round the end of the address space."""
    made = change.made
    if made is None or (made.address > 0 and made.end <= ADDRESS_SPACE_END):
        return ()
    beyond = f"a block that ends {bytes_in_words(made.end - ADDRESS_SPACE_END)} beyond it"
    below = "a block at null" if made.address == 0 else f"a block at the negative address {made.address}"
    observed = below if made.address <= 0 else beyond
    return [found(f"{bytes_in_words(made.size_bytes)} above 0 and below 2^64", observed)]


def addresses_are_aligned(model: Model, change: Change) -> Iterable[Finding]:
    """A block's address is a multiple of the alignment asked for, and of the one the backend guarantees."""
    if change.made is None:
        return ()
    alignment = max(change.made.alignment_bytes, model.description.alignment_bytes, 1)
    beyond = change.made.address % alignment
    if not beyond:
        return ()
    return [found(f"an address that is a multiple of {alignment:,}", f"an address {bytes_in_words(beyond)} beyond one")]


def blocks_lie_within_backing_memory(model: Model, change: Change) -> Iterable[Finding]:
    """Where backing memory is observed, every byte of a block belongs to held memory of its kind, and of its device.

    Neighbouring backing allocations may carry one block together, as mapped pages do.
    """
    made = change.made
    if made is None or not model.memory.is_backing_seen(made.kind):
        return ()
    holding = model.memory.holding(made)
    reached = holding[-1].address + holding[-1].size_bytes if holding else made.address
    if reached < made.end:
        where = f"only {bytes_in_words(reached - made.address)}" if holding else "none"
        expected = f"{bytes_in_words(made.size_bytes)} inside backing memory"
        return [found(expected, f"{where} of them inside")]
    for held in holding:
        if not _may_carry(held, made):
            expected = f"{made.kind} memory of device {made.device}"
            observed = f"{held.kind} memory of device {held.device}"
            return [found(expected, observed)]
    return ()


def _may_carry(held: BackingRange, block: BlockState) -> bool:
    if block.kind is _DEVICE and held.kind is _DEVICE:
        # A stream's memory may be that of the stream's device.
        return held.device == block.device or block.stream.device != block.device
    if block.kind is _DEVICE and held.kind is MemoryKind.MANAGED:
        return True  # the device's work uses it as well
    return held.kind is block.kind or (held.kind in _HOST and block.kind in _HOST)


def owned_memory_is_not_released(model: Model, change: Change) -> Iterator[Finding]:
    """Memory is not released while a block in it is owned. However many are in it, that is one finding."""
    owned = [returned for returned in change.returned if returned.guard is None]
    for freed in dict.fromkeys(returned.freed for returned in owned):
        block, *others = [returned.block for returned in owned if returned.freed == freed]
        more = f", and with {counted(len(others), 'other block')}" if others else ""
        yield found(
            f"'{block.slot}' keeps its memory until it is freed",
            f"{bytes_in_words(freed.size_bytes)} with it were released to the backing allocator{more}",
            block.made_by,
        )


def graph_memory_is_kept(model: Model, change: Change) -> Iterator[Finding]:
    """What a capture allocated, used and freed is handed to nobody else, nor given back, while its graph is there."""
    for kept in change.taken_from_graphs:
        made = change.made
        yield found(
            f"the graph keeps the memory that '{kept.block.slot}' had in its capture until the graph is destroyed",
            f"it was handed out as '{made.slot}'" if made is not None else "it was released",
            kept.block.made_by,
        )
        return


RULES: Final = (
    Rule(
        "No block begins at address 0 or reaches beyond the end of the address space.",
        Kind.SIZE_OVERFLOW,
        blocks_lie_in_the_address_space,
        MAKING_BLOCKS,
        "made",
    ),
    Rule("Live blocks share no byte.", Kind.OVERLAP, live_blocks_do_not_overlap, MAKING_BLOCKS, "overlapped"),
    Rule(
        "An address is a multiple of the alignment that was asked for or is guaranteed.",
        Kind.MISALIGNED,
        addresses_are_aligned,
        MAKING_BLOCKS,
        "made",
    ),
    Rule(
        "A block lies in memory that was taken from the backing allocator.",
        Kind.FOREIGN_MEMORY,
        blocks_lie_within_backing_memory,
        MAKING_BLOCKS,
        "made",
    ),
    Rule(
        "Memory is not released while a block or a graph uses it.",
        Kind.EARLY_RELEASE,
        owned_memory_is_not_released,
        about="returned",
    ),
    Rule(
        "The memory of a graph is not handed out or released before the graph is destroyed.",
        Kind.EARLY_RELEASE,
        graph_memory_is_kept,
        about="taken_from_graphs",
        promise=Promise.KEEPS_GRAPH_MEMORY,
    ),
)
