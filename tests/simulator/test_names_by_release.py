"""Which functions the simulated driver and HIP's runtime have: those of the release that is simulated.

``driver_names_13_0.txt`` is what a driver on an H200 exports and answers, ``driver_names_asked.txt`` what clients of
many releases look for.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Final

import pytest

from quiesce.model.outcomes import Flavour
from quiesce.simulator.runtime.elf_reading import read_defined_names
from quiesce.simulator.runtime.flavours import KNOWN, Simulated, parse_flavour
from quiesce.simulator.runtime.stubs import Simulator, write_stubs
from quiesce.simulator.runtime.vendor_libraries import functions_of, releases_of_functions

from .conftest import Run, Start

DATA: Final = Path(__file__).parent
SURFACES: Final = DATA.parent.parent / "harness" / "quiesce" / "simulator" / "native" / "surfaces"
DRIVER: Final = "libcuda.so.1"
HIP: Final = "libamdhip64.so"
CUDA: Final = [f"cuda:{version}" for version in (11, 12, 13)]
ROCM: Final = [f"hip:{version}" for version in (5, 6, 7)]
NOWHERE: Final = frozenset({"cuEventCreateFromEGLSync", "cuDevResourceDestroyDesc"})
"""Names that clients look for in vain on every machine of this kind: Tegra's, and one of a later driver."""


