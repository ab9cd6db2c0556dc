"""What other plugins keep of each run of a test, or hold against a test that runs more than once."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any, Final

import pytest

SLOWER: Final = 10
"""How much longer than a test a round may take."""

SETTINGS: Final = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test, and its plugin for pytest changes them."""


@contextlib.contextmanager
def kept_for_the_report(item: pytest.Item) -> Iterator[None]:
    """Forget what the first run left on the item: its reports have it already."""
    user_properties = list(item.user_properties)
    try:
        yield
    finally:
        item._report_sections.clear()
        item.user_properties[:] = user_properties


@contextlib.contextmanager
def unreported(item: pytest.Item, *, briefly: bool) -> Iterator[None]:
    """Let a test run without any trace of it in reports: those of pytest, of JUnit, and of pytest-benchmark.

    ``briefly`` has an error's text made without its traceback, which takes far longer than most tests.
    """
    style = item.config.option.tbstyle
    if briefly:
        item.config.option.tbstyle = "value"
    user_properties = list(item.user_properties)
    global_properties = _global_properties(item.config)
    kept = len(global_properties)
    subtests = failed_subtests(item)
    with warnings.catch_warnings(record=True), _no_log(item.config), _no_benchmark(item.config):
        try:
            yield
        finally:
            item.config.option.tbstyle = style
            item._report_sections.clear()
            item.user_properties[:] = user_properties
            del global_properties[kept:]
            _forget_subtests(item, subtests)
            _forget_imports(item.config)


def _global_properties(config: pytest.Config) -> list[Any]:
    """Return the properties of the whole run that JUnit holds; Hypothesis adds its statistics to them."""
    from _pytest.junitxml import xml_key

    xml = config.stash.get(xml_key, None)
    return [] if xml is None else xml.global_properties


@contextlib.contextmanager
def _no_log(config: pytest.Config) -> Iterator[None]:
    """Keep what reports in the middle of a test, as subtests do, from reaching anybody."""
    listeners = config.hook.pytest_runtest_logreport._hookimpls  # pluggy has no other way to silence a hook
    kept = listeners[:]
    listeners.clear()
    try:
        yield
    finally:
        listeners[:] = kept


@contextlib.contextmanager
def _no_benchmark(config: pytest.Config) -> Iterator[None]:
    """Have pytest-benchmark run what it measures once, and keep no figures."""
    session = getattr(config, "_benchmarksession", None)
    if session is None:
        yield
        return
    disabled, session.disabled = session.disabled, True
    try:
        yield
    finally:
        session.disabled = disabled


def _subtests(config: pytest.Config) -> dict[Any, int]:
    """Return how many subtests failed, by test; pytest counts them since version 9."""
    try:
        from _pytest.subtests import failed_subtests_key
    except ImportError:
        return {}
    return config.stash.get(failed_subtests_key, {})


def failed_subtests(item: pytest.Item) -> int:
    """Return how many subtests of a test failed so far, each counted in each run of it."""
    return _subtests(item.config).get(_key(item), 0)


def is_expected_to_fail(item: pytest.Item) -> bool:
    """Whether a marker ``xfail`` counts for a test; pytest keeps there what it made of the markers."""
    from _pytest.skipping import xfailed_key

    return item.stash.get(xfailed_key, None) is not None and not item.config.option.runxfail


def _forget_subtests(item: pytest.Item, before: int) -> None:
    """Forget the subtests that failed since there were so many."""
    if counts := _subtests(item.config):
        counts[_key(item)] = before


def _key(item: pytest.Item) -> Any:
    return getattr(item, "id", item.nodeid)


def _forget_imports(config: pytest.Config) -> None:
    """Empty what pytest remembers of each name that was ever imported: whether its assertions are rewritten."""
    from _pytest.assertion.rewrite import assertstate_key

    state = config.stash.get(assertstate_key, None)
    if state is not None and state.hook is not None:
        state.hook._marked_for_rewrite_cache.clear()


def forget_finished_fixtures(request: Any) -> None:
    """Let wider fixtures forget the finalizers of narrower ones that are finished; to call them would do nothing."""
    for wide in request._fixture_defs.values():
        kept = [each for each in wide._finalizers if not _has_finished(each)]
        if len(kept) < len(wide._finalizers):
            wide._finalizers[:] = kept


