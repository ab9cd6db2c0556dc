"""Rules of counters: claims against ledgers, and counters against the sequence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.rule import Rule, found
from quiesce.model.backend import Promise
from quiesce.model.findings import Finding
from quiesce.model.gauges import Gauge, best_reading
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import Done
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words

_HOST: Final = (MemoryKind.PINNED, MemoryKind.PAGEABLE)
_BLOCKS: Final = Gauge.BLOCKS  # a name of its own: the members of an enumeration are slow to look up on Python 3.11
_LIVE: Final = Gauge.LIVE


def gauges_are_not_negative(model: Model, change: Change) -> Iterable[Finding]:
    """Nothing counts below zero."""
    if min(change.after.values(), default=0) >= 0:
        return ()
    return [
        found(f"{gauge} of at least 0", f"{value:,} by its {source}")
        for (gauge, source), value in sorted(change.after.items())
        if value < 0
    ]


def claims_agree_with_the_ledger(model: Model, change: Change) -> Iterable[Finding]:
    """Where both a claim and a ledger count the same thing, they agree."""
    findings = []
    for gauge, by_claim, by_ledger in model.counted_twice:
        claim, ledger = change.after.get(by_claim), change.after.get(by_ledger)
        if claim is not None and ledger is not None and claim != ledger:
            expected = f"{gauge} of {ledger:,}, as the ledger says"
            findings.append(found(expected, f"{claim:,} claimed"))
    return findings


def block_count_follows_the_sequence(model: Model, change: Change) -> Iterable[Finding]:
    """The backend counts as many live blocks as the sequence owns.

    Those of no bytes may or may not count, and those of host memory only where an allocator of its own has them.
    """
    counted = best_reading(change.after, _BLOCKS)
    owned = model.memory.live_count
    if counted is None or owned <= counted <= owned + len(model.empty_blocks):
        return ()
    elsewhere = sum(block.kind in _HOST for block in model.blocks.values()) if counted < owned else 0
    if owned - elsewhere <= counted <= owned:
        return ()
    return [found(f"{owned:,} blocks", f"{counted:,} blocks")]


def _have_nodes(model: Model) -> bool:
    """Whether nodes may have memory that is live: held ones, or any that was dropped and may be collected late."""
    at_once = model.promises(Promise.COLLECTS_AT_ONCE)
    return bool(model.tape.held) or (model.tape.was_used and not at_once)


def live_bytes_return_to_where_they_were(model: Model, change: Change) -> Iterable[Finding]:
    """A block's free takes from ``live`` what its allocation added, which is at least its size.

    Host memory adds nothing where an allocator of its own has it. Who counts a little less than was asked for has made
    the block so small: sizes that are rounded down, even to a power of two, keep more than half.
    """
    before, after = best_reading(change.before, _LIVE), best_reading(change.after, _LIVE)
    if before is None or after is None:
        return ()
    rose = after - before
    if change.made is not None:
        change.made.claimed_bytes = rose
        if rose < change.made.size_bytes and (rose or change.made.kind not in _HOST):
            size = change.made.size_bytes
            if size < 2 * rose:
                observed = f"{bytes_in_words(rose)}, as live rose by no more"
                return [
                    found(
                        f"a block of at least {bytes_in_words(size)}",
                        observed,
                        change.made.made_by,
                        kind=Kind.TOO_SMALL,
                    )
                ]
            return [found(f"live rises by at least {bytes_in_words(size)}", f"it rose by {bytes_in_words(rose)}")]
    elif change.freed is not None and isinstance(change.outcome, Done):
        added = change.freed.claimed_bytes
        if added is not None and rose != -added:
            expected = f"live falls by the {bytes_in_words(added)} that '{change.freed.slot}' added"
            by = change.freed.made_by
            return [found(expected, f"it fell by {bytes_in_words(-rose)}", by)]
    elif model.memory.live_count == 0 and after != 0 and not (model.empty_blocks or _have_nodes(model)):
        return [found("live of 0 bytes, because nothing is owned", bytes_in_words(after))]
    return ()


RULES: Final = (
    Rule("No gauge reads below zero.", Kind.WRONG_COUNTER, gauges_are_not_negative),
    Rule(
        "The counters of an allocator agree with an independent ledger.",
        Kind.WRONG_COUNTER,
        claims_agree_with_the_ledger,
    ),
    Rule(
        "An allocator counts as many blocks as the sequence owns.", Kind.WRONG_COUNTER, block_count_follows_the_sequence
    ),
    Rule(
        "The free of a block subtracts from the live bytes as much as its allocation added.",
        Kind.WRONG_COUNTER,
        live_bytes_return_to_where_they_were,
    ),
)
