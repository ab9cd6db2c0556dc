"""What lived when a process ended, by what it is, who could give it back, and where it was made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quiesce.program_run import Holding, Holdings
from quiesce.simulator.ledger import LiveThing, Reach
from quiesce.traces.leftovers import by_place, role_of
from quiesce.traces.origins import Origins
from quiesce.traces.thing_names import thing_in_words

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
