"""cuRAND's numbers are those that cuRAND gives, as far as documents and headers say what these are.

"Generating random numbers on the device will result in the same sequence as generating them on the host CPU": the
values here were recorded from generators on the host of cuRAND 10.3.10, which need no GPU. Where that library is
installed, more of them are compared.
"""

from __future__ import annotations

import ctypes
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.library_programs import Array, Libraries

pytest.importorskip("scipy")

from quiesce.model.rules import Kind
from quiesce.simulator.libraries import random as random_rows

XORWOW, MRG32K3A, MTGP32, MT19937, PHILOX = 100, 121, 141, 142, 161
SOBOL32, SCRAMBLED_SOBOL32, SOBOL64, SCRAMBLED_SOBOL64 = range(201, 205)
TYPE_ERROR, OUT_OF_RANGE, NOT_A_MULTIPLE, UNSUPPORTED = 103, 104, 105, 999
FUNCTIONS: Final = {
    "bits": ("curandGenerate", np.uint32),
    "long": ("curandGenerateLongLong", np.uint64),
    "uniform": ("curandGenerateUniform", np.float32),
    "uniform_double": ("curandGenerateUniformDouble", np.float64),
    "normal": ("curandGenerateNormal", np.float32),
    "normal_double": ("curandGenerateNormalDouble", np.float64),
}
FIRST: Final = {
    XORWOW: [3179217846, 3955638199, 167591721, 4161663997],
    MRG32K3A: [545508615, 341016064, 1125210161, 2161280324],
    PHILOX: [1713891541, 3781805453, 3159862348, 2600524760],
    SOBOL32: [0, 2147483648, 3221225472, 1073741824],
    SOBOL64: [0, 9223372036854775808, 13835058055282163712, 4611686018427387904],
}
"""What generators give first that were told nothing."""


def arguments(kind: str) -> tuple[Any, ...]:
    """Return the mean and the deviation of a normal distribution."""
    if not kind.startswith("normal"):
        return ()
    made = ctypes.c_float if kind == "normal" else ctypes.c_double
    return made(0), made(1)


class Generators(Libraries):
    """A device with generators."""

    def generator(self, kind: int, *, seed: int = 0, offset: int = 0, dimensions: int = 1, host: bool = False) -> int:
        made = ctypes.c_void_p()
        create = "curandCreateGeneratorHost" if host else "curandCreateGenerator"
        assert getattr(self.driver, f"simulated_{create}")(ctypes.byref(made), kind) == 0
        handle = made.value or 0
        if seed:
            self.setting("curandSetPseudoRandomGeneratorSeed", handle, seed)
        if offset:
            self.setting("curandSetGeneratorOffset", handle, offset)
        if dimensions > 1:
            self.setting("curandSetQuasiRandomGeneratorDimensions", handle, dimensions)
        return handle

    def generate(self, generator: int, kind: str, count: int) -> Array:
        name, dtype = FUNCTIONS[kind]
        to = self.room(count * np.dtype(dtype).itemsize)
        assert self.call(name, generator, to, count, *arguments(kind)) == 0
        return self.get(to, dtype, count)


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Generators]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Generators)
    yield made
    assert made.findings() == ()


@pytest.mark.parametrize("kind", FIRST)
def test_the_first_numbers_are_those_of_curand(on: Generators, kind: int) -> None:
    found = on.generate(on.generator(kind), "long" if kind == SOBOL64 else "bits", 4)
    assert list(found) == FIRST[kind]


