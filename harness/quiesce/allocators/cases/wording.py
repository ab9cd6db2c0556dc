"""What to write instead of a word that is not known: the nearest known one, and the list it comes from."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from quiesce.model.requests import RequestError

_NEAR_MAX: Final = 3
_CHOICES = re.compile(r"write one of (.+)\Z")
_QUOTED = re.compile(r"'([^']*)'\Z")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that ``word`` most likely stands for, or None where nothing is near."""
    candidates = list(known)
    if word.lower() in candidates:
        return word.lower()
    matches = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    return matches[0] if matches else None


def near_names(text: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that ``text`` may stand for: those that are alike, then those that hold it."""
    candidates = sorted(known)
    word = text.lower()
    parts = [each for each in re.split(r"[/_*]", word) if each]
    holding = [each for each in candidates if word in each] or [
        each for each in candidates if parts and all(part in each for part in parts)
    ]
    alike = difflib.get_close_matches(word, candidates, n=_NEAR_MAX, cutoff=0.6)
    return list(dict.fromkeys([*alike, *holding]))[:_NEAR_MAX]


def did_you_mean(names: Sequence[str]) -> str:
    """Return a question that offers some names."""
    *others, last = (f"'{name}'" for name in names)
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def instead_of(word: str, known: Iterable[str]) -> str:
    """Say which of the ``known`` words to write instead of ``word``."""
    candidates = list(known)
    if not candidates:
        return "leave it out: none is known here"
    near = nearest(word, candidates)
    choices = ", ".join(candidates)
    return f"write one of {choices}" if near is None else f"write '{near}', or another of {choices}"


def instead_of_request(error: RequestError) -> str:
    """Return what a request's error advises, with the nearest word put first where it lists the known ones."""
    choices = _CHOICES.match(error.instead)
    word = _QUOTED.search(error.what)
    if choices is None or word is None:
        return error.instead
    return instead_of(word[1], choices[1].split(", "))
