"""What is left at the end: leaks and what is held, each place in the code that made some of it once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quiesce.allocators.oracle import HANDLES_GONE, NOTHING_LEFT
from quiesce.model.findings import Finding, Grade
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words, counted
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.wording import things_in_words
from quiesce.simulator.runtime import LiveThing, Reach, Thing

HELD_MAX: Final = 20
"""How many places a note lists that made what is held at the end."""
_MADE_BY: Final = {Thing.HEAP: "launched"}
"""What was done at the place that made things, where it is not named by what they are."""


def leak_findings(things: Iterable[LiveThing], origins: Origins, moment: str, looked: bool) -> Iterator[Finding]:
    """Yield a finding for each place that made things which should have been freed or destroyed before a moment.

    ``looked`` says whether the process was searched for their addresses then.
    """
    groups = by_place(things, origins)
    for group, made in zip(groups, _made_at(groups, origins), strict=True):
        first = group[0]
        yield Finding(
            NOTHING_LEFT if first.thing.is_memory else HANDLES_GONE,
            f"everything {'freed' if first.thing.is_memory else 'destroyed'} before {moment}",
            f"{_amount(group)}{_lost(group) if looked else ''}{made}{_in_kernel(group, origins)}",
            kind=Kind.MEMORY_LEAK if first.thing.is_memory else Kind.HANDLE_LEAK,
            grade=Grade.LIVE_LEAK,
            call_sites=(origins.site(role_of(first), first),),
        )


def _in_kernel(group: list[LiveThing], origins: Origins) -> str:
    return origins.allocation_in_kernel(group[0].line, is_one=len(group) == 1)


def role_of(first: LiveThing) -> str:
    """Return what the call did that made a thing, or launched the kernel that allocated it."""
    if first.thing is Thing.HEAP:
        return "launched by"
    return "allocated by" if first.thing.is_memory else "created by"


def held_lines(things: Iterable[LiveThing], origins: Origins) -> Iterator[str]:
    """Yield what some live things are and where they were made, a line for each place."""
    groups = by_place(things, origins)
    shown = groups[:HELD_MAX]
    for group, made in zip(shown, _made_at(shown, origins), strict=True):
        yield f"{_amount(group)}{made}{_unknown(group)}{_in_kernel(group, origins)}"
    left_out = [thing for group in groups[HELD_MAX:] for thing in group]
    if left_out:
        size_bytes = sum(thing.size_bytes for thing in left_out)
        yield (
            f"{counted(len(left_out), 'more thing')} with {bytes_in_words(size_bytes)}, "
            f"from {counted(len(groups) - HELD_MAX, 'other place')}"
        )


def by_place(things: Iterable[LiveThing], origins: Origins) -> list[list[LiveThing]]:
    """Group things by what they are and by the place in the code that made them, largest first."""
    listed = list(things)
    groups: dict[object, list[LiveThing]] = {}
    for thing, place in zip(listed, origins.places([thing.stack for thing in listed]), strict=True):
        inside = origins.allocator_place(thing.line)
        groups.setdefault((thing.thing, thing.function, thing.device, inside, place), []).append(thing)
    return sorted(groups.values(), key=lambda group: -sum(thing.size_bytes for thing in group))


def _lost(group: list[LiveThing]) -> str:
    """Say that no pointer to the things is left, where that is so for all of them."""
    if not all(thing.is_lost for thing in group):
        return ""
    indirect = sum(thing.reach is Reach.INDIRECTLY_LOST for thing in group)
    pronoun = "it" if len(group) == 1 else "them"
    if indirect == len(group):
        return f", pointers to {pronoun} left only in lost memory"
    some = f" ({indirect:,} of them: only in lost memory)" if indirect else ""
    return f", no pointer to {pronoun} left{some}"


def _unknown(group: list[LiveThing]) -> str:
    """Say how many of the things may be lost, for all that the search could read."""
    unknown = sum(thing.reach is Reach.UNKNOWN for thing in group)
    if not unknown:
        return ""
    some = "" if unknown == len(group) else f"{unknown:,} of them "
    return f" ({some}may be lost: the only pointers are in memory of an allocator that quiesce can't read)"


def _amount(group: list[LiveThing]) -> str:
    first = group[0]
    what = things_in_words(first.thing, len(group))
    size_bytes = sum(thing.size_bytes for thing in group)
    amount = f"{bytes_in_words(size_bytes)} in {what}" if size_bytes else what
    maker = "malloc in a kernel" if first.thing is Thing.HEAP else first.function
    return f"{amount} from {maker} on device {first.device}"


def _made_at(groups: list[list[LiveThing]], origins: Origins) -> list[str]:
    """Return for each group where it was made, in words that tell it from the others."""
    places = origins.made_at([group[0].stack for group in groups])
    return [
        f", {_MADE_BY.get(group[0].thing, 'allocated' if group[0].thing.is_memory else 'created')} {place}"
        if place
        else ""
        for group, place in zip(groups, places, strict=True)
    ]
