"""Settings of every test, the selection that ``--short`` makes, and the example plugin, installed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.seeds import SEED, VARIABLE

EXAMPLE_PLUGIN: Final = Path(__file__).resolve().parent.parent / "fixtures" / "example_plugin"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option of the short run."""
    parser.addoption(
        "--short",
        action="store_true",
        help="run each test function once, with the first of its parameters, and leave out those that are marked long",
    )


def pytest_report_header() -> str:
    """Say how to repeat the samples of this run."""
    return f"samples: {VARIABLE}={SEED}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what a short run runs: something of every test module, so that it covers each package."""
    if not config.getoption("--short"):
        return
    kept = list(_short(items))
    chosen = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept


def _short(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    seen = set()
    for item in items:
        if not isinstance(item, pytest.Function):
            yield item  # a case on a backend takes milliseconds
            continue
        parent = "" if item.parent is None else item.parent.nodeid
        function = (parent, item.originalname)
        if function not in seen and item.get_closest_marker("long") is None:
            seen.add(function)
            yield item


@pytest.fixture(scope="session", autouse=True)
def not_on_github() -> Iterator[None]:
    """Keep what tests run from telling GitHub Actions about leaks that are meant."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_ACTIONS", raising=False)
        patch.delenv("CI", raising=False)  # there pytest cuts no line of its summary
        yield


@pytest.fixture(scope="session", autouse=True)
def usual_signals() -> Iterator[None]:
    """Let signals end the programs of tests, also where they are ignored around them, as under ``nohup``."""
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def example_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example plugin into a folder; nothing is fetched."""
    pytest.importorskip("hatchling", reason="it comes with the extra 'test'")
    folder = tmp_path_factory.mktemp("installed")
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", str(folder), str(EXAMPLE_PLUGIN)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named pip" in done.stderr:
        pytest.skip("there is no pip in this environment")
    assert done.returncode == 0, done.stderr
    return folder
