"""A process reads the ledger of its own machine: late, in place, and not that of the process it was forked from."""

from __future__ import annotations

import os
import subprocess
import sys

from quiesce.simulator.runtime.ledger import Thing
from quiesce.simulator.runtime.own_machine import OwnMachine

from .conftest import Start

LATE = """
import ctypes, sys
from quiesce.simulator.runtime.own_machine import OwnMachine
own = OwnMachine()
assert own.ledger() is None and own.stacks() is None and own.heap_bytes() == 0
runtime = ctypes.CDLL(sys.argv[1])
assert own.ledger() is None
runtime.cudaFree(None)
assert own.ledger().made == 0
runtime.cudaStreamCreate(ctypes.byref(ctypes.c_void_p()))
assert own.ledger().made == 1 and own.heap_bytes() > 0
"""


def test_a_runtime_that_is_loaded_later_is_found_then(library: str) -> None:
    environment = {**os.environ, "QUIESCE_SIMULATOR": "flavour=cuda;version=12"}
    subprocess.run([sys.executable, "-c", LATE, library], env=environment, check=True)


def test_a_child_has_no_ledger(start: Start) -> None:
    start()
    own = OwnMachine()
    assert own.ledger() is not None
    child = os.fork()
    if not child:
        os._exit(0 if own.ledger() is None and OwnMachine().ledger() is None and own.stacks() is None else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_what_was_made_since_has_no_addresses(start: Start) -> None:
    client = start()
    client.make("Malloc", 100)
    ledger = client.machine.ledger
    before = ledger.made
    client.make("StreamCreate")
    client.make("Malloc", 200)
    assert [(thing.thing, thing.size_bytes, thing.address) for thing in ledger.made_since(before)] == [
        (Thing.STREAM, 0, 0),
        (Thing.DEVICE, 200, 0),
    ]
    client.ok("Free", next(thing.address for thing in ledger.live() if thing.size_bytes == 200))
    assert [thing.thing for thing in ledger.made_since(before)] == [Thing.STREAM]