def _has_finished(finalizer: object) -> bool:
    fixture = getattr(getattr(finalizer, "func", None), "__self__", None)
    return isinstance(fixture, pytest.FixtureDef) and fixture.cached_result is None


def renew_table_of_nodes(session: Any) -> None:
    """Have the dictionary of what is set up begin each round with a table of one size.

    An entry of it comes and goes in each round. Its table would have another size after some of them, and the C heap
    would hold more or less.
    """
    stack = session._setupstate.stack
    entries = tuple(stack.items())
    stack.clear()
    stack.update(entries)


@contextlib.contextmanager
def repeatable(item: pytest.Item) -> Iterator[None]:
    """Have Hypothesis draw the same examples in each round, and neither read nor write its database."""
    test = getattr(item, "obj", None) if "hypothesis" in sys.modules else None
    test = getattr(test, "__func__", test)
    settings = getattr(test, SETTINGS, None)
    if settings is None or not getattr(test, "is_hypothesis_test", False):
        yield
        return
    hypothesis = sys.modules["hypothesis"]
    setattr(test, SETTINGS, hypothesis.settings(parent=settings, derandomize=True, database=None, deadline=None))
    try:
        yield
    finally:
        setattr(test, SETTINGS, settings)


REPEATED: Final[pytest.StashKey[bool]] = pytest.StashKey()
"""In ``item.stash`` while a round runs: whether it is another one than the first."""


@contextlib.contextmanager
def timed(item: pytest.Item, *, is_repeated: bool) -> Iterator[None]:
    """Have the time of pytest-timeout count for one round: it stands still while quiesce reads and judges."""
    item.stash[REPEATED] = is_repeated
    start_timeout(item)
    try:
        yield
    finally:
        stop_timeout(item)
        del item.stash[REPEATED]


def start_timeout(item: pytest.Item) -> None:
    """Let the time of pytest-timeout begin anew, if it counts for all phases of a test."""
    settings = _timeout_settings(item)
    if settings is not None and not settings.func_only:
        stop_timeout(item)
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)


def stop_timeout(item: pytest.Item) -> None:
    """Let the time of pytest-timeout stand still; idempotent."""
    if _timeout_settings(item) is not None:
        item.config.hook.pytest_timeout_cancel_timer(item=item)


def _timeout_settings(item: pytest.Item) -> Any:
    """Return what pytest-timeout does with a test; None where it does nothing."""
    plugin: Any = sys.modules.get("pytest_timeout")
    if plugin is None or not item.config.pluginmanager.has_plugin("timeout"):
        return None
    settings = plugin._get_item_settings(item)
    return settings if settings.timeout else None


class RoundTimeouts:
    """Has pytest-timeout take one more round for what it is: it may take ten times as long, for traces slow it down.

    A timer that is a thread is left out of repeated rounds: it would count as one of the test, and it ends the whole
    run rather than the test.
    """

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool | None:
        """Set a longer timer in a repeated round, or none."""
        if not item.stash.get(REPEATED, False):
            return None
        if settings.method == "signal":
            longer = settings._replace(timeout=settings.timeout * SLOWER)
            item.stash[REPEATED] = False  # so that this hook lets the call below through
            try:
                item.config.hook.pytest_timeout_set_timer(item=item, settings=longer)
            finally:
                item.stash[REPEATED] = True
        return True


def allow_repetition(item: pytest.Item) -> None:
    """Let a method that Hypothesis drives run on another instance each time, as it lets parametrized tests.

    Its health check ``differing_executors`` fails a method that ran on two. Hypothesis has no public way to change the
    settings of a test that is decorated.
    """
    hypothesis = sys.modules.get("hypothesis")
    # Through the class: the test's own `obj` would make an instance, which belongs to a round.
    test = getattr(getattr(item, "cls", None), getattr(item, "originalname", None) or "", None)
    if hypothesis is None or not getattr(test, "is_hypothesis_test", False):
        return
    settings = getattr(test, SETTINGS, hypothesis.settings.default)
    suppressed = {*settings.suppress_health_check, hypothesis.HealthCheck.differing_executors}
    setattr(test, SETTINGS, hypothesis.settings(parent=settings, suppress_health_check=suppressed))
