"""Callbacks of cuFFT: each element goes through a device function, whose accesses are judged as a kernel's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.fft_programs import (
    C2C,
    C2R,
    D2Z,
    FORWARD,
    NAMES,
    R2C,
    Z2D,
    Z2Z,
    Embedding,
    Fft,
    get,
    offsets,
    put,
    random,
)
from tests.simulator.kernel_programs import TO_DEVICE

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

INVALID_PLAN, INVALID_TYPE, INVALID_VALUE, NO_WORKSPACE, NOT_SUPPORTED = 1, 3, 4, 13, 16
COMPLEX, COMPLEX_DOUBLE, REAL, REAL_DOUBLE = range(4)  # cufftXtCallbackType of a load; that of a store is 4 more
STORES: Final = 4
SET: Final = "__cufftXtSetJITCallback_12_7"
TYPES: Final = {
    C2C: (COMPLEX, COMPLEX), Z2Z: (COMPLEX_DOUBLE, COMPLEX_DOUBLE), R2C: (REAL, COMPLEX),
    C2R: (COMPLEX, REAL), D2Z: (REAL_DOUBLE, COMPLEX_DOUBLE), Z2D: (COMPLEX_DOUBLE, REAL_DOUBLE),
}  # fmt: skip
DTYPES: Final = (np.complex64, np.complex128, np.float32, np.float64)
HEAD: Final = ".version 8.0\n.target sm_80\n.address_size 64\n"
PLACE: Final = """ld.param.u64 %rd1, [data];
ld.param.u64 %rd2, [offset];
ld.param.u64 %rd3, [with];
mad.lo.u64 %rd2, %rd2, {bytes}, %rd1;
ld.{type} %f3, [%rd3];
"""


def element(kind: int) -> dict[str, Any]:
    """Return how PTX writes elements of a type of callbacks."""
    half = 8 if kind % 2 else 4
    is_complex = kind in (COMPLEX, COMPLEX_DOUBLE)
    size_bytes = half * (1 + is_complex)
    block = f".align {size_bytes} .b8 {{}}[{size_bytes}]" if is_complex else f".b{8 * half} {{}}"
    return {
        "bytes": size_bytes, "half": half, "type": f"f{8 * half}", "is_complex": is_complex, "block": block,
        "vector": ".v2" if is_complex else "", "both": "{%f1, %f2}" if is_complex else "%f1",
    }  # fmt: skip


def function(head: str, kind: int, body: str) -> str:
    registers = f".reg .b64 %rd<4>;\n.reg .{element(kind)['type']} %f<4>;\n"
    return f"{HEAD}.visible .func {head}\n{{\n{registers}{body}ret;\n}}\n"


def load(kind: int, name: str = "scale", shift_bytes: int = 0) -> str:
    """Return a callback that multiplies what it loads with the number at the caller's information."""
    of = element(kind)
    second = "mul.{type} %f2, %f2, %f3;\nst.param.{type} [back+{half}], %f2;\n" if of["is_complex"] else ""
    first = "ld{vector}.{type} {both}, [%rd2+{shift}];\nmul.{type} %f1, %f1, %f3;\nst.param.{type} [back], %f1;\n"
    parameters = ".param .b64 data, .param .b64 offset, .param .b64 with, .param .b64 shared"
    return function(
        f"(.param {of['block'].format('back')}) {name}({parameters})",
        kind,
        (PLACE + first + second).format(shift=shift_bytes, **of),
    )


def store(kind: int, name: str = "halve") -> str:
    """Return a callback that multiplies what it stores with the number at the caller's information."""
    of = element(kind)
    second = "ld.param.{type} %f2, [element+{half}];\nmul.{type} %f2, %f2, %f3;\n" if of["is_complex"] else ""
    body = (
        PLACE
        + "ld.param.{type} %f1, [element];\nmul.{type} %f1, %f1, %f3;\n"
        + second
        + "st{vector}.{type} [%rd2], {both};\n"
    )
    parameters = f".param .b64 data, .param .b64 offset, .param {of['block'].format('element')}, .param .b64 with"
    return function(f"{name}({parameters}, .param .b64 shared)", kind, body.format(**of))


