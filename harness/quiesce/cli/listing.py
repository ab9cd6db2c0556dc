"""``quiesce list``: what there is to name: cases, faults, backends, subjects and rules."""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quiesce.allocators.cases import Case, did_you_mean, near_names
from quiesce.allocators.reference import FAULTS
from quiesce.backends.registry import Lack, Usable, backend_names
from quiesce.cli.arguments import add_verbose, nonempty
from quiesce.cli.console import Console
from quiesce.cli.doctor import examine
from quiesce.cli.endings import ExitCode
from quiesce.cli.selection import select_cases
from quiesce.cli.subjects import listed, subject_record
from quiesce.model.errors import ConfigurationError, QuiesceError
from quiesce.reporting import RULES_BY_SUBJECT, align, clean_line
from quiesce.subjects import Subject, catalogue


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing: its name, what a line of the list says of it, and all that is known as JSON values.

    ``block`` are lines in place of one, where a line can't say enough.
    """

    name: str
    says: tuple[str, ...]
    record: dict[str, Any]
    block: str = ""

    def is_meant(self, filters: Sequence[str]) -> bool:
        """Whether every filter is a pattern of the name, or a word in what is said."""
        text = " ".join((self.name, *self.says)).lower()
        return all(each.lower() in text or fnmatch.fnmatchcase(self.name, each) for each in filters)


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a kind, and why some of it can't be read."""

    entries: list[Entry]
    errors: tuple[QuiesceError, ...] = ()


def cases() -> Found:
    """Return the cases of the corpus."""
    found = select_cases([])
    return Found([_case(each) for each in found.cases], found.errors)


def _case(case: Case) -> Entry:
    record = {
        "name": case.identifier,
        "path": case.path,
        "title": case.title,
        "kind": str(case.kind),
        "upstream": list(case.upstream),
        "fault": case.fault,
        "finds": case.finds,
        "needs": sorted(case.needs),
        "promises": sorted(case.promises),
        "known": [f"{each.subject} {each.versions} {each.number}" for each in case.known],
    }
    return Entry(case.identifier, (case.fault or f"({case.kind})", case.title), record)


def faults() -> Found:
    """Return the historic bugs that can be switched on in the reference, each with its cases."""
    of_fault: dict[str, list[str]] = {}
    found = select_cases([])
    for case in found.cases:
        of_fault.setdefault(case.fault, []).append(case.identifier)
    entries = []
    for name, fault in sorted(FAULTS.items()):
        record = {
            "name": name,
            "backend": f"reference:{name}",
            "upstream": fault.upstream,
            "mechanism": fault.mechanism,
            "cases": of_fault.get(name, []),
        }
        entries.append(Entry(name, (fault.upstream, fault.mechanism), record))
    return Found(entries, found.errors)


def backends() -> Found:
    """Return the installed backends, as ``quiesce doctor`` sees them; nothing is compiled."""
    return Found([_backend(name) for name in backend_names()])


def _backend(name: str) -> Entry:
    probe = examine(name, explicit=False, compiles=False)
    if not isinstance(probe, Usable):
        record = {
            "name": name,
            "works": False,
            "why_not": str(probe.lack),
            "reason": probe.reason,
            "remedy": probe.remedy,
        }
        return Entry(name, (str(probe.lack), probe.remedy if probe.lack is Lack.COMPILATION else probe.reason), record)
    said = probe.description
    record = {
        "name": name,
        "works": True,
        "version": said.version,
        "alignment_bytes": said.alignment_bytes,
        "capabilities": sorted(said.capabilities),
        "promises": sorted(said.promises),
        "gauges": {str(gauge): sorted(sources) for gauge, sources in sorted(said.gauges.items())},
    }
    return Entry(name, ("works", said.version), record)


def subjects() -> Found:
    """Return the upstream projects under test, as ``quiesce subjects --list`` shows them."""
    found = catalogue.find_subjects([], *catalogue.folders())
    return Found([_subject(each) for each in found.subjects], found.errors)


def _subject(subject: Subject) -> Entry:
    shown = listed(subject)
    return Entry(subject.name, (shown,), subject_record(subject), shown)


def rules() -> Found:
    """Return the rules that a finding can name."""
    return Found(
        [
            Entry(name, (sentence,), {"name": name, "about": about, "sentence": sentence})
            for about, of_subject in RULES_BY_SUBJECT.items()
            for name, sentence in of_subject.items()
        ]
    )


KINDS: Final[dict[str, Callable[[], Found]]] = {
    "cases": cases,
    "faults": faults,
    "backends": backends,
    "subjects": subjects,
    "rules": rules,
}
"""What can be listed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("what", choices=KINDS, metavar="WHAT", help=f"one of {', '.join(KINDS)}")
    parser.add_argument(
        "filters",
        nargs="*",
        type=nonempty,
        metavar="FILTER",
        help="only what has this word, or whose name fits a pattern such as 'pool/*'; several must all fit",
    )
    parser.add_argument("--json", action="store_true", help="write all that is known of each as JSON")
    add_verbose(parser)


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """List. Raises :class:`ConfigurationError` where nothing fits the filters."""
    found = KINDS[arguments.what]()
    for error in found.errors:
        console.complain(str(error))
    kept = [entry for entry in found.entries if entry.is_meant(arguments.filters)]
    if not kept:
        raise ConfigurationError(_nothing(arguments.what, arguments.filters, found.entries))
    if arguments.json:
        console.write(json.dumps([entry.record for entry in kept], indent=2) + "\n")
    elif kept[0].block:
        console.write("\n".join(entry.block for entry in kept))
    else:
        console.write(
            "\n".join(align([[clean_line(cell) for cell in (entry.name, *entry.says)] for entry in kept])) + "\n"
        )
    return ExitCode.COULD_NOT_RUN if found.errors else ExitCode.NOTHING_FOUND


def _nothing(what: str, filters: Sequence[str], entries: Iterable[Entry]) -> str:
    said = " and ".join(f"'{each}'" for each in filters)
    near = near_names(filters[0], [entry.name for entry in entries]) if filters else []
    return f"none of the {what} fits {said or 'here'}; {did_you_mean(near) if near else f'write quiesce list {what}'}"
