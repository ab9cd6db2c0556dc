"""AMD's ``hip-python``, which opens the runtime when it is first called, on the simulated one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from typing import Final

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hip") is None, reason="it needs hip-python: tox -e simulator-sanitizers"
)

PREPARE: Final = """
import ctypes
from hip import hip
def call(answer):
    status, *rest = answer
    assert status == hip.hipError_t.hipSuccess, status
    return rest[0] if rest else None
"""
WORKS: Final = """
assert call(hip.hipGetDeviceCount()) == 1
free_bytes, total_bytes = hip.hipMemGetInfo()[1:]
block, pinned = call(hip.hipMalloc(4096)), call(hip.hipHostMalloc(4096, 0))
stream, event = call(hip.hipStreamCreate()), call(hip.hipEventCreate())
assert hip.hipMemGetInfo()[1] < free_bytes <= total_bytes
call(hip.hipMemsetAsync(block, 7, 4096, stream))
call(hip.hipMemcpyAsync(pinned, block, 4096, hip.hipMemcpyKind.hipMemcpyDeviceToHost, stream))
call(hip.hipEventRecord(event, stream))
call(hip.hipEventSynchronize(event))
assert ctypes.string_at(int(pinned), 4096) == bytes([7]) * 4096
call(hip.hipEventDestroy(event))
call(hip.hipStreamDestroy(stream))
call(hip.hipHostFree(pinned))
call(hip.hipFree(block))
"""
TWICE: Final = """
block = call(hip.hipMalloc(4096))
call(hip.hipFree(block))
assert hip.hipFree(block)[0] == hip.hipError_t.hipErrorInvalidValue
"""
DEAD: Final = """
stream, event = call(hip.hipStreamCreate()), call(hip.hipEventCreate())
call(hip.hipEventRecord(event, stream))
call(hip.hipStreamDestroy(stream))
hip.hipEventSynchronize(event)
call(hip.hipEventDestroy(event))
"""


@pytest.mark.parametrize(
    ("text", "rules"),
    [(WORKS, set()), (TWICE, {"memory_is_freed_once"}), (DEAD, {"waits_name_live_streams"})],
    ids=["works", "twice", "dead"],
)
def test_a_program(text: str, rules: set[str]) -> None:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "hip:6", "--schedule", "lazy", "--"]
    done = subprocess.run([*command, sys.executable, "-c", PREPARE + text], capture_output=True, text=True, check=False)
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == rules, done.stdout + done.stderr
    assert done.returncode == bool(rules), done.stderr
