"""Fixtures that hand backends to ordinary tests; a plugin of its own, in every run, so it imports when it must."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

import pytest

from quiesce.pytest_plugin.keys import (
    BACKEND_PROPERTY,
    CALL_FAILED,
    CONTEXT_METER,
    DEVICE_ATTRIBUTE,
    DEVICE_RESULT,
    LEAK_FIXTURE,
    LEAK_MARKER,
    LEAK_TEST,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from hypothesis.strategies import SearchStrategy

    from quiesce.allocators.generation import GeneratedSequence
    from quiesce.model.backend import Backend
    from quiesce.pytest_plugin.leak_tests import LeakTest
    from quiesce.pytest_plugin.simulated_device import SimulatedDevice

    class SequenceStrategy(Protocol):
        """What the fixture ``allocation_sequences`` gives."""

        def __call__(self, *, hostile: bool = False, records_max: int = 200) -> SearchStrategy[GeneratedSequence]:
            """Return a strategy for valid or for hostile sequences."""


class ChosenName(str):
    """The parameter of the ``backend`` fixture; a type of its own tells it from a user's parameter of that name."""

    __slots__ = ()


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> Backend:
    """Give each chosen backend in turn, ready to be opened."""
    from quiesce.pytest_plugin.selection import chosen

    return _watched(request, chosen(request.config).backends[request.param])


@pytest.fixture(scope="session")
def reference_backend(request: pytest.FixtureRequest) -> Backend:
    """Give the reference, ready to be opened."""
    return _watched(request, _backend_or_skip("reference"))


@pytest.fixture(scope="session")
def host_backend(request: pytest.FixtureRequest) -> Backend:
    """Give the host's own heap, ready to be opened; the test is skipped where it cannot work."""
    return _watched(request, _backend_or_skip("host"))


@pytest.fixture(scope="session")
def opencl_backend(request: pytest.FixtureRequest) -> Backend:
    """Give OpenCL, ready to be opened; the test is skipped where it cannot work."""
    return _watched(request, _backend_or_skip("opencl"))


@pytest.fixture(scope="session")
def cupy_backend(request: pytest.FixtureRequest) -> Backend:
    """Give CuPy on the first visible GPU, ready to be opened; the test is skipped where it cannot work."""
    return _watched(request, _backend_or_skip("cupy"))


@pytest.fixture(scope="session")
def allocation_sequences(backend: Backend) -> SequenceStrategy:
    """Give the Hypothesis strategy for sequences that the chosen backend can be asked for; it is called for one."""
    try:
        from quiesce.allocators.generation.strategies import allocation_sequences as strategy
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        why = "the fixture 'allocation_sequences' needs Hypothesis: pip install 'quiesce[hypothesis]'"
        pytest.fail(why, pytrace=False)
    return functools.partial(strategy, backend.describe())


def _backend_or_skip(name: str) -> Backend:
    from quiesce.backends.registry import Unusable, probe_backend

    probed = probe_backend(name)
    if isinstance(probed, Unusable):
        pytest.skip(f"backend '{name}' cannot work here: {probed.reason}; {probed.remedy}")
    return probed.backend


def _watched(request: pytest.FixtureRequest, given: Backend) -> Backend:
    """Return a backend whose contexts are watched, in a run that has a test to check for leaks."""
    meter = request.config.stash.get(CONTEXT_METER, None)
    return given if meter is None else meter.watch(given)


@pytest.fixture
def simulated_device(request: pytest.FixtureRequest) -> Iterator[SimulatedDevice]:
    """Give a simulated GPU, and fail where the test broke a rule of memory or left something behind on it."""
    from quiesce.pytest_plugin.simulated_device import simulated_device as give
    from quiesce.pytest_plugin.simulated_device import verdict

    with give(request) as device:
        yield device
        verdict(request.node, device, failed=request.node.stash.get(CALL_FAILED, False))


@pytest.fixture
def leak_check(request: pytest.FixtureRequest) -> LeakTest:
    """Have the test checked for leaks, and give it ``settle()`` and ``gauge(name, read)``."""
    test: LeakTest | None = request.node.stash.get(LEAK_TEST, None)
    if test is not None:
        return test
    if LEAK_FIXTURE not in getattr(request.node, "fixturenames", ()):
        pytest.fail(
            f"'{LEAK_FIXTURE}' was requested while the test runs, which is too late for a leak check; "
            f"make it an argument of the test or of a fixture, or mark the test with @pytest.mark.{LEAK_MARKER}",
            pytrace=False,
        )
    from quiesce.leaks import Plan
    from quiesce.pytest_plugin.leak_tests import LeakTest

    return LeakTest(Plan())  # the checks are switched off


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test over the chosen backends, if its ``backend`` is the fixture of this module.

    A project's own fixture or parameter of that name is left alone; pytest tells them apart only in
    ``_arg2fixturedefs``, where a name that is parametrised directly is missing.
    """
    for definition in reversed(metafunc._arg2fixturedefs.get("backend", ())):
        if definition.func.__module__ == __name__:
            from quiesce.pytest_plugin.selection import chosen

            names = [ChosenName(name) for name in chosen(metafunc.config).backends]
            metafunc.parametrize("backend", names, indirect=True, scope="session")
            return
        if "backend" not in definition.argnames:  # an override that does not build on the fixture it hides
            return


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test failed, for fixtures that end after it; put what came of its device on the report."""
    if call.when == "call" and call.excinfo is not None:
        item.stash[CALL_FAILED] = True
    report = yield
    if DEVICE_RESULT in item.stash:
        setattr(report, DEVICE_ATTRIBUTE, item.stash[DEVICE_RESULT])
        del item.stash[DEVICE_RESULT]
    return report


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note on an ordinary test which backend it runs on."""
    callspec = getattr(item, "callspec", None)
    name = None if callspec is None else callspec.params.get("backend")
    if isinstance(name, ChosenName) and (BACKEND_PROPERTY, name) not in item.user_properties:
        item.user_properties.append((BACKEND_PROPERTY, str(name)))
