"""Faults in calls of cuDNN: each is found, with the operand's name, and its correct twin is clean."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

from tests.simulator.dnn_programs import DESCRIPTOR, Dnn, random, rows

X: Final = random(2, 3, 5, 5)
W: Final = random(4, 3, 3, 3, seed=1)
Y: Final = (2, 4, 5, 5)
Y_BYTES: Final = 800
W_BYTES: Final = 432


def operands(on: Dnn) -> dict[str, int]:
    """Return the addresses of all that a convolution needs, when the device has done with them."""
    made = {"x": on.place(X), "w": on.place(W), "y": on.room(Y_BYTES), "work": on.room(W_BYTES)}
    on.wait()
    return made


def convolve(
    on: Dnn, given: dict[str, int] | None = None, beta: float = 0, strides: tuple[int, ...] = (), **more: int
) -> None:
    """Convolve two tensors."""
    x = on.shaped(X.shape, strides)
    of = on.convolution((1, 1), (1, 1), (1, 1))
    at = {**(given or operands(on)), **more}
    on.ok_dnn(
        "ConvolutionForward", on.dnn, on.host(1), x, at["x"], on.filter(W.shape), at["w"], of, 1, at["work"], W_BYTES,
        on.host(beta), on.shaped(Y), at["y"],
    )  # fmt: skip


def short_result(on: Dnn, wrong: bool) -> None:
    convolve(on, y=on.room(Y_BYTES - 4 if wrong else Y_BYTES))


def short_filter(on: Dnn, wrong: bool) -> None:
    convolve(on, w=on.place(W.ravel()[: 100 if wrong else 108]))


def freed_input(on: Dnn, wrong: bool) -> None:
    given = operands(on)
    if wrong:
        on.client.ok("Free", given["x"])
    convolve(on, given)


def short_workspace(on: Dnn, wrong: bool) -> None:
    convolve(on, work=on.room(W_BYTES - 64 if wrong else W_BYTES))


def unwritten_result(on: Dnn, wrong: bool) -> None:
    convolve(on, beta=1 if wrong else 0)


def wrong_strides(on: Dnn, wrong: bool) -> None:
    convolve(on, strides=(90, 30, 6, 1) if wrong else rows(X.shape))


def misaligned_input(on: Dnn, wrong: bool) -> None:
    convolve(on, x=on.put(np.concatenate([X.ravel(), X.ravel()])) + (2 if wrong else 4))


def race(on: Dnn, wrong: bool) -> None:
    given, first, second = operands(on), on.stream(), on.stream()
    assert on.driver.simulated_9_cudnnSetStream(ctypes.c_void_p(on.dnn), ctypes.c_void_p(first)) == 0
    convolve(on, given)
    on.client.ok("MemsetAsync", given["x"], 0, ctypes.c_size_t(X.nbytes), ctypes.c_void_p(second if wrong else first))


def factor_in_memory_of_a_device(on: Dnn, wrong: bool) -> None:
    shape, at = on.tensors(X)
    on.ok_dnn("ScaleTensor", on.dnn, shape, at, on.put(np.array([2], np.float32)) if wrong else on.host(2))


def short_running_variance(on: Dnn, wrong: bool) -> None:
    shape, at = on.tensors(X)
    derived = on.descriptor("TensorDescriptor")
    on.ok_dnn("DeriveBNTensorDescriptor", derived, shape, 1)
    ones, variance = on.place(np.ones(3, np.float32)), on.place(np.ones(2 if wrong else 3, np.float32))
    on.ok_dnn(
        "BatchNormalizationForwardInference", on.dnn, 1, on.host(1), on.host(0), shape, at, shape, on.room(X.nbytes),
        derived, ones, ones, ones, variance, ctypes.c_double(0.01),
    )  # fmt: skip


def short_tensor_of_a_graph(on: Dnn, wrong: bool) -> None:
    of = on.described(0, {0: (14, [0]), 1: (1, [0])})
    tensors = {751: on.tensor(0, (2, 3)), 752: on.tensor(1, (1, 3)), 753: on.tensor(2, (2, 3)), 750: of}
    plan = on.plan(on.described(13, {at: (DESCRIPTOR, [each]) for at, each in tensors.items()}))
    bias = on.place(np.ones(2 if wrong else 3, np.float32))
    assert on.execute(plan, {0: on.place(random(2, 3)), 1: bias, 2: on.room(24)}) == 0


def short_workspace_of_a_plan(on: Dnn, wrong: bool) -> None:
    of = on.described(1, {
        100: (1, [0]), 101: (7, [1]), 102: (3, [1, 1]), 103: (3, [1, 1]), 104: (3, [1, 1]), 105: (3, [1, 1]),
        106: (3, [2]),
    })  # fmt: skip
    tensors = {704: on.tensor(0, X.shape), 703: on.tensor(1, W.shape), 705: on.tensor(2, Y), 702: of}
    plan = on.plan(on.described(10, {at: (DESCRIPTOR, [each]) for at, each in tensors.items()}))
    work = on.room(W_BYTES // 2 if wrong else W_BYTES)
    assert on.execute(plan, {0: on.place(X), 1: on.place(W), 2: on.room(Y_BYTES)}, work) == 0


@dataclass(frozen=True, slots=True)
class Fault:
    """What a fault is reported as, and words of the finding."""

    make: Callable[[Dnn, bool], None]
    kind: Kind
    words: tuple[str, ...]


FORWARD: Final = "cudnnConvolutionForward"
FAULTS: Final = (
    Fault(short_result, Kind.OUT_OF_BOUNDS, (f"{FORWARD} writes", "after the end", "its operand y")),
    Fault(short_filter, Kind.OUT_OF_BOUNDS, (f"{FORWARD} reads", "after the end", "its operand w")),
    Fault(freed_input, Kind.USE_AFTER_FREE, (f"{FORWARD} reads", "freed before", "its operand x")),
    Fault(short_workspace, Kind.OUT_OF_BOUNDS, (f"{FORWARD} writes", "after the end", "its operand workspace")),
    Fault(unwritten_result, Kind.UNWRITTEN, (f"{FORWARD} reads", "which nobody has written", "its operand y")),
    Fault(wrong_strides, Kind.OUT_OF_BOUNDS, (f"{FORWARD} reads", "after the end", "its operand x")),
    Fault(misaligned_input, Kind.MISALIGNED, (f"{FORWARD} reads", "not a multiple of 4", "its operand x")),
    Fault(race, Kind.RACE, (f"{FORWARD} reads them at its operand x",)),
    Fault(factor_in_memory_of_a_device, Kind.WRONG_MEMORY, ("cudnnScaleTensor reads 4 bytes", "operand alpha")),
    Fault(short_running_variance, Kind.OUT_OF_BOUNDS, ("ForwardInference reads", "estimatedVariance")),
    Fault(short_tensor_of_a_graph, Kind.OUT_OF_BOUNDS, ("cudnnBackendExecute reads", "after the end", "its operand b")),
    Fault(
        short_workspace_of_a_plan, Kind.OUT_OF_BOUNDS,
        ("cudnnBackendExecute writes", "after the end", "its operand workspace"),
    ),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_a_fault_is_found_with_its_operand(libraries: Callable[..., Dnn], fault: Fault) -> None:
    on = libraries(Dnn, redzone=4096)
    fault.make(on, True)
    on.wait()
    found: list[tuple[Any, str]] = [(each.kind, each.observed) for each in on.findings()]
    assert found
    assert {kind for kind, _ in found} == {fault.kind}
    assert any(all(word in said for word in fault.words) for _, said in found), found


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_its_twin_is_clean(libraries: Callable[..., Dnn], fault: Fault, schedule: str) -> None:
    on = libraries(Dnn, schedule=schedule)
    fault.make(on, False)
    on.wait()
    assert on.findings() == ()