class Vendor:
    """A generator on the host of the library that is installed."""

    def __init__(self, library: ctypes.CDLL, kind: int, seed: int, offset: int, dimensions: int) -> None:
        self._library, self._handle = library, ctypes.c_void_p()
        assert library.curandCreateGeneratorHost(ctypes.byref(self._handle), kind) == 0
        if kind < SOBOL32:
            assert library.curandSetPseudoRandomGeneratorSeed(self._handle, ctypes.c_ulonglong(seed)) == 0
        else:
            assert library.curandSetQuasiRandomGeneratorDimensions(self._handle, dimensions) == 0
        assert library.curandSetGeneratorOffset(self._handle, ctypes.c_ulonglong(offset)) == 0

    def take(self, kind: str, count: int) -> Array:
        name, dtype = FUNCTIONS[kind]
        made = np.zeros(count, dtype)
        place = ctypes.c_void_p(made.ctypes.data)
        assert getattr(self._library, name)(self._handle, place, ctypes.c_size_t(count), *arguments(kind)) == 0
        return made


@pytest.fixture(scope="module")
def vendor() -> Callable[..., Vendor]:
    path = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "curand" / "lib" / "libcurand.so.10"
    if not path.exists():
        pytest.skip("needs cuRAND: nvidia-curand-cu12")
    library = ctypes.CDLL(str(path))
    return lambda kind, seed=0, offset=0, dimensions=1: Vendor(library, kind, seed, offset, dimensions)


def own(kind: int, seed: int = 0, offset: int = 0, dimensions: int = 1) -> Any:
    """Return what a row takes its numbers from."""
    settings = [0] * 24
    settings[:5] = kind, seed, offset, 0, dimensions
    return random_rows._new(tuple(settings))


def same(found: Array, wanted: Array) -> bool:
    """Say whether numbers are the same: but for the last digits of logarithms and sines."""
    if wanted.dtype.kind == "u":
        return bool((found == wanted).all())
    tolerance = 2e-6 if wanted.dtype == np.float32 else 1e-13
    return bool(np.allclose(found.astype(wanted.dtype), wanted, rtol=tolerance, atol=tolerance))


KINDS: Final = ("bits", "uniform", "uniform_double", "normal", "normal_double")


@pytest.mark.parametrize("numbers", KINDS)
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (5, 0), ((7 << 32) + 3, 0), (9, 5), (9, 100_003)])
@pytest.mark.parametrize("kind", [XORWOW, MRG32K3A, PHILOX])
def test_many_numbers_are_those_of_curand(
    vendor: Callable[..., Vendor], kind: int, seed: int, offset: int, numbers: str
) -> None:
    count = 300_000
    found, wanted = own(kind, seed, offset).take(numbers, count), vendor(kind, seed, offset).take(numbers, count)
    assert same(found, wanted)
    if numbers.startswith("uniform"):
        assert (found == wanted).all()


@pytest.mark.parametrize("kind", [XORWOW, MRG32K3A, PHILOX])
def test_calls_of_different_kinds_go_on_where_the_last_one_ended(vendor: Callable[..., Vendor], kind: int) -> None:
    mine, real = own(kind, 11), vendor(kind, 11)
    for numbers, count in (
        ("bits", 7), ("uniform_double", 5), ("normal", 6), ("uniform", 3), ("normal_double", 10), ("bits", 9),
        ("uniform", 100_001), ("bits", 13),
    ):  # fmt: skip
        assert same(mine.take(numbers, count), real.take(numbers, count)), numbers


@pytest.mark.parametrize("numbers", KINDS)
@pytest.mark.parametrize(("kind", "dimensions"), [(SOBOL32, 1), (SOBOL32, 70), (SOBOL64, 1), (SOBOL64, 40)])
def test_points_of_sobol(vendor: Callable[..., Vendor], kind: int, dimensions: int, numbers: str) -> None:
    mine, real = own(kind, offset=77, dimensions=dimensions), vendor(kind, offset=77, dimensions=dimensions)
    name = "long" if numbers == "bits" and kind == SOBOL64 else numbers
    for _ in range(2):
        assert same(mine.take(numbers, 1000 * dimensions), real.take(name, 1000 * dimensions))


