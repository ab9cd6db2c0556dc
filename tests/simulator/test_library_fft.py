"""cuFFT transforms as NumPy does, whatever layout a plan has, and touches nothing beside its elements."""

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
    INVERSE,
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

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

INVALID_PLAN, EXECUTION_FAILED, NOT_SUPPORTED = 1, 6, 16


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Fft]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Fft)
    yield made
    assert made.findings() == ()


SHAPES: Final = [((8,), 1), ((5,), 3), ((4, 6), 2), ((3, 4, 5), 2), ((7, 1), 1)]


@pytest.mark.parametrize(("lengths", "batch"), SHAPES)
@pytest.mark.parametrize(("kind", "dtype"), [(C2C, np.complex64), (Z2Z, np.complex128)])
def test_complex_numbers(on: Fft, lengths: tuple[int, ...], batch: int, kind: int, dtype: Any) -> None:
    values, axes = random(dtype, batch, *lengths), tuple(range(1, len(lengths) + 1))
    source, target, plan = put(on, values), on.room(values.nbytes), on.plan(kind, lengths, batch)
    assert on.execute(plan, source, target, FORWARD) == 0
    found = get(on, target, dtype, *values.shape)
    assert np.allclose(found, np.fft.fftn(values, axes=axes), atol=1e-4)
    assert on.execute(plan, target, target, INVERSE) == 0
    assert np.allclose(get(on, target, dtype, *values.shape), values * np.prod(lengths), atol=1e-4)


@pytest.mark.parametrize(("lengths", "batch"), SHAPES)
@pytest.mark.parametrize(("forward", "back", "dtype"), [(R2C, C2R, np.float32), (D2Z, Z2D, np.float64)])
@pytest.mark.parametrize("in_place", [False, True])
def test_real_numbers(
    on: Fft, lengths: tuple[int, ...], batch: int, forward: int, back: int, dtype: Any, in_place: bool
) -> None:
    values, axes = random(dtype, batch, *lengths), tuple(range(1, len(lengths) + 1))
    wanted = np.fft.rfftn(values, axes=axes)
    complex_type = np.result_type(dtype, np.complex64)
    size_bytes = wanted.size * np.dtype(complex_type).itemsize
    room = 2 * wanted.shape[-1] if in_place else lengths[-1]
    padded = np.full((batch, *lengths[:-1], room), np.nan, dtype)
    padded[..., : lengths[-1]] = values
    source = put(on, padded)
    target = source if in_place else on.room(size_bytes)
    assert on.execute(on.plan(forward, lengths, batch), source, target) == 0
    assert np.allclose(get(on, target, complex_type, *wanted.shape), wanted, atol=1e-4)
    assert on.execute(on.plan(back, lengths, batch), target, source) == 0
    found = get(on, source, dtype, *padded.shape)
    assert np.allclose(found[..., : lengths[-1]], values * np.prod(lengths), atol=1e-4)


LAYOUTS: Final[list[tuple[tuple[int, ...], int, Embedding]]] = [
    ((4,), 3, ((4,), 3, 1)),  # the batch has neighbours
    ((4,), 3, ((4,), 2, 10)),
    ((4,), 3, ((4,), 1, 7)),
    ((3, 4), 2, ((3, 6), 1, 20)),
    ((3, 4), 2, ((5, 6), 2, 70)),
    ((2, 3, 4), 2, ((2, 4, 5), 2, 1)),
    ((2, 3, 4), 2, ((2, 3, 4), 1, 24)),
]


@pytest.mark.parametrize(("lengths", "batch", "embedding"), LAYOUTS)
@pytest.mark.parametrize("other", [False, True])
def test_layouts(on: Fft, lengths: tuple[int, ...], batch: int, embedding: Embedding, other: bool) -> None:
    values, shape = random(np.complex64, batch, *lengths), (batch, *lengths)
    dense: Embedding = lengths, 1, int(np.prod(lengths))
    first, second = (dense, embedding) if other else (embedding, dense)
    places, targets = offsets(shape, first), offsets(shape, second)
    content = np.full(places.max() + 1, np.nan, np.complex64)
    content[places] = values
    target = put(on, np.full(targets.max() + 1, 7, np.complex64))
    assert on.execute(on.plan(C2C, lengths, batch, (first, second)), put(on, content), target, FORWARD) == 0
    found = get(on, target, np.complex64, targets.max() + 1)
    wanted = np.fft.fftn(values, axes=tuple(range(1, len(shape))))
    assert np.allclose(found[targets], wanted, atol=1e-4)
    assert (np.delete(found, targets.ravel()) == 7).all()