class Callbacks(Fft):
    """A device with plans of cuFFT that have callbacks."""

    def empty_plan(self) -> int:
        """Return a plan that is not made yet."""
        made = ctypes.c_int()
        assert self.driver.simulated_cufftCreate(ctypes.byref(made)) == 0
        return made.value

    def set(self, plan: int, kind: int, name: str, code: str | bytes, with_: int = 0) -> int:
        """Give a plan a callback; return the status."""
        content = code if isinstance(code, bytes) else code.encode()
        size_bytes, pointer = ctypes.c_size_t(len(content)), ctypes.c_void_p(with_)
        function = getattr(self.driver, f"computed_{SET}")
        return int(function(plan, name.encode(), content, size_bytes, kind, ctypes.byref(pointer)))

    def finish(self, plan: int, kind: int, lengths: tuple[int, ...], batch: int = 1, embeddings: Any = None) -> int:
        """Make a plan; return the status."""
        rooms: list[Any] = [None, 1, 0, None, 1, 0]
        if embeddings:
            rooms = [each for room, *rest in embeddings for each in ((ctypes.c_int * len(room))(*room), *rest)]
        made = (ctypes.c_int * len(lengths))(*lengths)
        self.plans[plan] = kind
        work = ctypes.c_size_t()
        return int(
            self.driver.simulated_cufftMakePlanMany(plan, len(lengths), made, *rooms, kind, batch, ctypes.byref(work))
        )

    def number(self, kind: int, value: float) -> int:
        """Return the address of a number of the precision of a type of callbacks."""
        return self.put(np.array(value, np.float64 if kind % 2 else np.float32))

    def scaled_plan(self, kind: int, lengths: tuple[int, ...], batch: int = 1, embeddings: Any = None) -> int:
        """Return a plan whose callbacks double what they load, and halve what they store, twice."""
        plan, (loads, stores) = self.empty_plan(), TYPES[kind]
        assert self.set(plan, loads, "scale", load(loads), self.number(loads, 2)) == 0
        assert self.set(plan, STORES + stores, "halve", store(stores), self.number(stores, 0.25)) == 0
        assert self.finish(plan, kind, lengths, batch, embeddings) == 0
        return plan


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Callbacks]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Callbacks)
    yield made
    assert made.findings() == ()


@pytest.mark.parametrize("kind", TYPES, ids=NAMES.get)
def test_each_type_of_elements(on: Callbacks, kind: int) -> None:
    loads, stores = (DTYPES[each] for each in TYPES[kind])
    values = random(loads, 3, 10)
    if kind in (C2R, Z2D):
        values = np.fft.rfft(random(np.float64, 3, 10)).astype(loads)
    transform: Any = {R2C: np.fft.rfft, D2Z: np.fft.rfft, C2R: np.fft.irfft, Z2D: np.fft.irfft}.get(kind, np.fft.fft)
    wanted = transform(values) * (10 if kind in (C2R, Z2D) else 1) / 2
    target = on.room(wanted.size * np.dtype(stores).itemsize)
    direction = (FORWARD,) if kind in (C2C, Z2Z) else ()
    plan = on.scaled_plan(kind, (10,), 3)
    for _ in range(2):
        assert on.execute(plan, put(on, values), target, *direction) == 0
    assert np.allclose(get(on, target, stores, *wanted.shape), wanted, atol=1e-4)


def test_one_of_the_two(on: Callbacks) -> None:
    values = random(np.complex64, 4, 6)
    for loads in (True, False):
        plan, target = on.empty_plan(), on.room(values.nbytes)
        code = load(COMPLEX) if loads else store(COMPLEX)
        assert on.set(plan, 0 if loads else STORES, "scale" if loads else "halve", code, on.number(COMPLEX, 3)) == 0
        assert on.finish(plan, C2C, (4, 6)) == 0
        assert on.execute(plan, put(on, values), target, FORWARD) == 0
        assert np.allclose(get(on, target, np.complex64, 4, 6), 3 * np.fft.fft2(values), atol=1e-4)


