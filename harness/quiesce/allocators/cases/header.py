"""The header of a case file: ``key: value`` lines up to the first blank line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from quiesce.allocators.cases.case import CaseKind, Known
from quiesce.allocators.cases.wording import instead_of
from quiesce.model.backend import Capability, DeviceProfile, Flavour, Initialization, Promise
from quiesce.model.errors import CaseError
from quiesce.model.requests import RequestError, evaluate_size
from quiesce.model.versions import parse_versions

KEYS: Final = ("title", "kind", "upstream", "fault", "finds", "needs", "promise", "device", "known")
"""The header's keys in the order in which a case is written."""
DEVICE_KEYS: Final[Mapping[str, str]] = {
    "capacity": "capacity_bytes",
    "pinned-capacity": "pinned_capacity_bytes",
    "alignment": "alignment_bytes",
    "granularity": "granularity_bytes",
    "devices": "devices",
    "flavour": "flavour",
    "initialize": "initialization",
}
"""The words of the ``device`` line, each with its field of :class:`DeviceProfile`."""
DEVICES_MAX: Final = 64
_REPEATABLE_KEYS = frozenset({"upstream", "known"})
_KEY = re.compile(r"([^\s:]+)\s*:\s*(.*)\Z")
_FAULT = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*\Z")
_RULE = re.compile(r"[a-z][a-z0-9_]*\Z")
_NUMBER = re.compile(r"[A-Za-z0-9_./-]*#[0-9]+\Z")
_Word = TypeVar("_Word", Capability, Promise, CaseKind, Flavour, Initialization)