def test_a_layout_of_real_numbers(on: Fft) -> None:
    values = random(np.float32, 3, 6)
    content = np.full((3, 8), np.nan, np.float32)
    content[:, :6] = values
    target = on.room(3 * 4 * 8)
    plan = on.plan(R2C, (6,), 3, (((8,), 1, 8), ((4,), 3, 1)))
    assert on.execute(plan, put(on, content), target) == 0
    assert np.allclose(get(on, target, np.complex64, 4, 3).T, np.fft.rfft(values), atol=1e-4)


@pytest.mark.parametrize(("stored", "kind"), [(np.float16, 6), (np.float32, 4), (np.float64, 5)])
def test_plans_of_any_type(on: Fft, stored: Any, kind: int) -> None:
    parts = random(stored, 2, 8, 2)
    made, work = ctypes.c_int(), ctypes.c_size_t()
    assert on.driver.simulated_cufftCreate(ctypes.byref(made)) == 0
    lengths, batch = (ctypes.c_longlong * 1)(8), ctypes.c_longlong(2)
    zero = ctypes.c_longlong(0)
    make = on.driver.simulated_cufftXtMakePlanMany
    layout = (None, zero, zero, kind)
    assert make(made, 1, lengths, *layout, *layout, batch, ctypes.byref(work), kind) == 0
    target = on.room(parts.nbytes)
    assert on.call("cufftXtExec", made.value, on.put(parts.reshape(-1)), target, INVERSE) == 0
    found = get(on, target, stored, 2, 8, 2).astype(np.float64)
    values = parts[..., 0].astype(np.float64) + 1j * parts[..., 1]
    wanted = np.fft.ifft(values, norm="forward")
    assert np.allclose(found[..., 0] + 1j * found[..., 1], wanted, atol=2e-2 if stored == np.float16 else 1e-4)


def test_plans_that_do_not_fit_are_refused(on: Fft) -> None:
    plan, at = on.plan(C2C, (8,)), on.room(128)
    assert on.call("cufftExecZ2Z", plan, at, at, FORWARD) == EXECUTION_FAILED
    made = ctypes.c_int()
    assert on.driver.simulated_cufftCreate(ctypes.byref(made)) == 0
    assert on.call("cufftExecC2C", made.value, at, at, FORWARD) == INVALID_PLAN
    assert on.call("cufftExecC2C", 999, at, at, FORWARD) == INVALID_PLAN


@pytest.mark.parametrize("wrong", [False, True])
def test_an_output_with_room_for_one_transform_less(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Fft)
    source = put(on, random(np.complex64, 4, 64))
    assert on.execute(on.plan(C2C, (64,), 4), source, on.room(512 * (3 if wrong else 4)), FORWARD) == 0
    if not wrong:
        assert on.findings() == ()
        return
    assert "cufftExecC2C writes 8 bytes" in on.observed()
    assert "directly after the end of a device block of 1,536 bytes" in on.observed()
    assert "at its operand output" in on.observed()


@pytest.mark.parametrize("wrong", [False, True])
def test_a_work_area_that_another_stream_uses(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Fft)
    area, plans = on.room(512), [on.plan(C2C, (64,)) for _ in range(2)]
    for plan in plans:
        assert on.driver.simulated_cufftSetWorkArea(plan, ctypes.c_void_p(area)) == 0
        assert on.driver.simulated_cufftSetStream(plan, ctypes.c_void_p(on.stream())) == 0
    blocks = [put(on, random(np.complex64, 64)) for _ in plans]
    on.wait()
    for plan, values in zip(plans, blocks, strict=True):
        assert on.execute(plan, values, values, FORWARD) == 0
        if not wrong:
            on.wait()
    findings = on.findings()
    assert [each.kind for each in findings] == ([Kind.RACE] if wrong else [])
    assert all("cufftExecC2C writes them at its operand work area" in each.observed for each in findings)
