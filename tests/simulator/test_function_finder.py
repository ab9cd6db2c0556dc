"""The functions of a linked runtime are found by symbols and by names, and both say the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.simulator.function_finder import Finder
from tests.simulator.linked_runtimes import WITHOUT_NAMES, link, linkers, make_archive, run

from quiesce.simulator.runtime.build import AUDIT_SOURCES, find_compiler, require_platform

MAIN = "int main(void) { void *made; return cudaMalloc(&made, 1) + cudaCheckErrors(); }"
LIBRARY = MAIN.replace("main", "client")
SHARED = ("-shared", "-fPIC")


@pytest.fixture(scope="session")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Finder:
    require_platform()
    return Finder(tmp_path_factory.mktemp("finder"))


@pytest.mark.parametrize("how", ["-DTHROUGH_SLOTS", "-DDIRECTLY"])
@pytest.mark.parametrize("linker", linkers())
@pytest.mark.parametrize("kind", [("-pie", "-fPIE"), ("-no-pie",), SHARED, (*SHARED, "-Wl,-z,pack-relative-relocs")])
def test_stripped_or_not_the_same_functions_are_found(
    tmp_path: Path, finder: Finder, linker: str, kind: tuple[str, ...], how: str
) -> None:
    if linker == "gold" and len(kind) > len(SHARED):
        pytest.skip("gold has no relocations of that form")
    archive = make_archive(tmp_path, flags=[how])
    made = link(tmp_path, "client", LIBRARY if "-shared" in kind else MAIN, archive, f"-fuse-ld={linker}", *kind)
    by_symbols, by_names = finder.find("symbols", made), finder.find("names", made)
    assert by_symbols == by_names
    assert len(by_names.functions) > 300
    assert set(WITHOUT_NAMES) < set(by_names.functions)
    assert "cudaCheckErrors" not in by_names.functions, "the client's own"
    assert by_names.version == 12090
    run(["strip", str(made)])
    assert finder.find("names", made) == by_names
    assert finder.find("symbols", made).functions == {}


def test_names_outside_of_the_runtime_are_the_clients(tmp_path: Path, finder: Finder) -> None:
    """Messages of a client contain such names, and its functions refer to them."""
    own = 'const char *own(int which) { return which ? "cudaMalloc" : "cudaLaunchKernel"; }'
    archive = make_archive(tmp_path)
    made = link(tmp_path, "client", own + MAIN.replace("return", "return *own(made != 0) +"), archive)
    assert finder.find("names", made) == finder.find("symbols", made)


@pytest.mark.parametrize("name", ["__cudaLaunchKernel", "__cudaLaunchKernel_ptsz"])
def test_without_the_run_of_functions_that_have_no_name_there_is_no_runtime(
    tmp_path: Path, finder: Finder, name: str
) -> None:
    archive = make_archive(tmp_path, without=[name])
    made = link(tmp_path, "client", MAIN, archive)
    assert finder.find("names", made).functions == {}


def test_a_name_that_two_functions_hand_out_is_refused(tmp_path: Path, finder: Finder) -> None:
    archive = make_archive(tmp_path, twice="cudaMalloc")
    found = finder.find("names", link(tmp_path, "client", MAIN, archive))
    assert found.wrong == "one of its functions goes by two names, or two by one"


def test_a_damaged_file_has_no_functions(tmp_path: Path, finder: Finder) -> None:
    """Wherever it ends, and whatever stands in its headers and tables: nothing is found, and nothing crashes."""
    made = link(tmp_path, "client", LIBRARY, make_archive(tmp_path), *SHARED)
    content = made.read_bytes()
    sections = int.from_bytes(content[40:48], "little")
    for place in (sections - 8, sections, *range(sections + 24, len(content), 64)):
        changed = bytearray(content)
        changed[place : place + 8] = b"\xff" * 8
        made.write_bytes(changed)
        finder.find("symbols", made)
    for size in (len(content) - 1, sections + 10, sections):
        made.write_bytes(content[:size])
        assert finder.find("symbols", made).functions == {}


def test_the_order_of_functions_without_a_name_is_that_of_the_archives() -> None:
    text = (AUDIT_SOURCES / "unnamed.c").read_text(encoding="utf-8")
    order = re.findall(r'"(\w+)"', text.partition("since_12_2[] = {")[2].partition("};")[0])
    assert tuple(order) == WITHOUT_NAMES


def test_tools_are_there() -> None:
    assert find_compiler()
    assert shutil.which("strip")
