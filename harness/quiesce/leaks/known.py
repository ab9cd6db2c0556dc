"""Known leaks: those that a project accepts for now, each with its reason, and what of a check they cover.

Their file is TOML that people review, in a stable order, with one table ``[[leak]]`` for each.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

from quiesce.files import write_atomically
from quiesce.leaks.judgement import Growth, Judgement, Outcome
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import FAMILIES, Quantity
from quiesce.model.errors import ConfigurationError
from quiesce.model.known_tables import expiry_in, known_tables, lines_of_tables, refuse_other_keys, text_in
from quiesce.model.wording import bytes_from, bytes_in_words, exact_size

RECORDED: Final = "recorded; say why it is accepted"
"""The reason of an entry that was written, until somebody says another."""


@dataclass(frozen=True, slots=True)
class KnownLeak:
    """One leak that is known.

    ``test`` is a test's name, in which ``*`` stands for anything. ``gauge`` is one of :data:`FAMILIES`, the name of a
    gauge of the test's own, or empty for all. ``up_to`` is the growth per round that is known (None: any), in bytes
    where it ``is_size``, and in things otherwise. ``versions`` has the versions, or beginnings of them, of Python and
    of libraries for which the entry counts. The day ``expires`` is the last on which it does.
    """

    test: str
    gauge: str
    up_to: int | None
    reason: str
    versions: tuple[tuple[str, str], ...] = ()
    expires: date | None = None
    is_size: bool = False

    @property
    def lacks_reason(self) -> bool:
        """Whether nobody has said yet why the leak is accepted."""
        return self.reason == RECORDED or self.reason.strip(" .:…").upper() == "TODO"

    @property
    def key(self) -> str:
        """Return what no second entry of a file has."""
        versions = "".join(f", {name} {version}" for name, version in self.versions)
        return f"{self.test} ({self.gauge or 'all gauges'}{versions})"

    def is_about(self, test: str) -> bool:
        """Whether a test has this name."""
        if "*" not in self.test:
            return self.test == test
        return re.fullmatch(".*".join(map(re.escape, self.test.split("*"))), test, re.DOTALL) is not None

    def other_versions(self, installed: Mapping[str, str]) -> str:
        """Return which versions keep the entry from counting here, in words; empty where it counts."""
        said = []
        for name, version in self.versions:
            found = installed.get(name, "")
            if found != version and not found.startswith(f"{version}."):
                said.append(f"{name} {version}; this run has {found or 'none'}")
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Applied:
    """What known leaks make of a judgement: ``left`` is the judgement without what is ``accepted``.

    ``used`` and ``unused`` are keys of entries about the test. An entry whose gauge was not read is neither.
    ``reasons`` are those of the entries that were used. Of what is accepted, ``unwritten`` is in no entry yet.
    """

    left: Judgement
    accepted: tuple[Growth, ...] = ()
    unwritten: tuple[Growth, ...] = ()
    reasons: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def gauge_name(quantity: Quantity) -> str:
    """Return the name by which an entry names a gauge."""
    return quantity.family if quantity.family in FAMILIES else quantity.name


def amount_of(growth: Growth) -> int:
    """Return a growth per round as an entry counts it: whole, and rounded up."""
    return math.ceil(growth.per_round)


def apply_known(
    known: Iterable[KnownLeak],
    test: str,
    judgement: Judgement,
    plan: Plan,
    installed: Mapping[str, str],
    today: date,
) -> Applied:
    """Take what is known from a judgement. What is left says why an entry about it did not help."""
    about = [entry for entry in known if entry.is_about(test)]
    counting = [entry for entry in about if not entry.other_versions(installed)]
    left, accepted, used = [], [], []
    for growth in judgement.growths:
        entries = [entry for entry in about if entry.gauge in ("", gauge_name(growth.quantity))]
        accepting = next((each for each in entries if each in counting and _accepts(each, growth, today)), None)
        if accepting is None:
            used += [entry for entry in entries if entry in counting]  # it is not needless, only not enough
            why = [_why_not(entry, growth, today, installed) for entry in entries]
            left.append(replace(growth, evidence="\n".join(filter(None, [growth.evidence, *why]))))
        else:
            accepted.append(growth)
            used.append(accepting)
    unused = [entry for entry in counting if entry not in used and _was_judged(entry, judgement, plan)]
    return Applied(
        replace(judgement, growths=tuple(left)),
        tuple(accepted),
        (),
        tuple(dict.fromkeys(entry.reason for entry in used)),
        tuple(dict.fromkeys(entry.key for entry in used)),
        tuple(entry.key for entry in unused),
    )


def _accepts(entry: KnownLeak, growth: Growth, today: date) -> bool:
    is_over = entry.expires is not None and today > entry.expires
    is_of_its_unit = growth.quantity.unit == "bytes" or not entry.is_size
    return not is_over and (entry.up_to is None or (is_of_its_unit and amount_of(growth) <= entry.up_to))


def _why_not(entry: KnownLeak, growth: Growth, today: date, installed: Mapping[str, str]) -> str:
    if versions := entry.other_versions(installed):
        return f"this leak is known for {versions}"
    if entry.expires is not None and today > entry.expires:
        return (
            f"this leak was known until {entry.expires}, which is over: {entry.reason}; "
            f"fix the leak, or give the entry a later date"
        )
    amount = bytes_in_words if growth.quantity.unit == "bytes" else lambda count: f"{count:,} {growth.quantity.unit}"
    return f"this leak is known up to {amount(entry.up_to or 0)} per round: {entry.reason}; it has grown beyond that"


def _was_judged(entry: KnownLeak, judgement: Judgement, plan: Plan) -> bool:
    """Whether the check came to its end, and looked at the gauge of an entry."""
    if judgement.outcome is not Outcome.PASSED or judgement.inconclusive or judgement.unstable:
        return False
    return not entry.gauge or (plan.looks_at(entry.gauge) and entry.gauge not in dict(judgement.absent))


def merged(
    old: Sequence[KnownLeak], found: Iterable[KnownLeak], used: Iterable[str], needless: Iterable[str]
) -> list[KnownLeak]:
    """Return the entries to write: old ones that are still needed, as they are, and what was found.

    An entry that is found anew keeps its reason and its date.
    """
    kept = {entry.key: entry for entry in old if entry.key not in set(needless) - set(used)}
    for entry in found:
        before = kept.get(entry.key)
        if before is not None:
            is_enough = before.up_to is None or (entry.up_to is not None and before.up_to >= entry.up_to)
            kept[entry.key] = before if is_enough else replace(before, up_to=entry.up_to)
        else:
            kept[entry.key] = entry
    return sorted(kept.values(), key=lambda entry: (entry.test, entry.gauge, entry.versions))


_KEYS: Final = ("test", "gauge", "up_to", "versions", "reason", "expires")
_HEAD: Final = """\
# Known leaks. A test that leaks more than its entries say fails, and so does a run with an entry that is not needed.
# Written by pytest --quiesce-leak-write-baseline, which keeps reasons and dates but no other comments.
"""


def read_known(path: Path) -> tuple[KnownLeak, ...]:
    """Return the entries of a file.

    Raises :class:`OSError`, and :class:`ConfigurationError` with one line for what makes no sense.
    """
    entries: dict[str, KnownLeak] = {}
    tables, lines = known_tables(path, "leak"), lines_of_tables(path, "leak")
    for number, table in enumerate(tables, 1):
        where = f"line {lines[number - 1]}, entry {number}" if len(lines) == len(tables) else f"entry {number}"
        entry = _entry(table, where)
        if entry.key in entries:
            raise ConfigurationError(f"{where}: there is one for {entry.key} already; remove one")
        entries[entry.key] = entry
    return tuple(entries.values())


def _entry(table: Mapping[str, Any], where: str) -> KnownLeak:
    refuse_other_keys(table, _KEYS, where)
    test, reason = text_in(table, "test", where), text_in(table, "reason", where)
    where = f"{where} ({test})"
    gauge = text_in(table, "gauge", where) if "gauge" in table else ""
    up_to = _up_to(table["up_to"], gauge, where) if "up_to" in table else None
    expires = expiry_in(table, where)
    if up_to is None and expires is None:
        raise ConfigurationError(f"{where}: it would hide any growth for ever; write up_to, or a date that it expires")
    versions, is_size = _versions(table.get("versions", {}), where), isinstance(table.get("up_to"), str)
    return KnownLeak(test, gauge, up_to, reason, versions, expires, is_size)


def _up_to(value: object, gauge: str, where: str) -> int:
    if not gauge:
        raise ConfigurationError(f"{where}: up_to needs a gauge; write one of {', '.join(FAMILIES)}")
    try:
        amount = bytes_from(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ConfigurationError(f"{where}: up_to is {value!r}; {error}") from None
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < 1:
        raise ConfigurationError(f"{where}: up_to is {value!r}; write a size such as '2 KiB', or a whole number")
    return amount


def _versions(value: object, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(each, str) and each for each in value.values()):
        raise ConfigurationError(f'{where}: versions is {value!r}; write {{ python = "3.12" }}')
    return tuple(sorted(value.items()))


def write_known(path: Path, entries: Iterable[KnownLeak]) -> None:
    """Write a file whole. Raises :class:`OSError`, which names it."""
    write_atomically(path, _HEAD + "".join(map(_table, entries)))


def _table(entry: KnownLeak) -> str:
    lines = ["", "[[leak]]", f"test = {_quoted(entry.test)}"]
    if entry.gauge:
        lines.append(f"gauge = {_quoted(entry.gauge)}")
    if entry.up_to is not None:
        lines.append(f"up_to = {_quoted(exact_size(entry.up_to)) if entry.is_size else entry.up_to}")
    if entry.versions:
        pairs = ", ".join(f"{_key(name)} = {_quoted(version)}" for name, version in entry.versions)
        lines.append(f"versions = {{ {pairs} }}")
    lines.append(f"reason = {_quoted(entry.reason)}")
    if entry.expires is not None:
        lines.append(f"expires = {entry.expires}")
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return a basic string of TOML: JSON's escapes are valid there, but for halves of characters."""
    return json.dumps(text.encode("utf-8", "replace").decode("utf-8"), ensure_ascii=False).replace("\x7f", "\\u007f")
