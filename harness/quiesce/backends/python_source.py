"""Backends in Python that are not installed: ``python:FILE.py:FACTORY`` and ``python:MODULE:FACTORY``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from quiesce.model.backend import Backend
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.wording import shown_path

PREFIX: Final = "python"


def load(argument: str, name: str) -> Backend:
    """Return what the factory of ``PLACE:FACTORY`` makes, called without arguments; ``name`` is the whole name.

    Raises :class:`~quiesce.model.errors.ConfigurationError` for a name that means nothing or a factory of something
    else,
    and :class:`~quiesce.model.errors.BackendUnavailable` where the source cannot be imported or the factory fails.
    """
    backend = make(argument, name)
    if not isinstance(backend, Backend):
        what = f"'{name}' makes {type(backend).__name__}, which is not a backend"
        raise ConfigurationError(f"{what}; name what returns an object with describe() and open(profile)")
    return backend


def make(argument: str, name: str) -> object:
    """Return what the factory of ``PLACE:FACTORY`` makes, whatever it is. Raises as :func:`load` does."""
    place, colon, factory = argument.rpartition(":")
    if not colon or not place or not factory:
        raise ConfigurationError(f"'{name}' names no factory; write {PREFIX}:my_allocator.py:Backend")
    try:
        made: object = getattr(_imported(place), factory)()
    except (BackendUnavailable, ConfigurationError):
        raise
    except (Exception, SystemExit) as error:  # somebody else's code: whatever it raises, it cannot be used here
        said = f"{type(error).__name__}: {error}"
        raise BackendUnavailable(name, f"it cannot be made ({said})", f"repair {place}, or give its path") from error
    return made


def name_of(backend: Backend) -> str | None:
    """Return a name that makes such a backend again in this folder; None where none is known.

    A class at the top of a file or module has one, if it is made without arguments.
    """
    kind = type(backend)
    module = sys.modules.get(kind.__module__)
    if module is None or getattr(module, kind.__qualname__, None) is not kind or inspect.signature(kind).parameters:
        return None
    if kind.__module__ != "__main__":
        return f"{PREFIX}:{kind.__module__}:{kind.__qualname__}"
    source = getattr(module, "__file__", None)
    return f"{PREFIX}:{shown_path(source)}:{kind.__qualname__}" if source and Path(source).suffix == ".py" else None


def _imported(place: str) -> ModuleType:
    path = Path(place)
    folder = str(path.parent.resolve()) if path.suffix == ".py" else str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # what stands next to it is imported as it was when it ran as a program
    if path.suffix != ".py":
        return importlib.import_module(place)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {place}")
    name = f"quiesce_backend_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
