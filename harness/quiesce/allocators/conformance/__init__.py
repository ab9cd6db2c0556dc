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

from quiesce.allocators.conformance.result import Conformance, Gap, Standing
from quiesce.allocators.conformance.run import OPERATIONS_DEFAULT, run_conformance

__all__ = ["Conformance", "Gap", "OPERATIONS_DEFAULT", "Standing", "run_conformance"]
