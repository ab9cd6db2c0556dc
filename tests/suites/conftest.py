"""The options that choose a suite, and how much of it; the counts at the end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.suites.choices import WHOLE, Choice, Shard, read_shard
from tests.suites.running import outcomes_folder, read_part
from tests.suites.suites import read_suite, suite_names

collect_ignore = ["project"]
"""It runs on the simulated device, in a process of its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--suite``, ``--whole``, ``--shard`` and ``--checkout``."""
    parser.addoption("--suite", action="append", choices=suite_names(), help="run this suite; may be repeated")
    parser.addoption("--whole", action="store_true", help="run all tests of it, not a sample: this takes hours")
    text = "a checkout of the suite's project, at the tag that its file names, where no package has its tests"
    parser.addoption("--checkout", metavar="FOLDER", type=Path, help=text)
    text = "run all tests of the J-th of K equal parts of it, so that K machines share the whole"
    parser.addoption("--shard", metavar="J/K", type=read_shard, help=text)


def _suites(config: pytest.Config) -> list[str]:
    return config.getoption("--suite", default=None) or []


def _shard(config: pytest.Config) -> Shard | None:
    """Return the share of each suite that was asked for, None for a sample."""
    shard: Shard | None = config.getoption("--shard", default=None)
    return shard or (WHOLE if config.getoption("--whole", default=False) else None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each part of each suite that was chosen."""
    if "choice" not in metafunc.fixturenames:
        return
    shard = _shard(metafunc.config)
    chosen = []
    for suite in map(read_suite, _suites(metafunc.config)):
        choices = shard.choices(suite) if shard else [Choice(*suite.sample, quick=True)]
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
        for found in dict.fromkeys(each for part in parts for each in part.found):
            known = "listed" if suite.is_known(found) else "not listed"
            terminalreporter.write_line(f"{found.rule} ({known}): {found.text}")