@pytest.mark.parametrize("in_place", [False, True])
def test_layouts(on: Callbacks, in_place: bool) -> None:
    shape, lengths = (2, 2, 3, 4), (2, 3, 4)
    embedding: Embedding = (2, 4, 5), 2, 1
    values, places = random(np.complex64, *shape), offsets(shape, embedding)
    content = np.full(places.max() + 1, 7, np.complex64)
    content[places] = values
    source = put(on, content)
    target = source if in_place else put(on, np.full(content.size, 7, np.complex64))
    plan = on.scaled_plan(C2C, lengths, 2, (embedding, embedding))
    assert on.execute(plan, source, target, FORWARD) == 0
    found = get(on, target, np.complex64, content.size)
    assert np.allclose(found[places], np.fft.fftn(values, axes=(1, 2, 3)) / 2, atol=1e-4)
    assert (np.delete(found, places.ravel()) == 7).all()


def test_real_numbers_in_place(on: Callbacks) -> None:
    values = random(np.float32, 3, 5)
    padded = np.full((3, 6), np.nan, np.float32)
    padded[:, :5] = values
    at = put(on, padded)
    assert on.execute(on.scaled_plan(R2C, (3, 5)), at, at) == 0
    assert np.allclose(get(on, at, np.complex64, 3, 3), np.fft.rfft2(values) / 2, atol=1e-4)


def test_a_function_of_cplusplus_by_its_name(on: Callbacks) -> None:
    values, plan = random(np.complex64, 8), on.empty_plan()
    code = load(COMPLEX, "_Z5scalePvyS_S_") + '.file 1 "scale.cu"\n'
    assert on.set(plan, COMPLEX, "scale", code, on.number(COMPLEX, 2)) == 0
    assert on.finish(plan, C2C, (8,)) == 0
    target = on.room(64)
    assert on.execute(plan, put(on, values), target, FORWARD) == 0
    assert np.allclose(get(on, target, np.complex64, 8), 2 * np.fft.fft(values), atol=1e-4)


def test_callbacks_that_do_not_fit_are_refused(on: Callbacks) -> None:
    plan = on.empty_plan()
    assert on.set(plan, 9, "scale", load(COMPLEX)) == INVALID_TYPE
    assert on.set(plan, COMPLEX, "other", load(COMPLEX)) == INVALID_VALUE
    assert on.set(plan, COMPLEX, "scale", b"") == INVALID_VALUE
    assert on.set(999, COMPLEX, "scale", load(COMPLEX)) == INVALID_PLAN
    assert on.set(plan, COMPLEX, "scale", load(COMPLEX)) == 0
    assert on.finish(plan, Z2Z, (8,)) == INVALID_TYPE
    assert on.finish(plan, C2C, (8,)) == 0
    assert on.set(plan, COMPLEX, "scale", load(COMPLEX)) == INVALID_PLAN


def test_a_plan_without_a_work_area(on: Callbacks) -> None:
    plan, at = on.empty_plan(), on.room(64)
    assert on.driver.simulated_cufftSetAutoAllocation(plan, 0) == 0
    assert on.set(plan, COMPLEX, "scale", load(COMPLEX), on.number(COMPLEX, 2)) == 0
    assert on.finish(plan, C2C, (8,)) == 0
    assert on.execute(plan, at, at, FORWARD) == NO_WORKSPACE


def test_code_of_a_compiler_that_is_not_understood_fails_by_name(
    on: Callbacks, capfd: pytest.CaptureFixture[str]
) -> None:
    assert on.set(on.empty_plan(), COMPLEX, "scale", b"\x50\xed\x55\xba" + bytes(60)) == NOT_SUPPORTED
    assert f"{SET} is not simulated" in capfd.readouterr().err


def plan_of(on: Callbacks, code: str, with_: int) -> int:
    plan = on.empty_plan()
    assert on.set(plan, COMPLEX, "scale", code, with_) == 0
    assert on.finish(plan, C2C, (64,)) == 0
    return plan


