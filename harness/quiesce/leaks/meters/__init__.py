"""What is counted of a process: a meter for each gauge, and what they have in common."""

from __future__ import annotations

from pkgutil import resolve_name

from quiesce.leaks.quantities import ROWS, Meter, Surroundings


def meters_here(surroundings: Surroundings) -> tuple[Meter, ...]:
    """Return the meters of all families that can be counted here, in the order in which they are read."""
    names = dict.fromkeys(row.meter for row in sorted(ROWS, key=lambda row: row.is_read_late) if row.meter)
    return tuple(meter for name in names for meter in resolve_name(f"{__name__}.{name}").here(surroundings))
