"""The archives that NVIDIA's wheels carry, linked in every usual way: what is found by names is what symbols say.

QUIESCE_RUNTIME_ARCHIVES names a folder with a folder for each version of ``nvidia-cuda-runtime``, by its number, into
which the wheel was installed (``pip install --target``). Nothing of them is kept.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.function_finder import Finder
from tests.simulator.linked_runtimes import link, linkers, run
from tests.simulator.test_redirection import MAIN as PROGRAM
from tests.simulator.test_redirection import run as run_on_simulator

from quiesce.simulator.runtime.loads import Loaded

_FOLDER: Final = os.environ.get("QUIESCE_RUNTIME_ARCHIVES", "")
ARCHIVES: Final = sorted(Path(_FOLDER).glob("*/**/libcudart_static.a")) if _FOLDER else []
KINDS: Final = {"pie": ("-pie", "-fPIE"), "no-pie": ("-no-pie",), "shared": ("-shared", "-fPIC")}

pytestmark = pytest.mark.skipif(not ARCHIVES, reason="set QUIESCE_RUNTIME_ARCHIVES, or run tox -e runtime-archives")


def version_of(archive: Path) -> int:
    """Return the version of an archive as CUDA writes it, from the name of its folder."""
    numbers = re.match(r"(\d+)\.(\d+)", archive.relative_to(_FOLDER).parts[0])
    assert numbers
    return int(numbers[1]) * 1000 + int(numbers[2]) * 10


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Finder:
    return Finder(tmp_path_factory.mktemp("finder"))


def test_all_that_the_environment_names_are_there() -> None:
    assert len(ARCHIVES) == len(list(Path(_FOLDER).iterdir()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("linker", linkers())
@pytest.mark.parametrize("archive", ARCHIVES, ids=version_of)
def test_names_agree_with_symbols(tmp_path: Path, finder: Finder, archive: Path, linker: str, kind: str) -> None:
    made = link(tmp_path, "client", PROGRAM, archive, f"-fuse-ld={linker}", *KINDS[kind], "-lrt")
    by_symbols = finder.find("symbols", made)
    assert len(by_symbols.functions) > 400
    assert by_symbols.version == version_of(archive)
    assert finder.find("names", made) == by_symbols
    run(["strip", str(made)])
    assert finder.find("names", made) == by_symbols


@pytest.mark.parametrize("is_stripped", [False, True])
@pytest.mark.parametrize("archive", ARCHIVES, ids=version_of)
def test_a_program_runs_on_the_simulated_runtime(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str], is_stripped: bool
) -> None:
    program = link(tmp_path, "client", PROGRAM, archive, "-lrt")
    if is_stripped:
        run(["strip", str(program)])
    done = run_on_simulator(program, capfd=capfd, follows=1)
    assert (done.written, done.calls, done.versions) == ("0\n", 1, (version_of(archive) // 1000,))
    assert done.told(Loaded.REDIRECTED) == [("client", str(version_of(archive)))]
