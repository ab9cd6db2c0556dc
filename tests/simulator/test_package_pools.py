"""``quiesce exec --no-pools``: what a program's Python does when it starts, and when the program imports CuPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.simulator.runtime.packages import POOLS_OFF, without_pools

CUPY: Final = """
class cuda:
    allocators = ["the pool's", "the pinned pool's"]

    @classmethod
    def set_allocator(cls, allocator):
        cls.allocators[0] = allocator

    @classmethod
    def set_pinned_memory_allocator(cls, allocator="cudaHostAlloc"):
        cls.allocators[1] = allocator
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of packages that has a CuPy, which is first in the PYTHONPATH of the user."""
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text(CUPY, encoding="utf-8")
    (tmp_path / "cupy" / "part.py").write_text("", encoding="utf-8")
    return tmp_path


def _printed(packages: Path, program: str) -> str:
    environment = without_pools({**os.environ, "PYTHONPATH": str(packages)})
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.strip()


def test_cupy_has_no_pools_once_it_is_imported(packages: Path) -> None:
    assert _printed(packages, "import cupy.part; print(cupy.cuda.allocators)") == "[None, 'cudaHostAlloc']"


def test_an_allocator_that_the_program_sets_stays(packages: Path) -> None:
    program = "import cupy; cupy.cuda.set_allocator('own'); import cupy; print(cupy.cuda.allocators[0])"
    assert _printed(packages, program) == "own"


def test_a_reload_of_cupy_keeps_its_pools_off(packages: Path) -> None:
    program = "import cupy, importlib; importlib.reload(cupy); print(cupy.cuda.allocators[0])"
    assert _printed(packages, program) == "None"


@pytest.mark.parametrize(
    ("first", "missed"),
    [("import sys; sys.path.clear()", "No module named 'cupy'"), ("import cupy.gone", "No module named 'cupy.gone'")],
)
def test_what_is_not_there_is_missed_as_before(first: str, missed: str, packages: Path) -> None:
    program = f"\ntry:\n    {first}; import cupy\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert _printed(packages, program) == missed


def test_a_sitecustomize_of_the_users_own_still_runs(packages: Path) -> None:
    (packages / "sitecustomize.py").write_text("mine = 7\n", encoding="utf-8")
    program = "import cupy, sitecustomize; print(sitecustomize.mine, cupy.cuda.allocators[0])"
    assert _printed(packages, program) == "7 None"


def test_nothing_else_is_left_in_the_users_python(packages: Path) -> None:
    program = "import sys; print('sitecustomize' in sys.modules, *(each for each in sys.path if 'interpreter' in each))"
    assert _printed(packages, program) == "False"


def test_children_of_the_program_have_no_pools_either(packages: Path) -> None:
    child = "import cupy; print(cupy.cuda.allocators[0])"
    assert _printed(packages, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])") == "None"


def test_the_variables_of_packages_take_the_place_of_the_users_own() -> None:
    environment = without_pools({"NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT": "10", "OTHER": "1"})
    assert {name: environment[name] for name in POOLS_OFF} == POOLS_OFF
    assert environment["OTHER"] == "1"
    assert environment["PYTHONPATH"].endswith("interpreter_start")
