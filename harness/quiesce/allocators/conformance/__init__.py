"""Conformance: everything that quiesce can say about a backend, without pytest and in one call.

    from quiesce import run_conformance

    conformance = run_conformance(MyBackend())
    print(conformance.text())
    assert conformance.conforms

The oracle judges the allocator and believes what the backend says; here the backend is judged as well. ``checks``
look at what it says of itself and at its contexts, ``monitor`` at every answer while other things run, here or in
``workers``; ``obligations`` says which answers its claims oblige it to. ``run`` puts them next to the corpus, the sweep
and the generated sequences; ``result`` is what comes of it, with what nothing exercised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.allocators.conformance.result import Conformance as Conformance
    from quiesce.allocators.conformance.result import Gap as Gap
    from quiesce.allocators.conformance.result import Standing as Standing
    from quiesce.allocators.conformance.run import OPERATIONS_DEFAULT as OPERATIONS_DEFAULT
    from quiesce.allocators.conformance.run import run_conformance as run_conformance
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "result": "Conformance Gap Standing",
            "run": "OPERATIONS_DEFAULT run_conformance",
        },
    )
