"""Functions for clients with a per-thread default stream: all have that form, and each thread has its own stream."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, Start
from tests.simulator.test_driver_contexts import STREAM, driver_names, places

from quiesce.simulator.runtime.elf_reading import read_defined_names
from quiesce.simulator.runtime.ledger import Seen
from quiesce.simulator.runtime.vendor_libraries import functions_of

NOT_READY = 600
SIZE: Final = 64
PER_THREAD: Final = 2
SUFFIXES: Final = ("_ptsz", "_ptds")


@pytest.mark.parametrize("library_name", ["libcudart.so.13", "libcuda.so.1"])
def test_every_function_that_is_simulated_has_its_form(library: str, library_name: str) -> None:
    simulated = {name.removeprefix("simulated_") for name in read_defined_names(Path(library))}
    known = functions_of(library_name)
    forms = {name: base for name in known for base, _, suffix in [name.rpartition("_")] if f"_{suffix}" in SUFFIXES}
    missing = {name for name, base in forms.items() if base in simulated} - simulated
    assert len(forms) > 50
    assert not missing


def test_every_function_of_the_driver_that_takes_a_stream_has_its_form(library: str) -> None:
    simulated = {name.removeprefix("simulated_") for name in read_defined_names(Path(library))}
    wanted = [*places(STREAM), "cuLaunchKernelEx", "cuGraphInstantiateWithParams", "cuGetProcAddress_v2"]
    wanted.remove("cuLaunchGridAsync")  # cuda.h: it has none, as what CUDA 4 deprecated
    assert [name for name in wanted if f"{name}_ptsz" not in simulated] == []
    synchronous = [name for name in driver_names() if name.startswith(("cuMemcpy", "cuMemset")) and "Async" not in name]
    assert [name for name in synchronous if f"{name}_ptds" not in simulated] == []


def initialized(client: Client) -> ctypes.CDLL:
    client.ok("Free", None)
    return client.machine.library


def fill(function: Any, address: int, *more: Any) -> None:
    """Fill three times: a query lets one piece of work run before it answers."""
    for _ in range(3):
        assert function(ctypes.c_uint64(address), ctypes.c_ubyte(7), ctypes.c_size_t(SIZE), *more) == 0


def of_thread(function: Any, *arguments: Any) -> int:
    """Return what a call answers in a thread of its own."""
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(function(*arguments)))
    thread.start()
    thread.join()
    return answers[0]


def test_0_is_the_threads_own_stream_for_one_call(start: Start) -> None:
    client = start("cuda:13", schedule="lazy")
    library, block, pinned = initialized(client), client.make("Malloc", SIZE), client.make("MallocHost", SIZE)
    copy = library.cuMemcpyDtoHAsync_v2_ptsz
    fill(library.cuMemsetD8Async_ptsz, block, None)
    assert copy(ctypes.c_void_p(pinned), ctypes.c_uint64(block), ctypes.c_size_t(SIZE), None) == 0
    own = client.seen(Seen.COPIED)[0].stream
    assert own != 0
    assert library.cuStreamQuery(ctypes.c_void_p(PER_THREAD)) == NOT_READY
    assert library.cuStreamSynchronize_ptsz(None) == 0
    assert ctypes.string_at(pinned, SIZE) == bytes([7]) * SIZE
    copy = library.cuMemcpyDtoHAsync_v2
    assert copy(ctypes.c_void_p(pinned), ctypes.c_uint64(block), ctypes.c_size_t(SIZE), None) == 0
    assert [record.stream for record in client.seen(Seen.COPIED)] == [own, 0], "a later call has the legacy one again"


def test_threads_do_not_wait_for_each_other(start: Start) -> None:
    client = start("cuda:12", schedule="lazy")
    library, block = initialized(client), client.make("Malloc", SIZE)

    def query() -> int:
        assert library.cuCtxSetCurrent(ctypes.c_void_p(1)) == 0
        assert library.cuStreamSynchronize_ptsz(None) == 0
        return int(library.cuStreamQuery_ptsz(None))

    fill(library.cuMemsetD8Async_ptsz, block, None)
    assert of_thread(query) == 0
    assert library.cuStreamQuery_ptsz(None) == NOT_READY


def test_a_synchronous_copy_waits_for_its_own_stream_alone(start: Start) -> None:
    client = start("cuda:13", schedule="lazy")
    library, (block, other) = initialized(client), [client.make("Malloc", SIZE) for _ in range(2)]
    place, stream = ctypes.create_string_buffer(SIZE), client.make("StreamCreate")
    for value in range(3):
        client.ok("MemsetAsync", other, value, SIZE, stream)
    fill(library.cuMemsetD8_v2_ptds, block)
    assert library.cuMemcpyDtoH_v2_ptds(place, ctypes.c_uint64(block), ctypes.c_size_t(SIZE)) == 0
    assert place.raw == bytes([7]) * SIZE
    assert client.call("StreamQuery", stream) == NOT_READY
    assert library.cuMemcpyDtoH_v2(place, ctypes.c_uint64(block), ctypes.c_size_t(SIZE)) == 0
    assert client.call("StreamQuery", stream) == 0, "the legacy default stream waits for others"


@pytest.mark.parametrize(
    ("function", "flags", "form"),
    [
        ("cuGetProcAddress_v2", 0, ""),
        ("cuGetProcAddress_v2", 2, "_ptsz"),
        ("cuGetProcAddress_v2_ptsz", 0, "_ptsz"),
        ("cuGetProcAddress_v2_ptsz", 1, ""),
        ("cudaGetDriverEntryPointByVersion", 2, "_ptsz"),
        ("cudaGetDriverEntryPointByVersion_ptsz", 0, "_ptsz"),
    ],
)
def test_a_driver_function_is_found_in_the_form_that_was_asked_for(
    start: Start, function: str, flags: int, form: str
) -> None:
    library, found, result = initialized(start("cuda:13")), ctypes.c_void_p(), ctypes.c_int(-1)
    ask = library[function]
    for name, formed in (("cuStreamSynchronize", f"cuStreamSynchronize{form}"), ("cuCtxGetCurrent", "cuCtxGetCurrent")):
        assert ask(name.encode(), ctypes.byref(found), 13000, ctypes.c_uint64(flags), ctypes.byref(result)) == 0
        assert found.value == ctypes.cast(library[formed], ctypes.c_void_p).value


def test_launches_and_prefetches_of_the_runtime_take_the_threads_own_stream(start: Start) -> None:
    client = start("cuda:13", schedule="lazy")
    configuration = (ctypes.c_uint64 * 7)(1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, 0)
    for _ in range(3):
        client.ok("LaunchKernelExC_ptsz", configuration, 0x1234, None)
    assert client.call("StreamQuery_ptsz", None) == NOT_READY
    managed = client.make("MallocManaged", SIZE, 1)
    client.ok("MemPrefetchAsync_ptsz", managed, SIZE, 1, 0, 0)