def sections(name: str) -> dict[str, list[str]]:
    """Return the words of each section of a file of names."""
    text = re.sub(r"^#.*$", "", (DATA / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    parts = re.split(r"^\[(.*)\]$", text, flags=re.MULTILINE)
    return {"": parts[0].splitlines(), **dict(zip(parts[1::2], map(str.splitlines, parts[2::2]), strict=True))}


def asked() -> dict[str, set[str]]:
    found = sections("driver_names_asked.txt")
    clients = dict(line.split(" = ") for line in found.pop("") if line)
    return {
        client: {name for letters, lines in found.items() if letter in letters for name in " ".join(lines).split()}
        for letter, client in clients.items()
    }


ASKED: Final = asked()


def front_of(library: str, simulated: Simulated, soname: str, folder: Path) -> frozenset[str]:
    """Return what a client finds in the library that stands for a driver or runtime, and in what that brings along."""
    write_stubs([], folder, Simulator(Path(library), simulated.libraries, releases=simulated.releases))
    return read_defined_names(folder / soname) | read_defined_names(Path(library))


@pytest.mark.parametrize("flavour", CUDA)
def test_the_driver_has_the_functions_of_its_release(library: str, flavour: str, tmp_path: Path) -> None:
    simulated = parse_flavour(flavour)
    found = {name for name in front_of(library, simulated, DRIVER, tmp_path) if re.match("cu[A-Z]", name)}
    assert found == functions_of(DRIVER, simulated.release)
    assert ("cuCtxGetDevice_v2" in found) is (flavour == "cuda:13")
    assert {"cuProfilerInitialize", "cuGraphicsGLRegisterBuffer", "cuGLInit"} <= found


@pytest.mark.parametrize("flavour", ROCM)
def test_hips_runtime_has_the_functions_of_its_release(library: str, flavour: str, tmp_path: Path) -> None:
    simulated, table = parse_flavour(flavour), releases_of_functions(HIP)
    found = front_of(library, simulated, simulated.runtime, tmp_path) & table.keys()
    assert found == functions_of(HIP, simulated.release)
    assert ("hipGetDevicePropertiesR0600" in found) is (flavour != "hip:5")
    assert ("hipStreamGetId" in found) is (flavour == "hip:7")


@pytest.mark.parametrize("client", ASKED)
@pytest.mark.parametrize("flavour", CUDA)
def test_clients_find_what_the_driver_of_that_release_has(flavour: str, client: str) -> None:
    """What they look for in vain is of a later release: each name is in the table, or nowhere on such machines."""
    there = functions_of(DRIVER, parse_flavour(flavour).release)
    assert ASKED[client] - functions_of(DRIVER) <= NOWHERE
    newest = {"11080": "cuda:11", "12090": "cuda:12", "13000": "cuda:13"}.get(client.rpartition(" for ")[2])
    if newest is not None and CUDA.index(newest) <= CUDA.index(flavour):
        assert ASKED[client] <= there, "cudarc looks all of them up at start, and ends where one is missing"
    if client.startswith(("numba", "cupy", "drjit 0", "drjit 1.0", "drjit 1.2")):
        assert ASKED[client] <= there


def test_the_table_is_what_a_device_exports() -> None:
    exported = set(" ".join(sections("driver_names_13_0.txt")["exports"]).split())
    ours = functions_of(DRIVER, 13000)
    assert exported - ours == set()
    per_thread = {"cuGetProcAddress_ptsz", "cuGetProcAddress_v2_ptsz"}
    assert ours - exported == per_thread, "the header's macros name them, and that driver has them not"


def answers() -> dict[str, dict[int, str | None]]:
    """Return what a device answered: by name, the form from each release on; None where there is none."""
    found = sections("driver_names_13_0.txt")
    made: dict[str, dict[int, str | None]] = {
        name: {6050: name} for name in " ".join(found["answered by themselves"]).split()
    }
    for line in filter(None, found["answers"]):
        name, *words = line.split()
        pairs = (word.split(":") for word in words if ":" in word)
        made[name] = {int(release): {"-": None, "?": None, "=": name}.get(form, name + form) for release, form in pairs}
    return made


UNDOCUMENTED: Final = frozenset({"cuEGLApiInit", "cuMemGetAttribute"})
"""Exported by that driver, which does not answer for them."""


def test_names_are_answered_as_on_a_device(start: Start) -> None:
    library, found, result = start("cuda:13").machine.library, ctypes.c_void_p(), ctypes.c_int(-1)
    table = releases_of_functions(DRIVER)
    known: dict[str, int | None] = {}
    for name, forms in answers().items():
        if name in UNDOCUMENTED:
            continue
        for release in (6050, 10000, 11000, 11080, 12000, 12050, 12090, 13000):
            wanted = forms[max(each for each in forms if each <= release)]
            arguments = (ctypes.byref(found), release, ctypes.c_uint64(1), ctypes.byref(result))
            assert library.cuGetProcAddress_v2(name.encode(), *arguments) == 0
            assert (found.value is None, result.value) == ((True, 2) if wanted is None else (False, 0)), (name, release)
            if wanted is not None:
                assert table[wanted] <= release
                known[wanted] = known.get(wanted, found.value)
                assert known[wanted] == found.value, "a form is one function, whoever asks"
    assert len(known) > 500
    assert len(set(known.values())) == len(known), "different forms are different functions"


def test_a_client_of_a_later_release_than_the_drivers_is_refused(start: Start) -> None:
    library, found = start("cuda:12").machine.library, ctypes.c_void_p(77)
    assert library.cuGetProcAddress(b"cuInit", ctypes.byref(found), 13000, ctypes.c_uint64(0)) == 1
    assert found.value == 77
    assert library.cuGetProcAddress(b"cuInit", ctypes.byref(found), 12090, ctypes.c_uint64(0)) == 0


@pytest.mark.parametrize(
    ("version", "name", "found"),
    [
        (50000000, b"hipGetDeviceProperties", "hipGetDeviceProperties"),
        (60100000, b"hipGetDeviceProperties", "hipGetDevicePropertiesR0600"),
        (60100000, b"hipMalloc", "hipMalloc"),
        (60100000, b"hipStreamGetId", None),
        (60100000, b"hipNothing", None),
    ],
)
def test_hip_answers_by_release_as_well(start: Start, version: int, name: bytes, found: str | None) -> None:
    library, function = start("hip:6").machine.library, ctypes.c_void_p()
    status = library.hipGetProcAddress(name, ctypes.byref(function), version, ctypes.c_uint64(0), None)
    wanted = None if found is None else ctypes.cast(library[found], ctypes.c_void_p).value
    assert (status, function.value) == (0 if found else 500, wanted)


def test_what_not_every_release_has_gets_a_name_of_its_own(library: str) -> None:
    """``newer_functions.h`` is the list of what is simulated and newer than the oldest release of its vendor."""
    text = (SURFACES / "newer_functions.h").read_text(encoding="utf-8")
    listed = re.findall(r"^#define (\w+) simulated_\1$", text, re.MULTILINE)
    defined = read_defined_names(Path(library))
    simulated = {name.removeprefix("simulated_") for name in defined}
    oldest = {DRIVER: parse_flavour("cuda:11").release, HIP: parse_flavour("hip:5").release}
    newer = {name for each, release in oldest.items() for name in functions_of(each) - functions_of(each, release)}
    assert sorted(listed) == sorted(newer & simulated)
    assert not newer & defined
    assert not {name for name in simulated if re.match("cu[A-Z]", name)} - functions_of(DRIVER)


@pytest.mark.parametrize("file", ["driver_functions.inc", "hip_functions.inc"])
def test_a_table_is_sorted_for_a_binary_search(file: str) -> None:
    rows = re.findall(r"^[A-Z_]+\((\w+), \d+\)$", (SURFACES / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == sorted(rows)
    assert len(rows) == len(set(rows)) > 500
    assert max(map(len, rows)) < 64


@pytest.mark.parametrize("simulated", KNOWN, ids=str)
def test_both_sides_know_the_same_release(start: Start, simulated: Simulated) -> None:
    library, found = start(str(simulated)).machine.library, ctypes.c_void_p()
    hip, last = simulated.flavour is Flavour.HIP, simulated.release
    ask, name = (library.hipGetProcAddress, b"hipFree") if hip else (library.cuGetProcAddress, b"cuInit")
    for release, status in ((last, 0), (last + 10, 1)):
        version = release // 1000 * 10000000 + release % 1000 * 10000 if hip else release
        assert ask(name, ctypes.byref(found), version, ctypes.c_uint64(0), None) == status


@pytest.mark.parametrize("flavour", CUDA)
def test_a_client_that_prefers_later_forms_gets_those_of_the_driver(
    flavour: str, library: str, tmp_path: Path, run_python: Run
) -> None:
    """numba until 0.60 calls NAME_v2 as NAME where there is one: cuCtxGetDevice_v2 takes two arguments."""
    front_of(library, parse_flavour(flavour), DRIVER, tmp_path)
    code = "import ctypes, sys; print(hasattr(ctypes.CDLL(sys.argv[1]), 'cuCtxGetDevice_v2'))"
    done = run_python(code, tmp_path / DRIVER)
    assert done.stdout == f"{flavour == 'cuda:13'}\n", done.stderr
