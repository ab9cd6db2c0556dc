"""Doors: the names of a package for others, each loaded when it is first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[list[str], Callable[[str], object]]:
    """Return ``__all__`` and ``__getattr__`` of a package. ``homes`` has names by the module that defines them."""
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        home = import_module(home_of[name])
        # Not kept here: a module that was loaded again, as in pytest's pytester, has other classes.
        value: object = getattr(home, name) if hasattr(home, name) else import_module(f"{home_of[name]}.{name}")
        return value

    return list(home_of), load
