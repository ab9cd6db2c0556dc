"""Handles of vendors' libraries: made, used and destroyed as their headers say, and kept in the ledger."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, Start

from quiesce.simulator.runtime.build import SOURCES
from quiesce.simulator.runtime.elf_reading import read_defined_names
from quiesce.simulator.runtime.flavours import COMPILERS, KNOWN
from quiesce.simulator.runtime.ledger import OF_LIBRARIES, Seen, Thing
from quiesce.simulator.runtime.vendor_libraries import functions_of, simulated_name

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Library:
    """The functions of one library by what they do, and what it answers for a handle that was destroyed."""

    flavour: str
    thing: Thing
    create: str
    destroy: str
    no_object: int
    set_stream: str = ""
    get_stream: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    arguments: tuple[int, ...] = ()
    """After the place for the handle."""
    prefix: str = "simulated_"


LIBRARIES: Final = (
    Library("cuda:12", Thing.BLAS_HANDLE, "cublasCreate_v2", "cublasDestroy_v2", 1, "cublasSetStream_v2",
            "cublasGetStream_v2", (("cublasSetPointerMode_v2", "cublasGetPointerMode_v2"),
                                   ("cublasSetAtomicsMode", "cublasGetAtomicsMode"),
                                   ("cublasSetMathMode", "cublasGetMathMode"),
                                   ("cublasSetSmCountTarget", "cublasGetSmCountTarget"))),
    Library("cuda:13", Thing.BLAS_HANDLE, "cublasLtCreate", "cublasLtDestroy", 1),
    Library("cuda:11", Thing.SPARSE_HANDLE, "cusparseCreate", "cusparseDestroy", 1, "cusparseSetStream",
            "cusparseGetStream", (("cusparseSetPointerMode", "cusparseGetPointerMode"),)),
    Library("cuda:12", Thing.SOLVER_HANDLE, "cusolverDnCreate", "cusolverDnDestroy", 1, "cusolverDnSetStream",
            "cusolverDnGetStream", (("cusolverDnSetDeterministicMode", "cusolverDnGetDeterministicMode"),
                                    ("cusolverDnSetMathMode", "cusolverDnGetMathMode"))),
    Library("cuda:12", Thing.SOLVER_HANDLE, "cusolverSpCreate", "cusolverSpDestroy", 1, "cusolverSpSetStream",
            "cusolverSpGetStream"),
    Library("cuda:12", Thing.GENERATOR, "curandCreateGenerator", "curandDestroyGenerator", 101, "curandSetStream",
            arguments=(100,)),
    Library("cuda:12", Thing.GENERATOR, "curandCreateGeneratorHost", "curandDestroyGenerator", 101, "curandSetStream",
            arguments=(204,)),
    Library("cuda:12", Thing.DNN_HANDLE, "cudnnCreate", "cudnnDestroy", 1, "cudnnSetStream", "cudnnGetStream",
            prefix="simulated_8_"),
    Library("cuda:12", Thing.DNN_HANDLE, "cudnnCreate", "cudnnDestroy", 1001, "cudnnSetStream", "cudnnGetStream",
            prefix="simulated_9_"),
    Library("hip:7", Thing.BLAS_HANDLE, "hipblasCreate", "hipblasDestroy", 1, "hipblasSetStream", "hipblasGetStream",
            (("hipblasSetPointerMode", "hipblasGetPointerMode"), ("hipblasSetAtomicsMode", "hipblasGetAtomicsMode"),
             ("hipblasSetMathMode", "hipblasGetMathMode"))),
    Library("hip:7", Thing.BLAS_HANDLE, "hipblasLtCreate", "hipblasLtDestroy", 1),
    Library("hip:6", Thing.BLAS_HANDLE, "rocblas_create_handle", "rocblas_destroy_handle", 1, "rocblas_set_stream",
            "rocblas_get_stream", (("rocblas_set_pointer_mode", "rocblas_get_pointer_mode"),
                                   ("rocblas_set_atomics_mode", "rocblas_get_atomics_mode"),
                                   ("rocblas_set_math_mode", "rocblas_get_math_mode"))),
    Library("hip:5", Thing.SPARSE_HANDLE, "hipsparseCreate", "hipsparseDestroy", 1, "hipsparseSetStream",
            "hipsparseGetStream", (("hipsparseSetPointerMode", "hipsparseGetPointerMode"),)),
    Library("hip:7", Thing.SPARSE_HANDLE, "rocsparse_create_handle", "rocsparse_destroy_handle", 1,
            "rocsparse_set_stream", "rocsparse_get_stream",
            (("rocsparse_set_pointer_mode", "rocsparse_get_pointer_mode"),)),
    Library("hip:7", Thing.SOLVER_HANDLE, "hipsolverCreate", "hipsolverDestroy", 1, "hipsolverSetStream",
            "hipsolverGetStream"),
    Library("hip:7", Thing.GENERATOR, "hiprandCreateGenerator", "hiprandDestroyGenerator", 101, "hiprandSetStream",
            arguments=(400,)),
    Library("hip:7", Thing.GENERATOR, "rocrand_create_generator", "rocrand_destroy_generator", 101,
            "rocrand_set_stream", arguments=(401,)),
    Library("hip:7", Thing.DNN_HANDLE, "miopenCreate", "miopenDestroy", 3, "miopenSetStream", "miopenGetStream"),
)  # fmt: skip


class Handles:
    """Calls of the library's functions on a machine."""

    def __init__(self, client: Client, prefix: str = "simulated_") -> None:
        self.client = client
        self.prefix = prefix

    def call(self, function: str, *arguments: Any) -> int:
        passed = [ctypes.c_uint64(each) if type(each) is int and each > 0x7FFFFFFF else each for each in arguments]
        status: int = getattr(self.client.machine.library, self.prefix + function)(*passed)
        return status

    def make(self, function: str, *arguments: Any) -> int:
        made = ctypes.c_void_p()
        assert self.call(function, ctypes.byref(made), *arguments) == 0, function
        return made.value or 0

    def number(self, function: str, *arguments: Any) -> int:
        place = ctypes.c_int(-7)
        assert self.call(function, *arguments, ctypes.byref(place)) == 0, function
        return place.value

    def live(self) -> dict[Thing, int]:
        counted = {thing: self.client.machine.ledger.counted(thing)[0] for thing in OF_LIBRARIES}
        return {thing: count for thing, count in counted.items() if count}

    def dead(self) -> list[Thing]:
        return [record.thing for record in self.client.seen(Seen.DEAD_HANDLE)]

    def free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.client.ok("MemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.prefix.strip("simulated_") + library.create)
def library(request: pytest.FixtureRequest) -> Library:
    chosen: Library = request.param
    return chosen


@pytest.fixture
def handles(library: Library, start: Start) -> Handles:
    return Handles(start(library.flavour, recycle="never"), library.prefix)


def test_a_handle_lives_until_it_is_destroyed(library: Library, handles: Handles) -> None:
    free = handles.free_bytes()
    first, second = (handles.make(library.create, *library.arguments) for _ in range(2))
    assert first != second
    assert handles.live() == {library.thing: 2}
    assert handles.call(library.destroy, first) == handles.call(library.destroy, second) == 0
    assert (handles.live(), handles.dead(), handles.free_bytes()) == ({}, [], free)
    names = [record.function for record in handles.client.seen(Seen.CREATED, Seen.DESTROYED)]
    assert names == [library.create] * 2 + [library.destroy] * 2


def test_a_destroyed_handle_is_seen_where_it_is_used(library: Library, handles: Handles) -> None:
    handle = handles.make(library.create, *library.arguments)
    assert handles.call(library.destroy, handle) == 0
    assert handles.call(library.destroy, handle) == library.no_object
    if library.set_stream:
        assert handles.call(library.set_stream, handle, 0) == library.no_object
    assert handles.dead() == [library.thing] * (2 if library.set_stream else 1)


def test_what_is_no_handle_is_refused_without_a_finding(library: Library, handles: Handles) -> None:
    stream = handles.client.make("StreamCreate")
    assert handles.call(library.destroy, 0) == handles.call(library.destroy, stream) == library.no_object
    assert handles.call(library.create, None, *library.arguments) != 0
    assert (handles.dead(), handles.live()) == ([], {})


def test_a_stream_is_remembered(library: Library, handles: Handles) -> None:
    if not library.set_stream:
        pytest.skip("its handles have no stream")
    stream = handles.client.make("StreamCreate")
    handle = handles.make(library.create, *library.arguments)
    for chosen in (stream, 0):
        assert handles.call(library.set_stream, handle, chosen) == 0
        found = ctypes.c_void_p(1)
        if library.get_stream:
            assert handles.call(library.get_stream, handle, ctypes.byref(found)) == 0
            assert (found.value or 0) == chosen
    handles.client.ok("StreamDestroy", stream)
    assert handles.dead() == []
    assert handles.call(library.set_stream, handle, stream) != 0
    assert handles.dead() == [Thing.STREAM]


def test_settings_are_kept_for_each_handle(library: Library, handles: Handles) -> None:
    one, other = (handles.make(library.create, *library.arguments) for _ in range(2))
    for put, get in library.settings:
        before = handles.number(get, other)
        assert handles.call(put, one, 1 - before) == 0
        assert (handles.number(get, one), handles.number(get, other)) == (1 - before, before), put
        assert handles.call(put, one, -1) != 0
        assert handles.number(get, one) == 1 - before


def test_a_handle_ends_with_its_device(library: Library, handles: Handles) -> None:
    handle = handles.make(library.create, *library.arguments)
    handles.client.ok("DeviceReset")
    assert handles.live() == {}
    assert handles.call(library.destroy, handle) == library.no_object
    assert handles.dead() == [library.thing]


# -- workspaces ------------------------------------------------------------------------------------------------------


@pytest.fixture
def cuda(start: Start) -> Handles:
    return Handles(start("cuda:12", recycle="never", capacity=64 * MIB, devices=2))


@pytest.fixture
def hip(start: Start) -> Handles:
    return Handles(start("hip:7", recycle="never", capacity=64 * MIB))


def test_a_cublas_handle_comes_with_memory_that_only_its_end_gives_back(cuda: Handles) -> None:
    handle = cuda.make("cublasCreate_v2")
    assert cuda.free_bytes() == 60 * MIB
    (workspace,) = cuda.client.seen(Seen.ALLOCATED)
    assert [thing.thing for thing in cuda.client.machine.ledger.live()] == [Thing.BLAS_HANDLE], "it is part of that"
    assert cuda.client.call("Free", workspace.address) == 1
    assert cuda.client.seen(Seen.FREED_FOREIGN)
    assert cuda.call("cublasDestroy_v2", handle) == 0
    assert cuda.free_bytes() == 64 * MIB


def test_without_memory_there_is_no_handle(cuda: Handles) -> None:
    cuda.client.make("Malloc", 62 * MIB)
    assert cuda.call("cublasCreate_v2", ctypes.byref(ctypes.c_void_p())) == 3
    assert cuda.live() == {}
    assert cuda.make("cusparseCreate"), "which takes none"


def test_the_end_of_a_cublas_handle_waits_for_its_device(start: Start) -> None:
    handles = Handles(start("cuda:12"))
    stream, block = handles.client.make("StreamCreate"), handles.client.make("Malloc", 100)
    handle = handles.make("cublasCreate_v2")
    assert handles.client.machine.control("stall", ctypes.c_uint64(stream)) == 0
    handles.client.ok("MemsetAsync", block, 1, ctypes.c_size_t(100), stream)
    assert handles.client.call("StreamQuery", stream) == 600
    assert handles.call("cublasDestroy_v2", handle) == 0
    assert handles.client.call("StreamQuery", stream) == 0
    assert handles.client.seen(Seen.DEVICE_WAITED_FOR)


def test_a_workspace_of_the_client_has_to_be_memory(cuda: Handles) -> None:
    handle, block = cuda.make("cublasCreate_v2"), cuda.client.make("Malloc", MIB)
    assert cuda.call("cublasSetWorkspace_v2", handle, block, ctypes.c_size_t(MIB)) == 0
    assert cuda.call("cublasSetWorkspace_v2", handle, block, ctypes.c_size_t(2 * MIB)) == 7
    cuda.client.ok("Free", block)
    assert cuda.call("cublasSetWorkspace_v2", handle, block, ctypes.c_size_t(MIB)) == 7
    found = cuda.client.seen(Seen.OUT_OF_BOUNDS, Seen.USED_AFTER_FREE)
    assert [record.seen for record in found] == [Seen.OUT_OF_BOUNDS, Seen.USED_AFTER_FREE]


def test_rocblas_takes_the_memory_that_it_is_told_to(hip: Handles) -> None:
    handle, size = hip.make("rocblas_create_handle"), ctypes.c_size_t()
    assert hip.free_bytes() == 64 * MIB
    for wanted in (8 * MIB, 2 * MIB, 0):
        assert hip.call("rocblas_set_device_memory_size", handle, ctypes.c_size_t(wanted)) == 0
        assert hip.call("rocblas_get_device_memory_size", handle, ctypes.byref(size)) == 0
        assert (size.value, hip.free_bytes()) == (wanted, 64 * MIB - wanted)
    assert hip.call("rocblas_set_device_memory_size", handle, ctypes.c_size_t(65 * MIB)) == 5


# -- generators ------------------------------------------------------------------------------------------------------


def test_a_generator_takes_seed_offset_and_ordering(cuda: Handles) -> None:
    generator = cuda.make("curandCreateGenerator", 161)
    assert cuda.call("curandSetPseudoRandomGeneratorSeed", generator, ctypes.c_uint64(2**64 - 1)) == 0
    assert cuda.call("curandSetGeneratorOffset", generator, ctypes.c_uint64(5)) == 0
    assert cuda.call("curandSetGeneratorOrdering", generator, 102) == 0
    assert cuda.call("curandSetQuasiRandomGeneratorDimensions", generator, 20001) == 104


@pytest.mark.parametrize(("function", "kind"), [("curandCreateGenerator", 400), ("hiprandCreateGenerator", 100)])
def test_a_kind_of_another_vendor_is_refused(cuda: Handles, function: str, kind: int) -> None:
    assert cuda.call(function, ctypes.byref(ctypes.c_void_p()), kind) == 103


# -- communicators ---------------------------------------------------------------------------------------------------


class UniqueId(ctypes.Structure):
    """ncclUniqueId."""

    _fields_ = (("content", ctypes.c_char * 128),)


def test_a_communicator_of_one_rank(cuda: Handles) -> None:
    name, made = UniqueId(), ctypes.c_void_p()
    assert cuda.call("ncclGetUniqueId", ctypes.byref(name)) == 0
    assert cuda.call("ncclCommInitRank", ctypes.byref(made), 1, name, 0) == 0
    numbers = [cuda.number(f"ncclComm{asked}", made) for asked in ("Count", "UserRank", "CuDevice", "GetAsyncError")]
    assert numbers == [1, 0, 0, 0]
    assert cuda.call("ncclCommFinalize", made) == cuda.call("ncclCommDestroy", made) == 0
    assert cuda.live() == {}
    assert cuda.call("ncclCommDestroy", made) == 4
    assert cuda.dead() == [Thing.COMMUNICATOR]


def test_more_ranks_than_one_are_not_simulated(cuda: Handles, capfd: pytest.CaptureFixture[str]) -> None:
    assert cuda.call("ncclCommInitRank", ctypes.byref(ctypes.c_void_p()), 2, UniqueId(), 0) == 3
    assert "ncclCommInitRank is not simulated" in capfd.readouterr().err
    assert cuda.call("ncclCommInitRank", ctypes.byref(ctypes.c_void_p()), 1, UniqueId(), 1) == 4


def test_a_communicator_for_each_device(cuda: Handles) -> None:
    made = (ctypes.c_void_p * 2)()
    assert cuda.call("ncclCommInitAll", made, 2, None) == 0
    assert [cuda.number("ncclCommCuDevice", each) for each in made] == [0, 1]
    assert [cuda.number("ncclCommUserRank", each) for each in made] == [0, 1]
    assert cuda.number("ncclCommCount", made[0]) == 2
    assert cuda.call("ncclCommInitAll", made, 2, (ctypes.c_int * 2)(0, 7)) == 4
    assert cuda.live() == {Thing.COMMUNICATOR: 2}, "the first of the two is not left"


def test_groups_have_to_be_begun(cuda: Handles) -> None:
    assert [cuda.call("ncclGroupStart"), cuda.call("ncclGroupEnd"), cuda.call("ncclGroupEnd")] == [0, 0, 5]


def test_memory_of_nccl_is_memory(cuda: Handles) -> None:
    block = cuda.make("ncclMemAlloc", ctypes.c_size_t(3 * MIB))
    assert cuda.client.machine.ledger.counted(Thing.DEVICE) == (1, 3 * MIB)
    assert cuda.call("ncclMemFree", block) == 0
    assert cuda.call("ncclMemFree", block) == 4
    assert cuda.client.seen(Seen.FREED_TWICE)


# -- releases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flavour", "function", "release"),
    [
        ("cuda:11", "cublasGetVersion_v2", 111103),
        ("cuda:12", "cublasGetVersion_v2", 120901),
        ("cuda:13", "cublasGetVersion_v2", 130000),
        ("cuda:12", "cusparseGetVersion", 12510),
        ("cuda:12", "cusolverGetVersion", 11705),
        ("cuda:11", "cufftGetVersion", 10900),
        ("cuda:12", "cufftGetVersion", 11401),
        ("cuda:13", "curandGetVersion", 10400),
        ("cuda:12", "ncclGetVersion", 22605),
        ("cuda:12", "cuptiGetVersion", 28),
        ("cuda:13", "cuptiGetVersion", 130000),
        ("hip:7", "ncclGetVersion", 22606),
        ("hip:6", "hipsparseGetVersion", 300200),
    ],
)
def test_the_release_is_that_of_the_flavour(start: Start, flavour: str, function: str, release: int) -> None:
    handles = Handles(start(flavour))
    of_object = ("blas", "sparse")
    arguments = (None,) if any(word in function for word in of_object) else ()
    assert handles.number(function, *arguments) == release


