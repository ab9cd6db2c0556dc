"""Options and ini keys of the leak checks. An option wins over its ini key, a test's marker over both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from quiesce.leaks.plan import Plan

_KEYS: Final = {
    "rounds": ("N", "how many rounds growth must last to be a leak; 0 switches the checks off (default: 64)", "64"),
    "limit_bytes": ("N", "how many bytes each gauge may grow per round (default: 0)", "0"),
    "gauges": ("NAMES", "the gauges to look at, separated by commas (default: all)", "python,descriptors"),
}
"""The keys of a plan: what stands for its value, its help, and an example."""

LEAK_INI_KEYS: Final = tuple(f"quiesce_leak_{key}" for key in _KEYS)


@dataclass(frozen=True, slots=True)
class LeakSettings:
    """What the user asked for: each value with the name of where it was given."""

    given: tuple[tuple[str, str, str], ...]

    @property
    def off(self) -> bool:
        """Whether the checks are switched off."""
        return any(key == "rounds" and value == "0" for key, value, _ in self.given)

    def plan(self) -> Plan:
        """Return the plan of every test that says nothing else. Raises :class:`pytest.UsageError` with one line."""
        from quiesce.errors import ConfigurationError
        from quiesce.leaks.plan import Plan, adjusted

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
        try:
            value = config.getini(ini)
        except (TypeError, ValueError, pytest.UsageError) as error:
            raise pytest.UsageError(f"ini key '{ini}' cannot be read: {error}; write {ini} = {example}") from None
        if value is not None:
            given.append((key, str(value), f"ini key {ini}"))
    settings = LeakSettings(tuple(given))
    if given:
        settings.plan()
    return settings
