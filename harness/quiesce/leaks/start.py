"""What the garbage collector left out before any tested code ran: pytest's plugin imports this as it is loaded."""

from __future__ import annotations

import gc
from typing import Final

FROZEN_AT_START: Final = gc.get_freeze_count() if hasattr(gc, "get_freeze_count") else 0
"""CPython 3.12 begins with a few hundred objects of its own frozen; those before and after it with none."""
