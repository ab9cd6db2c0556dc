"""The probes of the runtime below CuPy: their names and words here, their answers where there is a GPU."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from quiesce.allocators.recording.__main__ import PROBES, ask_probe
from quiesce.backends.cupy import probes
from quiesce.backends.cupy.probes import NAMES, main
from quiesce.backends.registry import Unusable, probe_backend
from quiesce.model.outcomes import ERROR_CODES


def test_every_word_that_a_number_stands_for_is_in_the_table() -> None:
    words = [word for _, word in probes._ERRORS.values() if word is not None]
    assert len(words) > 10
    assert not [word for word in words if ERROR_CODES.get(word) is None]


def test_the_names_are_printed_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert json.loads(capsys.readouterr().out) == list(NAMES)


def test_the_recorder_asks_this_module_for_every_backend_of_cupys() -> None:
    assert dict.fromkeys(("cupy", "cupy-rocm", "cupy-async"), probes.__name__) == PROBES


def test_a_probe_without_a_gpu_is_one_line() -> None:
    if not isinstance(probe_backend("cupy"), Unusable):
        pytest.skip("there is a GPU")
    command = [sys.executable, "-m", "quiesce.backends.cupy.probes", "sizes"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (2, "", 1)


@pytest.mark.parametrize("name", ["facts", "sizes", "handles/query-unrecorded-event"])
def test_a_probe_on_a_gpu_has_an_answer(name: str) -> None:
    if isinstance(probe_backend("cupy"), Unusable):
        pytest.skip("there is no GPU")
    asked = ask_probe("quiesce.backends.cupy.probes", name)
    assert asked.end == "completed"
    assert asked.answer
