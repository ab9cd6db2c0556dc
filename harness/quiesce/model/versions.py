"""Versions: dotted numbers, and ranges of them such as ``>=1.2,<3``, ``1.0..2.3``, ``4.7.00`` or ``*``.

Only the numbers count: 1.2 is 1.2.0, and what follows them (``rc1``, ``-dev``, a platform's name) is not compared.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, ...]
"""The numbers of a version, most significant first, without the zeros at its end."""

EVERY_VERSION: Final = "*"

_DOTTED = r"[0-9]{1,18}(?:\.[0-9]{1,18})*"
_FIRST_NUMBER = re.compile(rf"(?<![0-9.]){_DOTTED}")
_SPAN = re.compile(rf"({_DOTTED})\.\.({_DOTTED})\Z")
_TERM = re.compile(rf"(>=|<=|==|!=|>|<|)({_DOTTED})\Z")
_COMPARE: Final[Mapping[str, Callable[[Version, Version], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    "": operator.eq,
}


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions that satisfy every one of ``bounds``: comparisons by their sign, each with a version."""

    bounds: tuple[tuple[str, Version], ...]

    def __contains__(self, reported: str) -> bool:
        """Whether the first dotted number in what a subject reports (``PyOpenCL 2026.1.4 on …``) lies in the range.

        Without any bound every version does, also one that names no number.
        """
        version = find_version(reported)
        if version is None:
            return not self.bounds
        return all(_COMPARE[sign](version, bound) for sign, bound in self.bounds)


def find_version(reported: str) -> Version | None:
    """Return the first dotted number in a text, or None where it has none."""
    match = _FIRST_NUMBER.search(reported)
    return _numbers(match[0]) if match is not None else None


def parse_versions(text: str) -> VersionRange:
    """Return the range that ``text`` means; commas mean *and*, ``..`` includes both ends.

    Raises :class:`ValueError` for anything else, and for a span that ends before it begins.
    """
    if text == EVERY_VERSION:
        return VersionRange(())
    bounds: list[tuple[str, Version]] = []
    for term in text.split(","):
        if span := _SPAN.match(term):
            first, last = _numbers(span[1]), _numbers(span[2])
            if last < first:
                raise ValueError(f"'{term}' ends before it begins")
            bounds += [(">=", first), ("<=", last)]
        elif single := _TERM.match(term):
            bounds.append((single[1], _numbers(single[2])))
        else:
            raise ValueError(f"'{term}' names no versions")
    return VersionRange(tuple(bounds))


def _numbers(dotted: str) -> Version:
    numbers = [int(number) for number in dotted.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
