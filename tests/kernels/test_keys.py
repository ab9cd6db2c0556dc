"""The name under which a compiled kernel is kept."""

from __future__ import annotations

import tests.kernels.executor  # noqa: F401 - it skips these tests where there is no compiler

from quiesce.simulator.kernels.object_cache import kernel_key
from quiesce.simulator.kernels.ptx.module import Module

TEXT = """.version 8.0
.global .u32 counter = 1;
.func twice() { ret; }
.func other() { ret; }
.func middle() { call twice; ret; }
.entry first() { call middle; ret; }
.entry second() { ret; }
"""


def keys(text: str) -> tuple[str, str]:
    module = Module(text)
    return kernel_key(module, "first"), kernel_key(module, "second")


def test_it_is_the_same_for_the_same_text() -> None:
    assert keys(TEXT) == keys(TEXT)
    assert len(set(keys(TEXT))) == 2


def test_it_depends_on_what_the_kernel_calls_and_on_nothing_else() -> None:
    first, second = keys(TEXT)
    assert keys(TEXT.replace(".func twice() { ret", ".func twice() { trap")) != (first, second)
    assert keys(TEXT.replace(".func twice() { ret", ".func twice() { trap"))[1] == second
    assert keys(TEXT.replace(".func other() { ret", ".func other() { trap")) == (first, second)


def test_it_depends_on_variables() -> None:
    assert set(keys(TEXT.replace(".u32", ".u64"))).isdisjoint(keys(TEXT))
