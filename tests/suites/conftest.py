"""The options that choose a suite, and how much of it; the counts at the end."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.suites.running import Choice, outcomes_folder, read_part
from tests.suites.suites import read_suite, suite_names

collect_ignore = ["project"]
"""It runs on the simulated device, in a process of its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--suite`` and ``--whole``."""
    parser.addoption("--suite", action="append", choices=suite_names(), help="run this suite; may be repeated")
    parser.addoption("--whole", action="store_true", help="run all tests of it, not a sample: this takes hours")


def _suites(config: pytest.Config) -> list[str]:
    return config.getoption("--suite", default=None) or []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each part of each suite that was chosen."""
    if "choice" not in metafunc.fixturenames:
        return
    chosen = []
    for suite in map(read_suite, _suites(metafunc.config)):
        whole = [Choice(part, suite.parts, quick=False) for part in range(suite.parts)]
        choices = whole if metafunc.config.getoption("--whole", default=False) else [Choice(*suite.sample, quick=True)]
        chosen += [pytest.param(suite, each, id=f"{suite.name}-{each.first}-of-{each.step}") for each in choices]
    metafunc.parametrize(("suite", "choice"), chosen)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what came of the tests of each suite, also of those that an earlier run had finished."""
    for suite in map(read_suite, _suites(config)):
        parts = [read_part(folder / "outcomes") for folder in sorted(outcomes_folder(suite).glob("*-of-*"))]
        counts = Counter(suite.kind(name, *each) for part in parts for name, each in part.outcomes.items())
        collected = max((part.collected for part in parts), default=0)
        said = ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))
        terminalreporter.write_line(f"{suite.name}: {counts.total():,} of {collected:,} tests ran: {said or 'none'}")
