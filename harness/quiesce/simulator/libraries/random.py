"""cuRAND: numbers of a generator in a device's memory, or in the host's.

The results of XORWOW, MRG32k3a, Philox and Sobol are those of cuRAND, but for the last digits of normal ones. Those of
the Mersenne twisters, of scrambled Sobol sequences and of Poisson distributions have the same distribution only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
import scipy.special
import scipy.stats

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.random_sources import Lanes, Mersenne, Mrg, Philox, Stream, Xorwow
from quiesce.simulator.libraries.table import Call, NotDescribed, Refused, Work, computes

KIND, SEED, OFFSET, ORDERING, DIMENSIONS, IS_HOST, CALLS, CHANGES = 0, 1, 2, 3, 4, 5, 22, 23
"""Settings of a generator; the last two count calls that generate, and changes of settings."""
TYPE_ERROR, OUT_OF_RANGE, NOT_A_MULTIPLE = 103, 104, 105
SEEDED: Final = 102
OFFSET_MAX: Final = 1 << 28
PSEUDO: Final[dict[int, Callable[[int], Lanes]]] = {
    100: Xorwow, 101: Xorwow, 121: Mrg, 141: Mersenne, 142: Mersenne, 161: Philox,
}  # fmt: skip
"""Generators by ``curandRngType_t``."""
SOBOL, SOBOL_64 = (200, 201, 202), (203, 204)
SCRAMBLED: Final = (202, 204)


class Numbers(Protocol):
    """What a generator gives."""

    def take(self, kind: str, count: int) -> Array:
        """Return results."""


class Sobol:
    """Sobol sequences: "the size-n output will consist of n / d results from dimension 1, followed by …"."""

    def __init__(self, kind: int, dimensions: int, offset: int) -> None:
        self._width = 64 if kind in SOBOL_64 else 32
        engine = scipy.stats.qmc.Sobol(dimensions, scramble=False, bits=self._width)
        self._vectors = np.asarray(engine._sv, np.uint64)  # Joe and Kuo's, which cuRAND has too
        source = np.random.default_rng(dimensions)
        shifts = source.integers(0, 2**self._width - 1, dimensions, np.uint64, endpoint=True)
        self._shifts = shifts if kind in SCRAMBLED else np.zeros(dimensions, np.uint64)
        self._at = offset

    def _points(self, count: int) -> Array:
        numbers = np.arange(self._at, self._at + count, dtype=np.uint64)
        gray = numbers ^ (numbers >> np.uint64(1))
        made = np.zeros((len(self._vectors), count), np.uint64)
        for bit in range(self._width):
            is_set = (gray >> np.uint64(bit) & np.uint64(1)).astype(bool)
            if is_set.any():
                made[:, is_set] ^= self._vectors[:, bit, None]
        self._at += count
        return made ^ self._shifts[:, None]

    def take(self, kind: str, count: int) -> Array:
        """Return results, dimension by dimension."""
        if count % len(self._vectors):
            raise ValueError(count)
        points = self._points(count // len(self._vectors)).reshape(-1)
        match kind:
            case "bits":
                return points.astype(np.uint32 if self._width == 32 else np.uint64)
            case "uniform":
                words = points >> np.uint64(32) if self._width == 64 else points
                return words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)
            case "uniform_double":
                if self._width == 64:
                    return np.asarray((points >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54)
                return np.asarray(points.astype(np.float64) * 2.0**-32 + 2.0**-32)
            case _:  # by the inverse of the distribution, of so many bits
                used = 32 if self._width == 32 or kind == "normal" else 53
                uniform = ((points >> np.uint64(self._width - used)).astype(np.float64) + 0.5) * 2.0**-used
                return np.asarray(scipy.special.ndtri(uniform))


def _new(settings: tuple[int, ...]) -> Numbers:
    kind = settings[KIND]
    if kind in PSEUDO:
        return Stream(PSEUDO[kind](settings[SEED]), settings[OFFSET])
    return Sobol(kind, settings[DIMENSIONS], settings[OFFSET])


def _numbers(call: Call[Any]) -> Numbers:
    """Return where the generator of a call is. It begins anew after each change of its settings."""
    changes = call.settings[CHANGES]
    held = call.state.get(call.object)
    if held is None or held[0] != changes:
        if call.settings[CALLS] > 1:  # another process knew where it was
            raise RuntimeError("the state of the generator was lost with the process that had it")
        held = call.state[call.object] = (changes, _new(call.settings))
    numbers: Numbers = held[1]
    return numbers


def _generate(call: Call[Any], dtype: Any, take: Callable[[Numbers], Array]) -> Work:
    """Return what writes the results of a call. Refuses a size that does not fit."""
    settings, of = call.settings, call.arguments
    if settings[KIND] not in PSEUDO and of.n % max(1, settings[DIMENSIONS]):
        raise Refused(NOT_A_MULTIPLE)
    if settings[ORDERING] == SEEDED:
        raise NotDescribed("the ordering CURAND_ORDERING_PSEUDO_SEEDED is not described")
    if settings[KIND] in PSEUDO and settings[OFFSET] > OFFSET_MAX:
        raise NotDescribed(f"an offset of more than {OFFSET_MAX:,} is not described")
    is_host = bool(settings[IS_HOST])
    call.waits = is_host

    def run() -> None:
        values = take(_numbers(call)).astype(dtype, copy=False)
        if is_host:
            call.give_to_host("output", of.output, values)
        else:
            call.write("output", of.output, values)

    return run if of.n else None


_OUTPUT: Final = "p:generator p:output z:n"


@computes({"curandGenerate": None}, _OUTPUT)
def bits(call: Call[None]) -> Work:
    """Generate 32 bits for each result."""
    if call.settings[KIND] in SOBOL_64:
        raise Refused(TYPE_ERROR)
    return _generate(call, np.uint32, lambda numbers: numbers.take("bits", call.arguments.n))


@computes({"curandGenerateLongLong": None}, _OUTPUT)
def long_bits(call: Call[None]) -> Work:
    """Generate 64 bits for each result, which Sobol sequences of 64 bits alone do."""
    if call.settings[KIND] not in SOBOL_64:
        raise Refused(TYPE_ERROR)
    return _generate(call, np.uint64, lambda numbers: numbers.take("bits", call.arguments.n))


@computes({"curandGenerateUniform": np.float32, "curandGenerateUniformDouble": np.float64}, _OUTPUT)
def uniform(call: Call[Any]) -> Work:
    """Generate numbers in (0, 1]."""
    kind = "uniform" if call.about is np.float32 else "uniform_double"
    return _generate(call, call.about, lambda numbers: numbers.take(kind, call.arguments.n))


def _normal(call: Call[tuple[Any, bool]]) -> Work:
    (dtype, is_log), of = call.about, call.arguments
    if call.settings[KIND] in PSEUDO and of.n % 2:
        raise Refused(NOT_A_MULTIPLE)
    kind = "normal" if dtype is np.float32 else "normal_double"

    def take(numbers: Numbers) -> Array:
        made = numbers.take(kind, of.n) * dtype(of.deviation) + dtype(of.mean)
        return np.asarray(np.exp(made) if is_log else made)

    return _generate(call, dtype, take)


computes(
    {"curandGenerateNormal": (np.float32, False), "curandGenerateLogNormal": (np.float32, True)},
    f"{_OUTPUT} f:mean f:deviation",
)(_normal)
computes(
    {"curandGenerateNormalDouble": (np.float64, False), "curandGenerateLogNormalDouble": (np.float64, True)},
    f"{_OUTPUT} d:mean d:deviation",
)(_normal)


@computes({"curandGeneratePoisson": None}, f"{_OUTPUT} d:rate")
def poisson(call: Call[None]) -> Work:
    """Generate numbers of events."""
    of = call.arguments
    if of.rate <= 0:
        raise Refused(OUT_OF_RANGE)

    def take(numbers: Numbers) -> Array:
        return np.asarray(
            scipy.stats.poisson.ppf(np.minimum(numbers.take("uniform_double", of.n), 1 - 2.0**-53), of.rate)
        )

    return _generate(call, np.uint32, take)