def test_a_release_is_told_part_by_part(cuda: Handles) -> None:
    assert [cuda.number("cublasGetProperty", part) for part in range(3)] == [12, 9, 1]
    assert cuda.call("cublasGetProperty", 3, ctypes.byref(ctypes.c_int())) == 7
    assert (cuda.call("cublasLtGetVersion"), Handles(cuda.client, "simulated_9_").call("cudnnGetVersion")) == (
        120901,
        91002,
    )


# -- the table -------------------------------------------------------------------------------------------------------


def test_every_function_is_of_a_known_library(library_path: Path) -> None:
    named = {name for name in read_defined_names(library_path) if name.startswith("simulated_")}
    assert len(named) > 200
    sonames = {*COMPILERS, *(soname for simulated in KNOWN for soname in simulated.offered)}
    of_libraries = {name for name in named for soname in sonames if simulated_name(soname, name)}
    newer = {f"simulated_{name}" for soname in ("libcuda.so.1", "libamdhip64.so.7") for name in functions_of(soname)}
    assert named - newer == of_libraries, "of the driver and of HIP, those that only later releases have"


@pytest.fixture
def library_path(start: Start) -> Path:
    return Path(start().machine.library._name)


def test_every_table_says_where_its_names_are_from() -> None:
    for path in (SOURCES / "libraries").glob("*.c"):
        text = path.read_text(encoding="utf-8")
        if "FUNCTION(" in text or "CREATE(" in text:
            assert ".h" in text.partition("\n\n#include")[0], path.name
