"""Options and ini keys of the leak checks. An option wins over its ini key, a test's marker over both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from quiesce.leaks.plan import Plan

_KEYS: Final = {
    "rounds": ("N", "how many rounds growth must last to be a leak; 0 switches the checks off (default: 64)", "64"),
    "limit": ("SIZE", "how much each gauge of memory may grow per round, such as '2 KiB' (default: 0)", "2 KiB"),
    "limit_bytes": ("N", "the same as a number of bytes", "2048"),
    "limit_peak": ("SIZE", "how much memory a test may use at any time, such as '24 MiB' (default: any)", "24 MiB"),
    "seconds": ("N", "how long the check of a test may take (default: 10)", "10"),
    "gauges": ("NAMES", "the gauges to look at, separated by commas (default: all)", "python,descriptors"),
}
"""The keys of a plan: what stands for its value, its help, and an example."""

_ALL: Final = "all"
_MARKED: Final = "marked"

LEAK_INI_KEYS: Final = (
    "quiesce_leak",
    "quiesce_leak_baseline",
    "quiesce_strict",
    *(f"quiesce_leak_{key}" for key in _KEYS),
)


@dataclass(frozen=True, slots=True)
class LeakSettings:
    """What the user asked for.

    ``given`` has each value with the name of where it was given. ``checks_all`` says that every test is checked, and
    ``is_strict`` that a run fails in which a test has no verdict. ``baseline`` is the file of known leaks, with the
    name of where it was given, and ``writes_baseline`` says that it is written anew.
    """

    given: tuple[tuple[str, str, str], ...]
    checks_all: bool = False
    is_strict: bool = False
    baseline: tuple[Path, str] | None = None
    writes_baseline: bool = False

    @property
    def off(self) -> bool:
        """Whether the checks are switched off."""
        return any(key == "rounds" and value == "0" for key, value, _ in self.given)

    def plan(self) -> Plan:
        """Return the plan of every test that says nothing else. Raises :class:`pytest.UsageError` with one line."""
        from quiesce.leaks.plan import Plan, adjusted
        from quiesce.model.errors import ConfigurationError

        plan = Plan()
        for key, value, source in () if self.off else self.given:
            try:
                plan = adjusted(plan, {key: value}, source)
            except ConfigurationError as error:
                off = ", or 0 for no checks" if key == "rounds" else ""
                raise pytest.UsageError(f"{error}{off}") from None
        return plan


def add_leak_options(parser: pytest.Parser) -> None:
    """Declare the options and their ini keys."""
    group = parser.getgroup("quiesce", "memory-management cases (quiesce)")
    group.addoption(
        "--quiesce-leak",
        action="store_true",
        default=None,
        help="check every test of the run for leaks, not only those that are marked 'leak'",
    )
    parser.addini("quiesce_leak", "the tests to check for leaks: marked (default) or all", default=None)
    strict = "a run fails in which the leak check of a test comes to no verdict"
    group.addoption("--quiesce-strict", action="store_true", default=None, help=strict)
    parser.addini("quiesce_strict", strict, type="bool", default=None)
    known = "the file of known leaks: these do not fail their tests"
    group.addoption("--quiesce-leak-baseline", default=None, metavar="FILE", help=known)
    parser.addini("quiesce_leak_baseline", known, default=None)
    write = "accept every leak of this run, and write the file of known leaks anew"
    group.addoption("--quiesce-leak-write-baseline", action="store_true", default=False, help=write)
    for key, (metavar, meaning, _) in _KEYS.items():
        group.addoption(f"--quiesce-leak-{key.replace('_', '-')}", default=None, metavar=metavar, help=meaning)
        parser.addini(f"quiesce_leak_{key}", meaning, default=None)


def read_leak_settings(config: pytest.Config) -> LeakSettings:
    """Return what the user asked for. Raises :class:`pytest.UsageError` with one line for what makes no sense."""
    given = []
    for key, (_, _, example) in _KEYS.items():
        option, ini = f"--quiesce-leak-{key.replace('_', '-')}", f"quiesce_leak_{key}"
        value = config.getoption(option)
        if value is not None:
            given.append((key, str(value), option))
            continue
        value = _ini(config, ini, example)
        if value is not None:
            given.append((key, str(value), f"ini key {ini}"))
    strict = config.getoption("--quiesce-strict") or _ini(config, "quiesce_strict", "true or false")
    writes = bool(config.getoption("--quiesce-leak-write-baseline"))
    settings = LeakSettings(tuple(given), _checks_all(config), bool(strict), _baseline(config, writes), writes)
    if given:
        settings.plan()
    return settings


def _baseline(config: pytest.Config, writes: bool) -> tuple[Path, str] | None:
    """Return the file of known leaks: an option's is relative to where pytest was started, an ini file's to its own."""
    option, ini, example = "--quiesce-leak-baseline", "quiesce_leak_baseline", "known_leaks.toml"
    given = config.getoption(option)
    folder, source = config.invocation_params.dir, option
    if given is None:
        given = _ini(config, ini, example)
        folder, source = (config.inipath or config.rootpath / "_").parent, f"ini key {ini}"
    if given is None:
        if writes:
            raise pytest.UsageError(f"--quiesce-leak-write-baseline: which file? Write {option}={example} as well")
        return None
    if not given:
        raise pytest.UsageError(f"{source} names no file; write one, such as {example}")
    return folder / str(given), source


def _checks_all(config: pytest.Config) -> bool:
    if config.getoption("--quiesce-leak"):
        return True
    value = _ini(config, "quiesce_leak", f"{_MARKED} or {_ALL}")
    if value not in (None, _ALL, _MARKED):
        raise pytest.UsageError(f"ini key quiesce_leak: '{value}' is not a choice; write {_MARKED} or {_ALL}")
    return value == _ALL


def _ini(config: pytest.Config, key: str, example: str) -> object:
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"ini key '{key}' cannot be read: {error}; write {key} = {example}") from None
