"""Mistyped ini keys. pytest runs without them and warns at the end, when what they asked for was not done.

The file is read once more here: pytest offers no way to list the keys that it met. What reads it is imported only where
the prefix occurs, for this module is loaded in every project.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.pytest_plugin.leak_options import LEAK_INI_KEYS

PREFIX: Final = "quiesce_"
INI_KEYS: Final = (
    "quiesce_backends",
    "quiesce_corpus",
    "quiesce_report",
    "quiesce_seed",
    "quiesce_worker_devices",
    *LEAK_INI_KEYS,
)
_SECTIONS: Final = ("pytest", "tool:pytest")


def reject_unknown_keys(config: pytest.Config) -> None:
    """Raise :class:`pytest.UsageError` for a key with quiesce's prefix that is none of its own; name the nearest."""
    overridden = (text.partition("=")[0].strip() for text in config.getoption("override_ini") or ())
    for key in (*_keys_of(config.inipath), *overridden):
        if key.startswith(PREFIX) and key not in INI_KEYS:
            import difflib

            (nearest,) = difflib.get_close_matches(key, INI_KEYS, n=1, cutoff=0)
            raise pytest.UsageError(f"ini key {key}: quiesce has no key of that name; write {nearest}")


def _keys_of(path: Path | None) -> Iterator[str]:
    """Yield the keys of pytest's section of a file that pytest has read already, in whichever way it is written."""
    if path is None:
        return
    text = path.read_text(encoding="utf-8")
    if PREFIX not in text:
        return
    if path.suffix == ".toml":
        import tomllib

        document: dict[str, Any] = tomllib.loads(text)
        table = document.get("tool", document).get("pytest", {})
        yield from (*table, *table.get("ini_options", {}))
        return
    import configparser

    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:  # pytest's own parser takes more, and warns of what it does not know
        return
    for section in _SECTIONS:
        if parser.has_section(section):
            yield from parser.options(section)
