"""Ends child processes of ``os.fork`` that come back from a checked test, and would run its rounds and other tests.

A child that ends itself, as ``os._exit`` and multiprocessing do, does not come that far.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator
from typing import Final

import pytest

from quiesce.leaks.system_calls import SystemCalls
from quiesce.pytest_plugin.keys import LEAK_TEST

FAILED: Final = 1
"""How a program ends that an exception ends."""


class ForkedChildren:
    """The hooks around what a test does in each phase, inside of those of other plugins."""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """End children that come back from fixtures."""
        __tracebackhide__ = True
        return (yield from _ending_children(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """End children that come back from the test."""
        __tracebackhide__ = True
        return (yield from _ending_children(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """End children that come back from the end of fixtures."""
        __tracebackhide__ = True
        return (yield from _ending_children(item))


def _ending_children(item: pytest.Item) -> Generator[None, object, object]:
    __tracebackhide__ = True
    process = SystemCalls.process_id()
    try:
        result = yield
    except BaseException as error:
        if LEAK_TEST in item.stash and SystemCalls.process_id() != process:
            _end(error)
        raise
    if LEAK_TEST in item.stash and SystemCalls.process_id() != process:
        _end(None)
    return result


def _end(error: BaseException | None) -> None:
    """End this process as a program that consists of the test alone would end."""
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        status = FAILED
        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
