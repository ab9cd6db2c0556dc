"""The keys of a report's ``run`` object that decide whether the run was complete."""

from __future__ import annotations

from typing import Final

ENDED: Final = "ended"
"""How a run ended: ``completed``, ``interrupted`` or ``failed``, or ``killed`` where its journal has no end."""
PLANNED: Final = "planned results"
"""How many results a complete run has."""
SKIPPED: Final = "skipped "
"""The prefix of the keys that name the backends that were left out; the value says why."""
NAMED: Final = "named "
"""The prefix of the keys that name the backends that the user asked for by name; the value says where."""
UNREADABLE: Final = "unreadable "
"""The prefix of the keys that name the case files that could not be read; the value says why."""