@pytest.mark.parametrize("wrong", [False, True])
def test_a_callback_that_reads_past_the_end(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Callbacks)
    plan = plan_of(on, load(COMPLEX, shift_bytes=8 if wrong else 0), on.number(COMPLEX, 2))
    assert on.execute(plan, put(on, random(np.complex64, 64)), on.room(512), FORWARD) == 0
    assert len(on.findings()) == wrong
    if wrong:
        assert "kernel 'cufft_load_scale' reads 8 bytes" in on.observed()
        assert "directly after the end of a device block of 512 bytes" in on.observed()


@pytest.mark.parametrize("wrong", [False, True])
def test_information_of_the_caller_that_was_freed(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Callbacks)
    number = on.number(COMPLEX, 2)
    plan = plan_of(on, load(COMPLEX), number)
    if wrong:
        on.client.ok("Free", number)
    assert on.execute(plan, put(on, random(np.complex64, 64)), on.room(512), FORWARD) == 0
    assert [each.kind for each in on.findings()] == ([Kind.USE_AFTER_FREE] if wrong else [])
    if wrong:
        assert "kernel 'cufft_load_scale' reads 4 bytes" in on.observed()


@pytest.mark.parametrize("wrong", [False, True])
def test_a_callback_that_stores_beside_its_output(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Callbacks)
    plan = on.scaled_plan(C2C, (64,))
    assert on.execute(plan, put(on, random(np.complex64, 64)), on.room(504 if wrong else 512), FORWARD) == 0
    assert len(on.findings()) == wrong
    if wrong:
        assert "kernel 'cufft_store_halve' writes 8 bytes" in on.observed()


@pytest.mark.parametrize("wrong", [False, True])
def test_information_that_another_stream_writes(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Callbacks)
    number, first, second = on.number(COMPLEX, 2), on.stream(), on.stream()
    plan, source, target = plan_of(on, load(COMPLEX), number), put(on, random(np.complex64, 64)), on.room(512)
    assert on.driver.simulated_cufftSetStream(plan, ctypes.c_void_p(first)) == 0
    on.wait()
    assert on.execute(plan, source, target, FORWARD) == 0
    if not wrong:
        on.wait()
    on.client.ok("MemsetAsync", number, 0, ctypes.c_size_t(4), ctypes.c_void_p(second))
    assert [each.kind for each in on.findings()] == ([Kind.RACE] if wrong else [])


@pytest.mark.parametrize("wrong", [False, True])
def test_a_work_area_that_was_freed(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Callbacks)
    plan, area = plan_of(on, load(COMPLEX), on.number(COMPLEX, 2)), on.room(512)
    assert on.driver.simulated_cufftSetWorkArea(plan, ctypes.c_void_p(area)) == 0
    source, target = put(on, random(np.complex64, 64)), on.room(512)
    if wrong:
        on.client.ok("Free", area)
    assert on.execute(plan, source, target, FORWARD) == 0
    assert {each.kind for each in on.findings()} == ({Kind.USE_AFTER_FREE} if wrong else set())
    names = ("kernel 'cufft_load_scale' writes 8 bytes", "cufftExecC2C writes 1 byte")
    assert [each.observed.startswith(names) for each in on.findings()] == [True, True] * wrong


def test_a_captured_execution_is_one_when_its_graph_runs(on: Callbacks) -> None:
    values, stream, plan = random(np.complex64, 8), on.stream(), on.scaled_plan(C2C, (8,))
    source, target, graph = put(on, np.zeros(8, np.complex64)), on.room(64), ctypes.c_void_p()
    assert on.driver.simulated_cufftSetStream(plan, ctypes.c_void_p(stream)) == 0
    on.wait()
    on.client.ok("StreamBeginCapture", ctypes.c_void_p(stream), 0)
    assert on.execute(plan, source, target, FORWARD) == 0
    on.client.ok("StreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
    runs = on.client.make("GraphInstantiate", graph, 0)
    on.client.ok("Memcpy", source, values.ctypes.data, 64, TO_DEVICE)
    on.wait()
    on.client.ok("GraphLaunch", ctypes.c_void_p(runs), ctypes.c_void_p(stream))
    on.wait()
    assert np.allclose(get(on, target, np.complex64, 8), np.fft.fft(values) / 2, atol=1e-4)
    on.client.ok("GraphExecDestroy", ctypes.c_void_p(runs))
    on.client.ok("GraphDestroy", graph)
