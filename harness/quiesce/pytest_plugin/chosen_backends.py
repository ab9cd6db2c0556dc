"""The backends that a run uses, once they were chosen. Light, because the keys of the plugin name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quiesce.backends.registry import Unusable
    from quiesce.model.backend import Backend


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen backends by name, in the order they run, and those that cannot work here."""

    backends: Mapping[str, Backend]
    unavailable: Mapping[str, Unusable]
