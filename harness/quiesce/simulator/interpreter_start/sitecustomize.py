"""Switches CuPy's pools off when a program imports it, for ``quiesce exec --no-pools``; no variable of CuPy's does.

Every Python of the program runs this file before anything else, because its folder is the first one in PYTHONPATH
(https://docs.python.org/3/library/site.html). It then makes way for a ``sitecustomize`` of the user's own. A program
that sets an allocator itself does so later, and keeps it. It runs in the user's Python: from 3.8 on, without quiesce.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_CUPY = "cupy"


class _CupyFinder:
    """The finder that is asked first; of CuPy it returns what the others find, and switches the pools off after it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> "ModuleSpec | None":
        if name != _CUPY:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in finders)), None)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def execute_without_pools(module: ModuleType) -> None:
                execute(module)
                _switch_pools_off(module)

            loader.exec_module = execute_without_pools
        return spec


def _switch_pools_off(cupy: Any) -> None:
    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator()


def _make_way() -> None:
    """Import the user's own ``sitecustomize``; where there is none, Python goes on as if this one were not there."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is an import that programs see
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]  # noqa: PTH100 - the same
    del sys.modules[__name__]
    import_module(__name__)


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _CupyFinder())
    _make_way()
