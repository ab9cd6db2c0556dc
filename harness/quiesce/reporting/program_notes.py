"""What a text report says of a program beside its findings: what it held, and what was not judged or simulated."""

from __future__ import annotations

from collections.abc import Iterator

from quiesce.amounts import bytes_in_words
from quiesce.program_run import ProgramRun
from quiesce.reporting.program_page.holders import things_of
from quiesce.reporting.program_page.places import short_place
from quiesce.reporting.text import clean_line


def program_notes(program: ProgramRun) -> Iterator[str]:
    """Yield the notes of a process, its calls that failed, then a line for each place that made what it held."""
    yield from map(clean_line, program.notes)
    for failed in program.failed_calls.kept:
        where = f" at {place}" if (place := short_place(failed.site)) else ""
        remark = f" ({failed.remark})" if failed.remark else ""
        yield clean_line(f"failed{remark}: {failed.count:,} x {failed}{where}")
    held = program.holdings
    moment = "held at exit" if held.at_exit else "held at its end"
    for each in held.kept:
        size = f"{bytes_in_words(each.size_bytes)} in " if each.size_bytes else ""
        call = f"{each.thing} from {each.site.call}"
        yield clean_line(f"{moment} ({each.state}): {size}{each.count:,} x {call} on device {each.device}")
    more = held.count - sum(each.count for each in held.kept)
    if more:
        yield f"{moment}: {things_of((), more)}"
