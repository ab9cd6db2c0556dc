"""Find memory bugs, with or without a GPU; what an installation offers is in README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quiesce.simulator.marking import mark

__all__ = ["mark"]

_HOMES: Final = {"mark": "quiesce.simulator.marking"}


def __getattr__(name: str) -> object:
    """Import a public name when it is used first (PEP 562): pytest loads quiesce in every project."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
