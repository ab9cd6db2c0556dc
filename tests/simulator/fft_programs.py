"""Machines with plans of cuFFT, and what their transforms are made of."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.simulator.conftest import Start
from tests.simulator.library_programs import Array, Libraries

R2C, C2R, C2C, D2Z, Z2D, Z2Z = 0x2A, 0x2C, 0x29, 0x6A, 0x6C, 0x69  # cufftType
FORWARD, INVERSE = -1, 1
NAMES: Final = {R2C: "R2C", C2R: "C2R", C2C: "C2C", D2Z: "D2Z", Z2D: "Z2D", Z2Z: "Z2Z"}
Embedding = tuple[tuple[int, ...], int, int]
"""The room of each dimension, and how far apart elements and transforms lie."""


class Fft(Libraries):
    """A device with plans of cuFFT."""

    def __init__(self, start: Start, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(start, folder, options)
        self.plans: dict[int, int] = {}

    def plan(
        self, kind: int, lengths: tuple[int, ...], batch: int = 1, embeddings: tuple[Embedding, Embedding] | None = None
    ) -> int:
        """Return a plan for many transforms."""
        made = ctypes.c_int()
        rooms: list[Any] = [None, 1, 0, None, 1, 0]
        if embeddings:
            rooms = []
            for room, stride, distance in embeddings:
                rooms += [(ctypes.c_int * len(room))(*room), stride, distance]
        create = self.driver.simulated_cufftPlanMany
        assert (
            create(ctypes.byref(made), len(lengths), (ctypes.c_int * len(lengths))(*lengths), *rooms, kind, batch) == 0
        )
        self.plans[made.value] = kind
        return made.value

    def execute(self, plan: int, source: int, target: int, *direction: int) -> int:
        """Execute a plan; return the status."""
        return self.call(f"cufftExec{NAMES[self.plans[plan]]}", plan, source, target, *direction)


def random(dtype: Any, *shape: int) -> Array:
    source = np.random.default_rng(shape)
    made = source.uniform(-1, 1, shape)
    return np.asarray(made + 1j * source.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else made, dtype)


def put(on: Fft, values: Array) -> int:
    """Return the address of elements whose last dimension has neighbours."""
    return on.put(values.reshape(-1))


def get(on: Fft, address: int, dtype: Any, *shape: int) -> Array:
    return on.get(address, dtype, int(np.prod(shape))).reshape(shape)


def offsets(shape: tuple[int, ...], embedding: Embedding) -> Array:
    """Return where the elements lie, of a batch of transforms."""
    rooms, stride, distance = embedding
    made = np.arange(shape[0]) * distance
    steps = [stride * int(np.prod(rooms[number + 1 :])) for number in range(len(rooms))]
    for length, step in zip(shape[1:], steps, strict=True):
        made = made[..., None] + np.arange(length) * step
    return made