@dataclass(frozen=True, slots=True)
class Header:
    """What the header of a case says; the fields are those of :class:`~quiesce.allocators.cases.case.Case`."""

    title: str
    kind: CaseKind
    upstream: tuple[str, ...]
    fault: str
    finds: str
    needs: frozenset[Capability]
    promises: frozenset[Promise]
    device: DeviceProfile
    known: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One header line."""

    path: str
    line: int
    key: str
    value: str

    def error(self, what: str, instead: str) -> CaseError:
        return CaseError(self.path, self.line, what, instead)


def parse_header(lines: Sequence[tuple[int, str]], path: str) -> Header:
    """Return the header that the numbered ``lines`` hold; comments and blank lines are already gone.

    Raises :class:`CaseError` for an unknown, repeated, missing or wrong line.
    """
    entries: dict[str, list[_Entry]] = {}
    for number, text in lines:
        entry = _parse_entry(path, number, text)
        if entry.key in entries and entry.key not in _REPEATABLE_KEYS:
            first = entries[entry.key][0].line
            raise entry.error(f"'{entry.key}:' appears twice, first in line {first}", "keep one of the two lines")
        entries.setdefault(entry.key, []).append(entry)
    single = {key: found[0] for key, found in entries.items()}
    if "title" not in single:
        raise CaseError(
            path, lines[0][0] if lines else 1, "the case has no title", "write 'title: …' as its first line"
        )
    kind = _choose(CaseKind, single["kind"], single["kind"].value) if "kind" in single else CaseKind.REGRESSION
    _check_kind(kind, single)
    return Header(
        title=single["title"].value,
        kind=kind,
        upstream=tuple(entry.value for entry in entries.get("upstream", ())),
        fault=_name(single.get("fault"), _FAULT, "pool.no_squeeze"),
        finds=_name(single.get("finds"), _RULE, "request_fits_but_out_of_memory"),
        needs=_words(Capability, single.get("needs")),
        promises=_words(Promise, single.get("promise")),
        device=_device(single["device"]) if "device" in single else DeviceProfile(),
        known=tuple(_known(entry) for entry in entries.get("known", ())),
    )


def _parse_entry(path: str, number: int, text: str) -> _Entry:
    match = _KEY.match(text)
    if match is None:
        raise CaseError(
            path, number, f"'{text}' is no header line", "write 'key: value', or a blank line before the first request"
        )
    key = match[1]
    if key not in KEYS:
        raise CaseError(path, number, f"unknown header key '{key}'", instead_of(key, KEYS))
    value = match[2].strip()
    if not value:
        raise CaseError(path, number, f"'{key}:' says nothing", "write its value, or leave the line out")
    return _Entry(path, number, key, value)


_NAMED: Final[Mapping[CaseKind, frozenset[str]]] = {
    CaseKind.REGRESSION: frozenset({"fault", "finds"}),
    CaseKind.CONTROL: frozenset(),
    CaseKind.FOUND: frozenset({"finds"}),
}
"""Which of ``fault`` and ``finds`` a case of each kind may name."""


def _check_kind(kind: CaseKind, single: Mapping[str, _Entry]) -> None:
    for key in ("fault", "finds"):
        if key in single and key not in _NAMED[kind]:
            why = "a control passes with every fault"
            if kind is CaseKind.FOUND:
                why = "a found case failed on a backend, not on a fault"
            raise single[key].error(
                f"{why}, so it has no '{key}:'",
                f"leave the line out, or leave out 'kind: {kind}'",
            )
    if "finds" in single:
        return
    if "fault" in single:
        raise single["fault"].error(
            "a 'fault:' without 'finds:' proves nothing", "write 'finds: RULE', which it breaks"
        )
    if kind is CaseKind.FOUND:
        raise single["kind"].error(
            "a found case without 'finds:' proves nothing", "write 'finds: RULE', which it broke"
        )


def _choose(kind: type[_Word], entry: _Entry, word: str) -> _Word:
    try:
        return kind(word)
    except ValueError:
        raise entry.error(f"unknown word '{word}' in '{entry.key}:'", instead_of(word, kind)) from None


def _words(kind: type[_Word], entry: _Entry | None) -> frozenset[_Word]:
    if entry is None:
        return frozenset()
    words = [word.strip() for word in entry.value.split(",")]
    _refuse_repeated(entry, words)
    return frozenset(_choose(kind, entry, word) for word in words)


def _refuse_repeated(entry: _Entry, words: Iterable[str]) -> None:
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise entry.error(f"'{word}' appears twice in '{entry.key}:'", "write it once")
        seen.add(word)


def _name(entry: _Entry | None, form: re.Pattern[str], example: str) -> str:
    if entry is None:
        return ""
    if not form.match(entry.value):
        raise entry.error(f"'{entry.value}' is not a name for '{entry.key}:'", f"write one such as {example}")
    return entry.value


def _known(entry: _Entry) -> Known:
    example = "write SUBJECT VERSIONS NUMBER, such as: cccl >=3.1.0 NVIDIA/cccl#4222"
    words = entry.value.split()
    if len(words) != 3:
        raise entry.error(f"'known:' takes three words and '{entry.value}' has {len(words)}", example)
    try:
        parse_versions(words[1])
    except ValueError as error:
        raise entry.error(f"'known:': {error}", "write >=3.1.0,<3.2 or 3.1.0..3.1.2 or 3.1.0, or * for all") from None
    if not _NUMBER.match(words[2]):
        raise entry.error(f"'{words[2]}' is not an upstream number", example)
    return Known(*words)


def _device(entry: _Entry) -> DeviceProfile:
    pairs = [word.partition("=") for word in entry.value.split()]
    for key, equals, value in pairs:
        if key not in DEVICE_KEYS:
            raise entry.error(f"unknown word '{key}' in 'device:'", instead_of(key, DEVICE_KEYS))
        if not equals or not value:
            raise entry.error(f"'{key}' has no value", f"write {key}=…")
    _refuse_repeated(entry, [key for key, _, _ in pairs])
    figures: dict[str, int | Flavour | Initialization] = {}
    for key, _, value in pairs:
        figures[DEVICE_KEYS[key]] = _device_value(entry, key, value)
    return replace(DeviceProfile(), **figures)  # type: ignore[arg-type]


def _device_value(entry: _Entry, key: str, value: str) -> int | Flavour | Initialization:
    match key:
        case "flavour":
            return _choose(Flavour, entry, value)
        case "initialize":
            return _choose(Initialization, entry, value)
    return _device_size(entry, key, value)


def _device_size(entry: _Entry, key: str, value: str) -> int:
    try:
        size = evaluate_size(value, {})
    except RequestError as error:
        raise entry.error(f"{key}={value}: {error.what}", error.instead) from error
    if size == 0:
        raise entry.error(f"{key}={value} leaves no device to test", "write at least 1")
    if key == "alignment" and size & (size - 1):
        raise entry.error(f"{key}={value} is not a power of two", "write one such as alignment=256")
    if key == "devices" and size > DEVICES_MAX:
        raise entry.error(f"{key}={value} is beyond what a case may open", f"write at most {DEVICES_MAX}")
    return size
