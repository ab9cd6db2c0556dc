"""What JSON values of a report may be: text that every reader takes, and checks of what is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from quiesce.model import wording


class RecordError(ValueError):
    """A JSON value does not have the shape of a result; the text names the key."""


def encodable(text: str) -> str:
    r"""Write lone surrogates (undecodable output of a driver) as ``\udc80``: strict JSON readers refuse them.

    Secrets in command lines do not get into a report: see :func:`quiesce.model.wording.redacted`.
    """
    return wording.redacted(text).encode("utf-8", "backslashreplace").decode("utf-8")


def mapping_of(value: object, meaning: str) -> Mapping[str, Any]:
    """Return a JSON object. Raises :class:`RecordError`, which names its ``meaning``, for anything else."""
    if not isinstance(value, dict):
        raise RecordError(f"{meaning} is a JSON object, not {type(value).__name__}")
    return value


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """Return the string of a key. Raises :class:`RecordError` for anything else."""
    value = fields.get(key)
    if not isinstance(value, str):
        raise RecordError(f"'{key}' is not a string")
    return value


def number_of(fields: Mapping[str, Any], key: str) -> int:
    """Return the integer of a key. Raises :class:`RecordError` for anything else."""
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError(f"'{key}' is not an integer")
    return value


def rate_of(fields: Mapping[str, Any], key: str) -> float:
    """Return the finite number of a key. Raises :class:`RecordError` for anything else."""
    value = fields.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise RecordError(f"'{key}' is not a finite number")
    return value


def number_or_none_of(fields: Mapping[str, Any], key: str) -> int | None:
    """Return the integer of a key, or None where the key is missing or null."""
    return None if fields.get(key) is None else number_of(fields, key)


def items_of(fields: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list of a key. Raises :class:`RecordError` for anything else."""
    value = fields.get(key)
    if not isinstance(value, list):
        raise RecordError(f"'{key}' is not a list")
    return value


def numbers_of(fields: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """Return the integers of a key. Raises :class:`RecordError` for anything else."""
    values = items_of(fields, key)
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise RecordError(f"'{key}' is not a list of integers")
    return tuple(values)


def flag_of(fields: Mapping[str, Any], key: str) -> bool:
    """Return the truth value of a key. Raises :class:`RecordError` for anything else."""
    value = fields.get(key)
    if not isinstance(value, bool):
        raise RecordError(f"'{key}' is neither true nor false")
    return value
