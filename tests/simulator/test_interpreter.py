"""What the runtime does inside a Python program leaves nothing behind there."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

pytestmark = pytest.mark.usefixtures("library")

LOOKS: Final = """
import _ctypes, builtins, ctypes, json, os, signal, sys
def state():
    return {
        "modules": sorted(sys.modules),
        "names": sorted(globals()),
        "builtins": sorted(vars(builtins)),
        "handlers": [str(signal.getsignal(number)) for number in signal.valid_signals()],
        "environment": dict(os.environ),
        "files": sorted(os.listdir()),
        "arguments": sys.argv,
        "path": sys.path,
    }
runtime, made = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
before = after = _ = None
before = state()
runtime.cudaMalloc(ctypes.byref(made), ctypes.c_size_t(100))
for _ in range(1000): pass  # the interpreter does what it was asked to do between two instructions
runtime.cudaFree(made)
after = state()
assert "_ctypes" in globals()
with open(OUTPUT, "w") as file: json.dump([before, after], file)
"""


def test_a_program_is_left_as_it_was(tmp_path: Path) -> None:
    script, output, folder = tmp_path / "script.py", tmp_path / "states.json", tmp_path / "folder"
    script.write_text(LOOKS.replace("OUTPUT", repr(str(output))), encoding="utf-8")
    folder.mkdir()
    words = [sys.executable, "-c", f"import os, runpy; os.chdir({str(folder)!r}); runpy.run_path({str(script)!r})"]
    with run_program(words, MachineSettings(parse_flavour("cuda:12")), os.environ) as ended:
        assert ended.status == 0
    before, after = json.loads(output.read_text(encoding="utf-8"))
    assert before["names"]
    assert before == after


def test_a_module_that_was_not_there_is_not_there_afterwards(tmp_path: Path) -> None:
    """An interpreter without ``site`` has not imported ``atexit``, through which the runtime learns of the exit."""
    text = (
        "import _ctypes, sys; before = set(sys.modules); library = _ctypes.dlopen('libcudart.so.12', 2);"
        "call = _ctypes.dlsym(library, 'cudaDeviceSynchronize'); _ctypes.call_function(call, ());"
        "[None for _ in range(1000)]; assert 'atexit' not in before; assert set(sys.modules) == before"
    )
    with run_program([sys.executable, "-S", "-c", text], MachineSettings(parse_flavour("cuda:12")), os.environ) as end:
        assert end.status == 0
