"""cuDNN's graph interface: plans compute what their graphs describe, and descriptors hold what they are told."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy import special
from tests.simulator.dnn_programs import (
    BFLOAT,
    CONFIG,
    DATA_TYPE,
    DESCRIPTOR,
    DOUBLE,
    ENGINE,
    FLOAT,
    GRAPH,
    HALF,
    INT32,
    INT64,
    MODE,
    POINTWISE,
    REAL,
    REDUCTION,
    TENSOR,
    Dnn,
    channels_last,
    convolved,
    random,
    rows,
)

MakeLibraries = Callable[..., Any]
FORWARD, BACKWARD_FILTER, BACKWARD_DATA, POINT, MATMUL, REDUCE = 10, 11, 12, 13, 19, 22
NOT_INITIALIZED, WRONG, NULL, NOT_FINAL, NOT_SUPPORTED = 1001, 2000, 2002, 2004, 3000
OPERANDS = {
    FORWARD: (704, 703, 705, 702, 700, 701),
    BACKWARD_DATA: (711, 709, 710, 708, 706, 707),
    BACKWARD_FILTER: (716, 717, 715, 714, 712, 713),
}


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Dnn]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Dnn)
    yield made
    assert made.findings() == ()


def convolution(on: Dnn, kind: int, tensors: Sequence[int], **more: Any) -> int:
    """Return an operation: of two tensors, a third one."""
    spatial = len(more["pads"])
    of = on.described(1, {
        100: (DATA_TYPE, [FLOAT]), 101: (MODE, [0 if more.get("turns") else 1]), 102: (INT64, more["dilations"]),
        103: (INT64, more["strides"]), 104: (INT64, more["pads"]), 105: (INT64, more["pads"]), 106: (INT64, [spatial]),
    })  # fmt: skip
    names = OPERANDS[kind]
    attributes: dict[int, Any] = {name: (DESCRIPTOR, [each]) for name, each in zip(names, (*tensors, of), strict=False)}
    attributes[names[4]] = (REAL, [more.get("alpha", 1.0)])
    attributes[names[5]] = (REAL, [more.get("beta", 0.0)])
    return on.described(kind, attributes)


def point(on: Dnn, mode: int, tensors: dict[int, int], **more: float) -> int:
    """Return a pointwise operation of tensors by the attributes that they are."""
    factor = more.pop("alpha", 1.0)
    numbers = {"lower": 3, "upper": 4, "slope": 5, "elu": 6, "softplus": 7, "swish": 8}
    settings = {numbers[name]: (REAL, [value]) for name, value in more.items()}
    of = on.described(0, {0: (POINTWISE, [mode]), 1: (DATA_TYPE, [FLOAT]), **settings})
    operands = {at: (DESCRIPTOR, [each]) for at, each in tensors.items()}
    return on.described(POINT, {750: (DESCRIPTOR, [of]), 755: (REAL, [factor]), **operands})


SHAPES = [
    ((2, 3, 7, 8), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 4, 9, 8), (6, 2, 3, 2), (0, 2), (2, 3), (2, 1)),
    ((1, 4, 5, 5), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 2, 4, 5, 6), (3, 2, 2, 3, 2), (1, 0, 1), (1, 2, 1), (1, 1, 2)),
    ((2, 3, 9), (2, 3, 4), (2,), (2,), (2,)),
]


def geometry(index: int) -> dict[str, Any]:
    _, _, pads, strides, dilations = SHAPES[index]
    return {"pads": pads, "strides": strides, "dilations": dilations}


@pytest.mark.parametrize("layout", [rows, channels_last])
@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_convolutions(on: Dnn, index: int, layout: Any) -> None:
    x, w = random(*SHAPES[index][0]), random(*SHAPES[index][1], seed=1)
    wanted = convolved(x, w, **geometry(index))
    shapes = x.shape, w.shape, wanted.shape
    tensors = [on.tensor(number, shape, layout(shape)) for number, shape in enumerate(shapes)]
    plan = on.plan(convolution(on, FORWARD, (tensors[0], tensors[1], tensors[2]), **geometry(index)))
    assert on.got(plan, 402, INT64) == [4 * w.size]
    y = on.room(wanted.size * 4)
    assert on.execute(plan, {0: on.place(x, layout(x.shape)), 1: on.place(w, layout(w.shape)), 2: y}) == 0
    assert np.allclose(on.taken(y, wanted.shape, layout(wanted.shape)), wanted, atol=1e-5)


def test_a_convolution_turns_its_filter_and_blends_its_result(on: Dnn) -> None:
    x, w = random(*SHAPES[0][0]), random(*SHAPES[0][1], seed=1)
    wanted = convolved(x, w, **geometry(0), turns=True)
    before = random(*wanted.shape, seed=2)
    tensors = [on.tensor(number, each.shape) for number, each in enumerate((x, w, wanted))]
    operation = convolution(on, FORWARD, tensors, **geometry(0), turns=True, alpha=2.0, beta=3.0)
    y = on.place(before)
    assert on.execute(on.plan(operation), {0: on.place(x), 1: on.place(w), 2: y}) == 0
    assert np.allclose(on.taken(y, wanted.shape), 2 * wanted + 3 * before, atol=1e-5)


@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_gradients_are_adjoint(on: Dnn, index: int) -> None:
    x, w = (random(*SHAPES[index][at], seed=at, dtype=np.float64) for at in (0, 1))
    dy = random(*convolved(x, w, **geometry(index)).shape, seed=2, dtype=np.float64)
    for kind, first, second, result in ((BACKWARD_DATA, dy, w, x), (BACKWARD_FILTER, x, dy, w)):
        tensors = [on.tensor(number, each.shape, kind=DOUBLE) for number, each in enumerate((first, second, result))]
        plan = on.plan(convolution(on, kind, tensors, **geometry(index)))
        address = on.room(result.nbytes)
        assert on.execute(plan, {0: on.place(first), 1: on.place(second), 2: address}) == 0
        found = on.taken(address, result.shape, dtype=np.float64)
        for seed in range(3, 6):
            along = random(*result.shape, seed=seed, dtype=np.float64)
            moved = (
                convolved(along, w, **geometry(index))
                if kind == BACKWARD_DATA
                else convolved(x, along, **geometry(index))
            )
            assert np.isclose((found * along).sum(), (dy * moved).sum())


def test_a_tensor_that_is_multiplied_by_nothing_is_not_read(on: Dnn) -> None:
    x, y = random(2, 3), on.room(24)
    operation = point(on, 0, {751: on.tensor(0, (2, 3)), 752: on.tensor(1, (2, 3)), 753: on.tensor(2, (2, 3))}, alpha=0)
    assert on.execute(on.plan(operation), {0: on.place(x), 1: y, 2: y}) == 0
    assert np.array_equal(on.taken(y, (2, 3)), x)


@pytest.mark.parametrize("kind", [HALF, BFLOAT])
def test_half_precision_is_rounded_once(on: Dnn, kind: int) -> None:
    def stored(values: Any) -> Any:
        return values.astype(np.float16) if kind == HALF else (values.view(np.uint32) >> 16).astype(np.uint16)

    def real(values: Any) -> Any:
        return values.astype(np.float32) if kind == HALF else (values.astype(np.uint32) << 16).view(np.float32)

    x, w = stored(random(1, 4, 6, 6)), stored(random(4, 4, 3, 3, seed=1))
    wanted = convolved(real(x), real(w), (1, 1), (1, 1), (1, 1))
    tensors = [on.tensor(number, each.shape, kind=kind) for number, each in enumerate((x, w, wanted))]
    plan = on.plan(convolution(on, FORWARD, tensors, **geometry(0)))
    y = on.room(wanted.size * 2)
    assert on.execute(plan, {0: on.place(x), 1: on.place(w), 2: y}) == 0
    found = real(on.taken(y, wanted.shape, dtype=x.dtype))
    assert np.allclose(found, wanted, rtol=2**-7 if kind == BFLOAT else 2**-10, atol=1e-3)


def test_what_follows_a_convolution_needs_no_memory_between(on: Dnn) -> None:
    x, w, bias = random(*SHAPES[0][0]), random(*SHAPES[0][1], seed=1), random(1, 4, 1, 1, seed=2)
    made = convolved(x, w, **geometry(0))
    side = random(*made.shape, seed=3)
    given = [on.tensor(number, each.shape) for number, each in enumerate((x, w, bias, side, made))]
    between = [on.tensor(number, made.shape, virtual=True) for number in (10, 11, 12)]
    operations = [
        point(on, 100, {751: between[2], 753: given[4]}, lower=0.0),
        point(on, 0, {751: between[1], 752: given[2], 753: between[2]}),
        point(on, 0, {751: between[0], 752: given[3], 753: between[1]}),
        convolution(on, FORWARD, (given[0], given[1], between[0]), **geometry(0)),
    ]
    y = on.room(made.size * 4)
    addresses = {number: on.place(each) for number, each in enumerate((x, w, bias, side))}
    assert on.execute(on.plan(*operations), {**addresses, 4: y}) == 0
    assert np.allclose(on.taken(y, made.shape), np.maximum(made + side + bias, 0), atol=1e-5)


UNARY: dict[int, Any] = {
    4: np.sqrt, 10: np.abs, 11: np.ceil, 12: np.cos, 13: np.exp, 14: np.floor, 15: np.log, 16: np.negative,
    17: lambda x: x**-0.5, 18: np.sin, 19: np.tan, 20: special.erf, 21: np.copy, 22: np.reciprocal,
    101: np.tanh, 102: special.expit, 105: lambda x: np.log1p(np.exp(x)), 106: lambda x: x * special.expit(x),
    104: lambda x: x * special.ndtr(x), 103: lambda x: np.where(x > 0, x, np.expm1(x)),
    107: lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
}  # fmt: skip
BINARY: dict[int, Any] = {
    0: np.add, 1: np.multiply, 2: np.minimum, 3: np.maximum, 5: lambda x, b: x + b * b, 6: np.divide, 7: np.fmod,
    8: np.power, 9: np.subtract, 23: np.arctan2, 24: np.mod, 300: np.equal, 301: np.not_equal, 302: np.greater,
    303: np.greater_equal, 304: np.less, 305: np.less_equal,
}  # fmt: skip


@pytest.mark.parametrize("mode", [*UNARY, *BINARY])
def test_pointwise(on: Dnn, mode: int) -> None:
    signed = mode in (10, 11, 14, 16, 20, 101, 102, 103, 104, 105, 106, 107)
    x = random(2, 3, 4) * 3 if signed else np.abs(random(2, 3, 4)) + 0.25
    b = np.abs(random(1, 3, 1, seed=1)) + 0.25
    tensors = {751: on.tensor(0, x.shape), 753: on.tensor(2, x.shape)}
    if mode in BINARY:
        tensors[752] = on.tensor(1, b.shape)
    y = on.room(x.nbytes)
    given = {0: on.place(x), 1: on.place(b), 2: y} if mode in BINARY else {0: on.place(x), 2: y}
    assert on.execute(on.plan(point(on, mode, tensors)), given) == 0
    wanted = BINARY[mode](x, b) if mode in BINARY else UNARY[mode](x)
    assert np.allclose(on.taken(y, x.shape), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", range(100, 108))
def test_derivatives_are_those_of_activations(on: Dnn, mode: int) -> None:
    x, dy, step = random(4, 5, dtype=np.float64) * 2, random(4, 5, seed=1, dtype=np.float64), 1e-6
    more = {"lower": 0.1, "slope": 0.2, "upper": 1.5} if mode == 100 else {"elu": 0.7, "softplus": 1.3, "swish": 0.8}

    def run(mode: int, tensors: dict[int, tuple[int, Any]]) -> Any:
        described = {at: on.tensor(number, x.shape, kind=DOUBLE) for at, (number, _) in tensors.items()}
        result = on.room(x.nbytes)
        given = {number: result if values is None else on.place(values) for number, values in tensors.values()}
        assert on.execute(on.plan(point(on, mode, described, **more)), given) == 0
        return on.taken(result, x.shape, dtype=np.float64)

    slope = (
        (run(mode, {751: (0, x + step), 753: (1, None)}) - run(mode, {751: (0, x - step), 753: (1, None)})) / 2 / step
    )
    found = run(mode + 100, {751: (0, x), 757: (1, dy), 756: (2, None)})
    assert np.allclose(found, slope * dy, atol=1e-5)
    if mode in (101, 102):
        y = run(mode, {751: (0, x), 753: (1, None)})
        assert np.allclose(run(mode + 100, {753: (0, y), 757: (1, dy), 756: (2, None)}), slope * dy, atol=1e-5)


def test_a_mask_selects_and_a_number_may_lie_on_the_host(on: Dnn) -> None:
    x, y = random(2, 3), on.room(24)
    tensors = [on.tensor(0, (2, 3)), on.tensor(1, (1, 1), by_value=True), on.tensor(2, (2, 3), virtual=True),
               on.tensor(3, (2, 3))]  # fmt: skip
    operations = [
        point(on, 302, {751: tensors[0], 752: tensors[1], 753: tensors[2]}),
        point(on, 601, {751: tensors[0], 752: tensors[1], 758: tensors[2], 753: tensors[3]}),
    ]
    assert on.execute(on.plan(*operations), {0: on.place(x), 1: on.host(0.25), 3: y}) == 0
    assert np.allclose(on.taken(y, (2, 3)), np.maximum(x, 0.25))


def test_products(on: Dnn) -> None:
    a, b = random(2, 3, 4), random(2, 4, 5, seed=1)
    tensors = [on.tensor(number, shape) for number, shape in enumerate(((2, 3, 4), (2, 4, 5), (2, 3, 5)))]
    of = on.described(18, {1500: (DATA_TYPE, [FLOAT])})
    parts = zip((1520, 1521, 1522, 1523), (*tensors, of), strict=True)
    plan = on.plan(on.described(MATMUL, {at: (DESCRIPTOR, [each]) for at, each in parts}))
    c = on.room(120)
    assert on.execute(plan, {0: on.place(a), 1: on.place(b), 2: c}) == 0
    assert np.allclose(on.taken(c, (2, 3, 5)), a @ b, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        (0, np.sum), (1, np.prod), (2, np.min), (3, np.max), (4, lambda x, **k: np.abs(x).max(**k)), (5, np.mean),
        (6, lambda x, **k: np.abs(x).sum(**k)), (7, lambda x, **k: np.sqrt((x * x).sum(**k))),
        (8, lambda x, **k: np.where(x == 0, 1, x).prod(**k)),
    ],
)  # fmt: skip
def test_reductions(on: Dnn, operator: int, wanted: Any) -> None:
    x = random(2, 3, 4)
    x[0, 0, 0] = 0
    of = on.described(21, {1600: (REDUCTION, [operator]), 1601: (DATA_TYPE, [FLOAT])})
    tensors = {1610: on.tensor(0, x.shape), 1611: on.tensor(1, (1, 3, 1)), 1612: of}
    plan = on.plan(on.described(REDUCE, {at: (DESCRIPTOR, [each]) for at, each in tensors.items()}))
    y = on.room(12)
    assert on.execute(plan, {0: on.place(x), 1: y}) == 0
    assert np.allclose(on.taken(y, (1, 3, 1)), wanted(x, axis=(0, 2), keepdims=True), atol=1e-5)


# -- descriptors ------------------------------------------------------------------------------------------------------


def test_attributes_are_kept(on: Dnn) -> None:
    tensor = on.described(TENSOR, {}, final=False)
    assert on.set(tensor, 902, INT64, 1, 2, 3) == 0
    assert on.dnn_call("BackendFinalize", tensor) == WRONG
    for name, kind, values in (
        (906, INT64, [7]),
        (901, DATA_TYPE, [HALF]),
        (903, INT64, [6, 3, 1]),
        (902, INT64, [4, 2, 3]),
    ):
        assert on.set(tensor, name, kind, *values) == 0
    count = ctypes.c_int64()
    assert on.dnn_call("BackendGetAttribute", tensor, 902, INT64, 3, None, (ctypes.c_int64 * 3)()) == NOT_INITIALIZED
    assert on.dnn_call("BackendFinalize", tensor) == 0
    assert on.set(tensor, 902, INT64, 1) == NOT_INITIALIZED
    assert on.got(tensor, 902, INT64) == [4, 2, 3]
    assert on.dnn_call("BackendGetAttribute", tensor, 902, INT64, 0, ctypes.byref(count), None) == 0
    assert count.value == 3
    assert on.dnn_call("BackendGetAttribute", tensor, 902, DATA_TYPE, 0, ctypes.byref(count), None) == WRONG
    assert on.dnn_call("BackendGetAttribute", tensor, 910, INT64, 0, ctypes.byref(count), None) == WRONG
    assert on.dnn_call("BackendDestroyDescriptor", tensor) == 0


def test_engines_are_chosen_by_their_number(on: Dnn) -> None:
    x = random(2, 3)
    tensors = {751: on.tensor(0, x.shape), 753: on.tensor(1, x.shape)}
    graph = on.described(GRAPH, {801: (DESCRIPTOR, [point(on, 16, tensors)])})
    assert on.got(graph, 802, INT64) == [1]
    other = on.described(ENGINE, {1300: (DESCRIPTOR, [graph]), 1301: (INT64, [1])}, final=False)
    assert on.dnn_call("BackendFinalize", other) == NOT_SUPPORTED
    engine = on.described(ENGINE, {1300: (DESCRIPTOR, [graph]), 1301: (INT64, [0])})
    assert on.got(engine, 1303, DATA_TYPE) == on.got(engine, 1302, DESCRIPTOR) == []
    config = on.described(CONFIG, {300: (DESCRIPTOR, [engine])})
    shown = on.described(ENGINE, {}, final=False)
    results = (ctypes.c_uint64 * 1)(shown)
    on.ok_dnn("BackendGetAttribute", config, 300, DESCRIPTOR, 1, None, results)
    assert on.got(shown, 1301, INT64) == [0]
    wrong = (ctypes.c_uint64 * 1)(on.described(TENSOR, {}, final=False))
    assert on.dnn_call("BackendGetAttribute", config, 300, DESCRIPTOR, 1, None, wrong) == WRONG
    plan, y = on.described(5, {401: (DESCRIPTOR, [config])}), on.room(24)
    assert on.execute(plan, {0: on.place(x), 1: y}) == 0
    assert np.allclose(on.taken(y, x.shape), -x)
    assert on.execute(plan, {0: on.place(x)}) == WRONG


def test_a_descriptor_must_be_final_before_others_hold_it(on: Dnn) -> None:
    graph = on.described(GRAPH, {}, final=False)
    assert on.set(graph, 801, DESCRIPTOR, on.described(POINT, {}, final=False)) == NOT_FINAL
    assert on.set(graph, 801, DESCRIPTOR, 0) == NULL
    assert on.dnn_call("BackendFinalize", graph) == WRONG
    assert on.dnn_call("BackendCreateDescriptor", 99, ctypes.byref(ctypes.c_uint64())) == NOT_SUPPORTED


def test_statuses_have_the_numbers_of_their_version(on: Dnn) -> None:
    made = ctypes.c_uint64()
    assert on.driver.computed_8_cudnnBackendCreateDescriptor(99, ctypes.byref(made)) == 9
    assert on.driver.computed_8_cudnnBackendFinalize(None) == 3
    texts = {8: {9: b"NOT_SUPPORTED", 3: b"BAD_PARAM"}, 9: {3000: b"NOT_SUPPORTED", 2000: b"BAD_PARAM"}}
    for version, statuses in texts.items():
        get = getattr(on.driver, f"computed_{version}_cudnnGetErrorString")
        get.restype = ctypes.c_char_p
        assert {status: get(status) for status in statuses} == {
            status: b"CUDNN_STATUS_" + text for status, text in statuses.items()
        }


def test_what_nothing_describes_fails_by_name(libraries: MakeLibraries, capfd: Any) -> None:
    on = libraries(Dnn)
    tensors = [on.tensor(0, (2, 3)), on.tensor(1, (2, 3), kind=12), on.tensor(2, (2, 3), kind=INT32)]
    at = on.place(random(2, 3))
    for mode, result in ((999, tensors[2]), (16, tensors[1])):
        plan = on.plan(point(on, mode, {751: tensors[0], 753: result}))
        assert on.execute(plan, {0: at, 1: at, 2: at}) == NOT_SUPPORTED
    plan = on.plan(on.described(29, {}))
    assert on.execute(plan, {}) == NOT_SUPPORTED
    assert "cudnnBackendExecute is not simulated" in capfd.readouterr().err
