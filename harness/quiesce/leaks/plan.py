"""The plan of a leak check: what the user asked for, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.leaks.quantities import C_HEAP, DEVICE, FAMILIES, PYTHON
from quiesce.model.errors import ConfigurationError
from quiesce.model.wording import bytes_from

ROUNDS_MIN: Final = 3
ROUNDS_MAX: Final = 100_000
DEFAULT_ROUNDS: Final = 24
DEFAULT_SECONDS: Final = 10.0
SECONDS_MAX: Final = 86_400.0

LIMIT_BYTES_MAX: Final = 1 << 50
PEAKS: Final = (PYTHON, DEVICE)
"""The gauges whose peak within a round can be limited."""

MARKER_OPTIONS: Final = ("rounds=", "seconds=", "limit=", "limit_peak=", "gauges=", "skip=")
"""What the marker takes. Its ``skip=`` is no part of a plan: such a test is not checked."""

_NUMBER = re.compile(r"[0-9]{1,18}\Z")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a check is done.

    ``rounds`` is how long growth must last to be a leak; ``limit_bytes`` the growth per round that is allowed to each
    quantity that is counted in bytes; ``gauges`` the families that are looked at (None: all). ``seconds`` is the time
    after which the check of a test is brought to its end. ``peaks`` has by gauge how many bytes more than at its start
    a round may use at any time. ``looks_longer`` also looks for what shows in more rounds only than most tests are run.
    ``name`` is that of one test of a suite: if it is slow, it may have fewer rounds (see ``stages.screening``).
    """

    rounds: int = DEFAULT_ROUNDS
    limit_bytes: int = 0
    gauges: tuple[str, ...] | None = None
    seconds: float = DEFAULT_SECONDS
    peaks: tuple[tuple[str, int], ...] = ()
    looks_longer: bool = False
    name: str = ""

    def looks_at(self, family: str) -> bool:
        """Whether a family of gauges is looked at; what a test counts itself always is."""
        return self.gauges is None or family in self.gauges or family not in FAMILIES

    def reads(self, family: str) -> bool:
        """Whether a family is read; the C heap also shows what of Python's memory grows in place."""
        return self.looks_at(family) or (family == C_HEAP and self.looks_at(PYTHON))


def adjusted(plan: Plan, values: Mapping[str, object], source: str) -> Plan:
    """Return ``plan`` with the given values in place of its own: numbers, their text, lists or comma-separated names.

    ``source`` says where the values come from. Raises :class:`ConfigurationError` for a value that makes no sense.
    """
    for key, value in values.items():
        if key == "rounds":
            plan = replace(plan, rounds=_number(value, key, source, ROUNDS_MIN, ROUNDS_MAX))
        elif key == "limit_bytes":
            plan = replace(plan, limit_bytes=_number(value, key, source, 0, LIMIT_BYTES_MAX))
        elif key == "limit":
            plan = replace(plan, limit_bytes=_size(value, key, source))
        elif key == "limit_peak":
            plan = replace(plan, peaks=_peaks(value, source))
        elif key == "gauges":
            plan = replace(plan, gauges=_families(value, source))
        elif key == "seconds":
            plan = replace(plan, seconds=_seconds(value, source))
        else:
            near = _near(key, [*(option.rstrip("=") for option in MARKER_OPTIONS), "limit_bytes"])
            meant = f"did you mean {near}=? " if near else ""
            raise ConfigurationError(f"{source}: there is no '{key}'; {meant}options: {', '.join(MARKER_OPTIONS)}")
    return plan


def _near(word: str, known: Sequence[str]) -> str:
    """Return the known word that is most like another one, or an empty text where none is."""
    import difflib

    return next(iter(difflib.get_close_matches(word.lower(), known, n=1)), "")


def _number(value: object, key: str, source: str, least: int, most: int) -> int:
    if isinstance(value, str) and _NUMBER.match(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigurationError(f"{source}: {key} is {value!r}; write a whole number from {least} to {most}")
    return value


def _size(value: object, key: str, source: str) -> int:
    try:
        size_bytes = bytes_from(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ConfigurationError(f"{source}: {key} is {value!r}; {error}") from None
    if not isinstance(size_bytes, int) or isinstance(size_bytes, bool) or not 0 <= size_bytes <= LIMIT_BYTES_MAX:
        raise ConfigurationError(f"{source}: {key} is {value!r}; write a size from 0 to 1024 TiB, such as '24 MiB'")
    return size_bytes


def _peaks(value: object, source: str) -> tuple[tuple[str, int], ...]:
    by_gauge = value if isinstance(value, Mapping) else dict.fromkeys(PEAKS, value)
    for gauge in by_gauge:
        if gauge not in PEAKS:
            raise ConfigurationError(f"{source}: there is no peak of '{gauge}'; write some of {', '.join(PEAKS)}")
    return tuple((gauge, _size(size, "limit_peak", source)) for gauge, size in by_gauge.items())


def _seconds(value: object, source: str) -> float:
    try:
        seconds = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else 0.0
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= SECONDS_MAX:
        raise ConfigurationError(f"{source}: seconds is {value!r}; write a number above 0, such as {DEFAULT_SECONDS:g}")
    return seconds


def _families(value: object, source: str) -> tuple[str, ...]:
    known = ", ".join(FAMILIES)
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if names in ([], [""], ()):
        raise ConfigurationError(f"{source}: gauges is {value!r}, so nothing would be looked at; name some of {known}")
    if not isinstance(names, Sequence) or not all(isinstance(name, str) and name for name in names):
        raise ConfigurationError(f"{source}: gauges is {value!r}; write a list of some of {known}")
    for name in names:
        if name not in FAMILIES:
            near = _near(name, FAMILIES)
            meant = f"did you mean '{near}'? Write" if near else "write"
            raise ConfigurationError(f"{source}: there is no gauge '{name}'; {meant} some of {known}")
    return tuple(dict.fromkeys(names))
