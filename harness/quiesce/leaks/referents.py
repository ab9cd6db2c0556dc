"""What objects refer to, as the garbage collector knows it, but for what a module written in C keeps to itself.

CPython 3.12's ``_asyncio`` lists there iterators that are gone and wait to be used again. Whoever is given one frees it
a second time, and the next collection never ends (``fi_freelist`` in its Modules/_asynciomodule.c).
"""

from __future__ import annotations

import gc
import types
from collections.abc import Sequence
from itertools import compress
from operator import not_
from typing import Any


def referents(objects: Sequence[Any]) -> list[Any]:
    """Return what these objects refer to, some more than once; of a module its dictionary of names."""
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, types.ModuleType)}
    if not kinds:
        return gc.get_referents(*objects)
    are_modules = list(map(kinds.__contains__, map(type, objects)))
    names = [object.__getattribute__(module, "__dict__") for module in compress(objects, are_modules)]
    return [*gc.get_referents(*compress(objects, map(not_, are_modules))), *names]
