"""What objects refer to is asked for without harm to the interpreter."""

from __future__ import annotations

import asyncio
import gc
import sys
import types

import pytest

from quiesce.leaks.meters.contents import referents


class Lazy(types.ModuleType):
    """A module of a class of its own, as packages that import late have."""


def test_each_object_is_asked_and_a_module_says_its_names() -> None:
    held, module = object(), Lazy("lazy")
    assert [*map(id, referents([[held], module, (held, held)]))] == [*map(id, [held, held, held, vars(module)])]
    assert referents([]) == []


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="another interpreter has no such list")
def test_iterators_that_wait_to_be_used_again_are_not_touched() -> None:
    asyncio.run(asyncio.sleep(0.001))  # waits for a future: its iterator goes to a list of the module
    module = pytest.importorskip("_asyncio")
    assert [*map(id, referents([module]))] == [id(vars(module))]
    gc.collect()