@pytest.mark.parametrize("kind", [XORWOW, MRG32K3A, MTGP32, MT19937, PHILOX, SCRAMBLED_SOBOL32, SCRAMBLED_SOBOL64])
def test_distributions(on: Generators, kind: int) -> None:
    made = on.generator(kind, seed=3)
    uniform, normal = on.generate(made, "uniform", 1 << 16), on.generate(made, "normal_double", 1 << 16)
    assert abs(uniform.mean() - 0.5) < 0.01
    assert 0 < uniform.min() < 0.001
    assert 0.999 < uniform.max() <= 1
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 1) < 0.02
    to = on.room(4 << 16)
    assert on.call("curandGeneratePoisson", made, to, 1 << 16, ctypes.c_double(6.5)) == 0
    events = on.get(to, np.uint32, 1 << 16)
    assert abs(events.mean() - 6.5) < 0.1
    assert abs(events.var() - 6.5) < 0.3


def test_the_mean_and_the_deviation(on: Generators) -> None:
    to = on.room(8 << 12)
    made = on.generator(PHILOX)
    assert on.call("curandGenerateLogNormalDouble", made, to, 1 << 12, ctypes.c_double(2), ctypes.c_double(0.5)) == 0
    found = np.log(on.get(to, np.float64, 1 << 12))
    assert np.allclose(found, on.generate(on.generator(PHILOX), "normal_double", 1 << 12) * 0.5 + 2)


def test_a_seed_begins_anew(on: Generators) -> None:
    made = on.generator(XORWOW, seed=5)
    first, second = on.generate(made, "bits", 100), on.generate(made, "bits", 100)
    assert (first != second).any()
    on.setting("curandSetPseudoRandomGeneratorSeed", made, 5)
    assert (on.generate(made, "bits", 200) == np.concatenate([first, second])).all()


def test_a_generator_of_the_host_writes_there(on: Generators) -> None:
    to = np.zeros(4, np.uint32)
    assert on.call("curandGenerate", on.generator(XORWOW, host=True), to.ctypes.data, 4) == 0
    assert list(to) == FIRST[XORWOW]


@pytest.mark.parametrize(
    ("kind", "function", "count", "status"),
    [
        (XORWOW, "curandGenerateNormal", 3, NOT_A_MULTIPLE),
        (XORWOW, "curandGenerateLongLong", 4, TYPE_ERROR),
        (SOBOL64, "curandGenerate", 4, TYPE_ERROR),
        (SOBOL32, "curandGenerate", 7, NOT_A_MULTIPLE),
        (XORWOW, "curandGeneratePoisson", 4, OUT_OF_RANGE),
    ],
)
def test_what_does_not_fit_is_refused(on: Generators, kind: int, function: str, count: int, status: int) -> None:
    made = on.generator(kind, dimensions=3 if kind == SOBOL32 else 1)
    zero = ctypes.c_double(0) if "Poisson" in function else ctypes.c_float(0)
    assert on.call(function, made, on.room(64), count, zero, ctypes.c_float(1)) == status


def test_an_ordering_that_nothing_describes_fails_by_name(libraries: Callable[..., Any], capfd: Any) -> None:
    on = libraries(Generators)
    made = on.generator(XORWOW)
    on.setting("curandSetGeneratorOrdering", made, 102)
    assert on.call("curandGenerate", made, on.room(64), 4) == UNSUPPORTED
    assert "curandGenerate is not simulated; the ordering CURAND_ORDERING_PSEUDO_SEEDED" in capfd.readouterr().err


@pytest.mark.parametrize("wrong", [False, True])
def test_an_output_that_was_freed(libraries: Callable[..., Any], wrong: bool) -> None:
    on = libraries(Generators)
    made, to = on.generator(XORWOW), on.room(4096)
    if wrong:
        on.client.ok("Free", to)
    assert on.call("curandGenerateUniform", made, to, 1024) == 0
    if not wrong:
        assert on.findings() == ()
        return
    assert "curandGenerateUniform writes 4 bytes" in on.observed()
    assert "its operand output" in on.observed()
    assert [each.kind for each in on.findings()] == [Kind.USE_AFTER_FREE]
