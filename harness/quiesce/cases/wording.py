"""What to write instead of a word that is not known: the nearest known one, and the list it comes from."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from quiesce.requests import RequestError

_CHOICES = re.compile(r"write one of (.+)\Z")
_QUOTED = re.compile(r"'([^']*)'\Z")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that ``word`` most likely stands for, or None where nothing is near."""
    candidates = list(known)
    if word.lower() in candidates:
        return word.lower()
    matches = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    return matches[0] if matches else None


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
