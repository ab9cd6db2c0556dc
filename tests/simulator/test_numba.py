"""numba-cuda on the simulated driver: a leak check frees what it put off, so that only what is held grows."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.documentation.pages import ROOT
from tests.documentation.running import run_page
from tests.documentation.unrun import WITH_NUMBA, reason_not_to_run


def _is_installed() -> bool:
    try:
        importlib.metadata.version("numba-cuda")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _is_installed(), reason="it needs numba-cuda: tox -e numba-cuda")

TESTS: Final = """
import numpy as np
import pytest
from numba import cuda

KEPT = []

@pytest.mark.leak(gauges=["device"])
def test_an_array_is_held():
    KEPT.append(cuda.device_array(65536, np.float32))
    cuda.to_device(np.ones((4, 65536), np.float32))

@pytest.mark.leak(gauges=["device"])
def test_nothing_is_held():
    array = cuda.to_device(np.ones((4, 65536), np.float32))
    assert array.copy_to_host().sum() == 4 * 65536
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("numba")
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "--quiesce-report=out", "test_it.py"]
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:13", "--", *words]
    subprocess.run(command, cwd=folder, check=False)
    found = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))["results"]
    return {result["case"].partition("::")[2]: result for result in found}


def test_an_array_that_is_held_leaks_although_numba_puts_frees_off(results: dict[str, dict[str, Any]]) -> None:
    (finding,) = results["test_an_array_is_held"]["findings"]
    assert finding["observed"] == "device memory grows by 262,144 bytes (256 KiB) per round"


def test_what_numba_frees_late_is_no_leak_and_costs_no_rounds(results: dict[str, dict[str, Any]]) -> None:
    result = results["test_nothing_is_held"]
    assert (result["verdict"], result["rounds"] <= 6) == ("passed", True)


def test_the_list_of_devices_is_where_quiesce_looks_for_it() -> None:
    """Which is read without an interface: a release that renames it would leave frees pending in silence."""
    code = (
        "import sys; from numba import cuda; cuda.device_array(8); "
        "driver = sys.modules['numba.cuda.cudadrv.driver'].driver; "
        "(number,) = vars(driver)['devices']; "
        "context = driver.devices[number].primary_context; "
        "assert len(context.memory_manager.deallocations) == 1; "
        "from quiesce.leaks.stages.settling import finish_numbas_frees; finish_numbas_frees(); "
        "assert len(context.memory_manager.deallocations) == 0"
    )
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:13", "--"]
    done = subprocess.run([*command, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def reason(command: str) -> str | None:
    """Return why a command is not run: all that need numba-cuda are."""
    found = reason_not_to_run(command)
    return None if found == WITH_NUMBA else found


def test_the_commands_of_numbas_page_do_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    name = "docs/how-to/run_numba_without_a_gpu.md"
    run_page(name, (ROOT / name).read_text(encoding="utf-8"), tmp_path, reason_not_to_run=reason)
