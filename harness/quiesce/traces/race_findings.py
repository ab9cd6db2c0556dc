"""Races as findings: both calls, what each does at which line, and the bytes that both use."""

from __future__ import annotations

from quiesce.amounts import bytes_in_words
from quiesce.findings import Finding
from quiesce.kinds import Kind
from quiesce.program_rules import ORDERED
from quiesce.shown_paths import shown_path
from quiesce.simulator.ledger import Flag, Record, Seen
from quiesce.simulator.program_sources import ProgramSources
from quiesce.simulator.touched_log import Touch
from quiesce.traces.origins import Origins
from quiesce.traces.quoted_places import quoted_places
from quiesce.traces.races import Race
from quiesce.traces.thing_names import thing_in_words
from quiesce.traces.uses import Use
from quiesce.traces.wording import stream_in_words


def race_finding(race: Race, origins: Origins, sources: ProgramSources) -> Finding:
    """Return the finding about a race, with the lines of kernels that have a part in it."""
    doings = filter(None, map(_doing, (race.earlier, race.later)))
    whole = f"nothing orders the two, and both use {bytes_in_words(race.size_bytes)} at {race.address:#x}"
    earlier, later = race.earlier, race.later
    variable = origins.variable_made_by(race.allocated)
    sites = [origins.site("earlier use", earlier.record), origins.site("later use", later.record)]
    if (earlier.touched or later.touched) and not variable:
        sites.insert(0, origins.site("allocated by", race.allocated))
    return Finding(
        ORDERED,
        f"{_called(earlier)} before {_called(later)}",
        "; ".join([f"{whole}{_in_block(race, variable)}", *doings]),
        operation_index=later.record.number,
        request=f"{later.touched.kernel} at {_place(later)}" if later.touched else later.record.function,
        kind=Kind.RACE,
        call_sites=tuple(sites),
        quoted=tuple(
            dict.fromkeys(
                quotation
                for use in (earlier, later)
                if use.touched is not None
                for quotation in quoted_places([use.place], use.touched.kernel, sources)
            )
        ),
    )


def launches_unjudged(count: int) -> str:
    """Return a note about launches of which nobody knows what they touched, or an empty text."""
    if not count:
        return ""
    launches = "launches" if count > 1 else "launch"
    return f"{count:,} {launches} of kernels touched memory in too many pieces to be judged for races with other work"


def _called(use: Use) -> str:
    record = use.record
    where = stream_in_words(record) if record.seen is not Seen.FREED or record.flags & Flag.ORDERED else "the host"
    name = f"kernel '{use.touched.kernel}'" if use.touched else record.function
    return f"{name} (call {record.number}) on {where}"


def _doing(use: Use) -> str:
    """Return what a kernel does to the bytes, and where."""
    if use.touched is None:
        return ""
    verb = (
        "changes them atomically" if use.touch is Touch.ATOMIC else "writes them" if use.touch.writes else "reads them"
    )
    return f"kernel '{use.touched.kernel}' {verb} at {_place(use)}"


def _place(use: Use) -> str:
    file, _, line = use.place.rpartition(":")
    return f"{shown_path(file)}:{line}" if file and line.isdigit() else use.place or "an unknown line"


def _in_block(race: Race, variable: str) -> str:
    if race.earlier.touched is None and race.later.touched is None:
        return ""
    block: Record = race.allocated
    offset = race.address - block.address
    into = f"{bytes_in_words(offset)} into" if offset else "at the start of"
    name = f"variable '{variable}'" if variable else f"a {thing_in_words(block.thing)} block"
    return f", {into} {name} of {bytes_in_words(block.size_bytes)}"
